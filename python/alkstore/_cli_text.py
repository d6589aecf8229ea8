"""Text for a terminal: tables that fit it, instants, and nothing that could move the cursor."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from ._rows import EPOCH

_GAP = "  "
_ESCAPES = re.compile(r"(?P<letters>(?:\\u[0-9a-fA-F]{4})+)|\\.", re.DOTALL)
_NARROWEST = 12  # what a text keeps on a terminal that is too narrow for all


class Column(NamedTuple):
    title: str
    right: bool = False
    cut: Callable[[str, int], str] | None = None  # how, to make the table fit


def printable(text: str) -> str:
    """The text with an escape for each control and format character, lone surrogate, odd space."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def legible(payload: str) -> str:
    r"""JSON text with the letters that Python writes as \u00fc, but not what needs its escape."""
    return _ESCAPES.sub(_letters, payload)


def _letters(escapes: re.Match[str]) -> str:
    if escapes["letters"] is None:
        return escapes[0]
    letters = str(json.loads(f'"{escapes[0]}"'))
    return escapes[0] if not letters.isprintable() or set(letters) & {'"', "\\"} else letters


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> str:
    """Rows under titles, on lines of at most `width` cells, where the columns can be cut that far.

    The texts are made printable here.
    """
    cells = [[column.title for column in columns], *([printable(t) for t in row] for row in rows)]
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    room = width - len(_GAP) * (len(columns) - 1)
    room -= sum(w for w, column in zip(widths, columns, strict=True) if not column.cut)
    to_cut = sorted((i for i, column in enumerate(columns) if column.cut), key=widths.__getitem__)
    for left, i in zip(range(len(to_cut), 0, -1), to_cut, strict=True):
        widths[i] = min(widths[i], max(room // left, _NARROWEST))
        room -= widths[i]
    return "\n".join(_GAP.join(map(_fitted, line, widths, columns)).rstrip() for line in cells)


def cut(text: str, width: int) -> str:
    """The text, with an ellipsis for what does not fit into so many cells."""
    if _width(text) <= width:
        return text
    kept = 0
    for end, char in enumerate(text):
        kept += _width(char)
        if kept >= width:
            return text[:end] + "…"
    return text


def cut_inside(text: str, width: int) -> str:
    """The same for a name, of which the end tells as much as the beginning."""
    if _width(text) <= width:
        return text
    end = cut(text[::-1], width - width // 2)[::-1]
    return cut(text, width // 2 + 1) + end.removeprefix("…")


def _fitted(text: str, width: int, column: Column) -> str:
    if column.cut is not None:
        text = column.cut(text, width)
    padding = " " * (width - _width(text))
    return padding + text if column.right else text + padding


def _width(text: str) -> int:
    """How many cells of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.category(c) in ("Mn", "Me")
        else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )


def span(seconds: int) -> str:
    """A length of time, in its two greatest units."""
    units = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
    for (unit, size), (next_unit, next_size) in pairwise(units):
        if seconds >= size:
            rest = seconds % size // next_size
            return f"{seconds // size}{unit}" + (f" {rest}{next_unit}" if rest else "")
    return f"{seconds}s"


def distance(instant: int, now: int) -> str:
    """An instant, as seen from now."""
    if instant == now:
        return "now"
    return f"{span(now - instant)} ago" if instant < now else f"in {span(instant - now)}"


def utc(unix_seconds: int) -> str:
    return f"{(EPOCH + timedelta(seconds=unix_seconds)).replace(tzinfo=None)} UTC"


def json_line(row: Mapping[str, Any]) -> str:
    """One line of ASCII, with the instants, columns named `…_at`, in ISO 8601."""
    return json.dumps(
        {name: iso(value) if name.endswith("_at") else value for name, value in row.items()}
    )


def iso(unix_seconds: int | None) -> str | None:
    if unix_seconds is None:
        return None
    return (EPOCH + timedelta(seconds=unix_seconds)).isoformat().replace("+00:00", "Z")
