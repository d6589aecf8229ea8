"""Waiting for conditions, in place of sleeping."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(condition: Callable[[], T], timeout_s: float = 60) -> T:
    """What the condition gives, once it is true."""
    give_up_at = time.monotonic() + timeout_s
    while not (result := condition()):
        assert time.monotonic() < give_up_at, "it did not come true"
        time.sleep(0.01)
    return result
