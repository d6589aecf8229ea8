"""Guards for values that cannot reach SQL; whatever can, SQL judges.

A driver would turn True into 1 or fail in its own way on 2**70, on a lone surrogate, on a NUL.
Refused here, they give the same class on both engines.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ._rows import EPOCH
from .errors import InvalidName, InvalidOption, InvalidPayload, InvalidSpec

OUTBOX_PREFIX = "__alkstore_outbox_"  # of the queue behind an outbox


def integer(option: str, value: int) -> int:
    """A whole number that fits 64 bits."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidOption(f"invalid_option: {option} must be a whole number, not {value!r}")
    if not -(2**63) <= value < 2**63:
        raise InvalidOption(f"invalid_option: {option} does not fit 64 bits")
    return int(value)  # an IntEnum becomes plain: a driver may have its own idea of enums


def at_least(least: int, option: str, value: int) -> int:
    if integer(option, value) < least:
        raise InvalidOption(f"invalid_option: {option} must be at least {least}")
    return value


def integer_or_none(option: str, value: int | None) -> int | None:
    return None if value is None else integer(option, value)


def seconds(option: str, value: float, *, or_zero: bool = False) -> float:
    """A time to wait, not more than a thread can: no time at all only with `or_zero`."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not (0 < value <= 2_000_000 or (or_zero and value == 0)):
        range_ = "from 0 to" if or_zero else "more than 0 and at most"
        raise InvalidOption(f"invalid_option: {option} must be {range_} 2000000 s, not {value!r}")
    return float(value)


def unix_seconds(option: str, value: datetime | None) -> int | None:
    """An aware datetime as unix seconds, fractions cut."""
    if value is None:
        return None
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise InvalidOption(f"invalid_option: {option} must be an aware datetime, not {value!r}")
    return (value - EPOCH) // timedelta(seconds=1)


def name(what: str, value: str) -> str:
    """Text that both databases can store."""
    if not isinstance(value, str) or not _is_storable(value):
        raise InvalidName(f"invalid_name: {what} must be text without NUL, not {value!r}")
    return value


def sized_name(what: str, value: str, longest: int = 255) -> str:
    """A name that the engines accept, as far as it may be one of theirs: the rule said twice.

    Asking SQL is not possible: no call is open to producers and workers alike, and a write lock is
    too much for a name.
    """
    size = len(name(what, value).encode())
    if not 1 <= size <= longest:
        raise InvalidName(
            f"invalid_name: {what} must be text of 1 to {longest} bytes, it has {size}"
        )
    return value


def public_name(what: str, value: str, longest: int = 255) -> str:
    """A name that callers may give."""
    if sized_name(what, value, longest).startswith("__alkstore_"):
        raise InvalidName(f"invalid_name: {what} must not start with the reserved __alkstore_")
    return value


def addressed(queue: str) -> tuple[str, str]:
    """By which argument a call that adds or claims jobs names a queue, and its value."""
    if queue.startswith(OUTBOX_PREFIX):
        return "outbox", queue.removeprefix(OUTBOX_PREFIX)
    return "queue", queue


def spec_text(spec: str) -> str:
    if not isinstance(spec, str) or not _is_storable(spec):
        raise InvalidSpec(f"invalid_spec: spec must be text without NUL, not {spec!r}")
    return spec


@dataclass(frozen=True, slots=True)
class RawJson:
    """JSON text to be stored as it is: number spelling, key order, white space and all."""

    text: str


def payload_text(payload: Any) -> str:
    """The JSON text of a payload: RawJson as it is, anything else encoded in plain ASCII.

    ASCII, because a lone surrogate, which JSON allows, only survives as its escape.
    """
    if isinstance(payload, RawJson):
        if not isinstance(payload.text, str) or not _is_storable(payload.text):
            raise InvalidPayload("invalid_payload: RawJson needs text without NUL or surrogates")
        return payload.text
    try:
        return json.dumps(payload, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidPayload(f"invalid_payload: {error}") from error


def error_text(error: str | BaseException | None) -> str | None:
    """An error as text that both databases can store: a failing job must always be told."""
    if error is None:
        return None
    return str(error).split("\0", 1)[0].encode("utf-8", "replace").decode()


def _is_storable(text: str) -> bool:
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False
