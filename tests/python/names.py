"""Names that may be given, and those that may not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from alkstore import AlkstoreError

GOOD_NAMES = [
    *("n" * 63, "n" * 64, "n" * 63 + "x", "n" * 255, "é" * 127, "a/b", "A", "a", "ÜX-日本-😀"),
    *("\u00e9", "e\u0301", "q\"'%I$$;--", "%s", "%(x)s", ":x ?", " ", "\t", "\n", "__alkstore"),
]
BAD_NAMES = ["", "n" * 256, "é" * 128, "n" * 10_000, "a\0b", "\0", "\ud800"]
RESERVED_NAMES = ["__alkstore_", "__alkstore_x"]
NOT_TEXT: list[Any] = [None, 1, b"q", ["q"]]


def short(value: object) -> str:
    return ascii(value)[:20]


def refusal(call: Callable[[], object]) -> type[AlkstoreError] | None:
    try:
        call()
    except AlkstoreError as error:
        return type(error)
    return None
