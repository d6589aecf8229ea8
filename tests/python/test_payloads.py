"""Payloads and error texts: the same comes back, or both engines refuse it alike."""

from __future__ import annotations

import json
import math
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import alkstore
from alkstore import InvalidPayload, JobHandle, Queue, RawJson, Store


@pytest.fixture
def queue(store: Store) -> Queue:
    return store.queue("q", max_attempts=1)


def claim(queue: Queue) -> JobHandle:
    handle = queue.claim_one("w")
    assert handle is not None
    return handle


VALUES: dict[str, Any] = {
    "null": None,
    "booleans": [True, False],
    "empty": ["", {}, []],
    "big number": 2**70,
    "past the doubles": 2**53 + 1,
    "floats": [1.0, 1e2, -0.0, 5e-324],
    "unicode": "ÜX-日本-😀",
    "NUL": "a\0b",
    "lone surrogate": "\ud800",
    "all of latin-1": bytes(range(256)).decode("latin-1"),
    "quotes": "q\"'%I$$;--\\ %s %(x)s :x ?",
    "keys": {"b": 1, "a": {"": 2, "\0": 3}},
    "one MiB": "x" * 2**20,
    "900 levels": json.loads("[" * 900 + "]" * 900),
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
def test_a_value_comes_back_equal(queue: Queue, value: Any) -> None:
    single = queue.enqueue(value)
    before, in_batch, after = queue.enqueue_batch([1, value, 2])
    handles = {handle.id: handle for handle in queue.claim_batch("w", 4)}
    assert handles[single].payload == value
    assert [handles[i].payload for i in (before, in_batch, after)] == [1, value, 2]
    assert handles[single].payload_text == json.dumps(value)


CIRCULAR: list[Any] = []
CIRCULAR.append(CIRCULAR)

NOT_JSON: dict[str, Any] = {
    "NaN": math.nan,
    "infinity inside": {"a": [math.inf]},
    "bytes": b"x",
    "a set": {1, 2},
    "an object": object(),
    "bytes as key": {b"a": 1},
    "a number too long for Python": 10**5000,
    "circular": CIRCULAR,
    "raw: nothing": RawJson(""),
    "raw: not JSON": RawJson("{'a': 1}"),
    "raw: NaN": RawJson("NaN"),
    "raw: two values": RawJson("1, 2"),
    "raw: out of its array": RawJson("1] , [2"),
    "raw: a NUL": RawJson("1\0"),
    "raw: a NUL in a string": RawJson('"\0"'),
    "raw: a lone surrogate": RawJson('"\ud800"'),
}


@pytest.mark.parametrize("value", NOT_JSON.values(), ids=NOT_JSON.keys())
def test_what_is_not_json_is_refused_and_nothing_is_enqueued(queue: Queue, value: Any) -> None:
    with pytest.raises(InvalidPayload):
        queue.enqueue(value)
    with pytest.raises(InvalidPayload):
        queue.enqueue_batch([1, value, 2])
    assert queue.claim_batch("w", 10) == []


def test_raw_json_of_another_type_is_refused(queue: Queue) -> None:
    not_text: Any = b"1"
    with pytest.raises(InvalidPayload):
        queue.enqueue(RawJson(not_text))


RAW = [
    '{"b":1, "a":[1.0,1e2]}',
    '{"a":1,"a":2}',
    "1180591620717411303424",
    "1e400",
    "-0.0",
    r'"\u0000"',
    r'"\ud800"',
    "null",
    " \n[ 1,2 ]\t\r\n",
    '"ÜX-日本-😀"',
    "[" * 1000 + "]" * 1000,
]


@pytest.mark.parametrize("text", RAW, ids=[text[:24] for text in RAW])
def test_raw_json_comes_back_byte_for_byte(queue: Queue, text: str) -> None:
    ids = [queue.enqueue(RawJson(text)), *queue.enqueue_batch([RawJson(text), [1]])]
    assert ids == sorted(ids)
    job = queue.get_job(ids[0])
    assert job is not None
    assert job.payload_text == text
    handles = queue.claim_batch("w", 3)
    assert [handle.payload_text for handle in handles] == [text, text, "[1]"]


def test_a_payload_that_python_cannot_decode_can_be_claimed_and_failed(queue: Queue) -> None:
    digits = "1" * 5000
    queue.enqueue(RawJson(digits))
    handle = claim(queue)
    assert handle.payload_text == digits
    with pytest.raises(InvalidPayload, match="job 1: payload not decodable"):
        _ = handle.payload
    assert handle.fail("unreadable")


def test_text_that_is_not_utf8_does_not_stop_a_claim(sqlite_path: Path) -> None:
    with alkstore.open(sqlite_path) as store:
        with closing(sqlite3.connect(sqlite_path)) as connection, connection:
            connection.execute(
                "INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', CAST(x'22ff22' AS TEXT))"
            )
        queue = store.queue("q")
        handle = claim(queue)
        assert handle.payload_text.encode("utf-8", "surrogateescape") == b'"\xff"'
        assert handle.fail()
        assert queue.get_job(handle.id) is not None


ERRORS = {
    "NUL": ("a\0b", "a"),
    "lone surrogate": ("\ud800!", "?!"),
    "empty": ("", ""),
    "10 MB": ("é" * 10_000_000, "é" * 65536),
    "unicode": ("日本 😀\n", "日本 😀\n"),
    "an exception": (KeyError("to"), "'to'"),
}


@pytest.mark.parametrize(("error", "stored"), ERRORS.values(), ids=ERRORS.keys())
def test_an_error_text_never_stops_the_transition(
    store: Store, error: str | BaseException, stored: str
) -> None:
    queue = store.queue("q", max_attempts=2)
    failed, retried = queue.enqueue_batch([1, 2])
    assert claim(queue).fail(error) is True
    assert claim(queue).retry(error, delay_s=0) is True
    job = queue.get_job(failed)
    assert job is not None
    assert (job.state, job.last_error) == ("dead", stored)
    job = queue.get_job(retried)
    assert job is not None
    assert (job.state, job.retry_error) == ("pending", stored)
    assert claim(queue).retry(error) is True
    job = queue.get_job(retried)
    assert job is not None
    assert (job.state, job.last_error, job.retry_error) == ("dead", stored, stored)
