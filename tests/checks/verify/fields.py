"""Every field of a decoded message, and another value for each: found by walking it, so a field added later is too."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from streamtrain.topics.rounds import RANGE_DTYPE, ROUND_DTYPE, SLOT_DTYPE

Path = tuple[Any, ...]  # keys of maps, indices of lists, ("dtype", index, field) in a column of structs
COLUMNS = {"rounds": ROUND_DTYPE, "slots": SLOT_DTYPE, "ranges": RANGE_DTYPE}


def paths(document: Any, at: Path = (), whole: frozenset[str] = frozenset()) -> Iterator[Path]:
    """Every leaf: of a column of structs each field of the middle one, of a list the first and last item; fields named
    in `whole` are leaves."""
    if at and at[-1] in whole:
        yield at
    elif isinstance(document, dict):
        for key, value in document.items():
            if len(at) == 0 and key in COLUMNS and isinstance(value, bytes):
                middle = len(value) // COLUMNS[key].itemsize // 2
                names = COLUMNS[key].names if value else ()
                yield from ((key, middle, name) for name in names or ())
            else:
                yield from paths(value, (*at, key), whole)
        yield (*at, ADDED)
    elif isinstance(document, list) and document:
        for index in sorted({0, len(document) - 1}):
            yield from paths(document[index], (*at, index), whole)
        yield (*at, DROPPED)
    else:
        yield at


ADDED = "+a field nobody knows"
DROPPED = "-the last"


def changed(value: Any) -> Any:
    """Another value of the same type, as little different as can be."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + (1 if isinstance(value, int) else 0.5)
    if isinstance(value, dict):
        return {**value, ADDED: 1}
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:] if value else b"x"
    if isinstance(value, str):
        return _changed_text(value)
    return 1 if value is None else [*value, 1]


def _changed_text(text: str) -> str:
    """Another hex digit, another number in it, or another last letter."""
    if re.fullmatch("[0-9a-f]{16,}", text):
        return ("1" if text[0] == "0" else "0") + text[1:]
    if number := re.search(r"\d+$", text):
        digits = number.group()
        return text[: number.start()] + str(int(digits) + 1).zfill(len(digits))
    return text + "x"


def put(document: Any, path: Path, change: Callable[[Any], Any] = changed) -> None:
    if len(path) == 3 and path[0] in COLUMNS and isinstance(document[path[0]], bytes):
        column = np.frombuffer(document[path[0]], COLUMNS[path[0]]).copy()
        cells = column[path[2]]
        where = path[1] if cells.ndim == 1 else (path[1], 0)
        cells[where] = changed(cells[where].item())
        document[path[0]] = column.tobytes()
        return
    *way, last = path
    for step in way:
        document = document[step]
    if last == ADDED:
        document[ADDED] = 1
    elif last == DROPPED:
        document.pop()
    else:
        document[last] = change(document[last])


def variants(value: Any, read: Callable[[Any], Any], write: Callable[[Any], Any]) -> Iterator[tuple[Path, Any]]:
    """Changes each leaf of a text or bytes, by its path."""
    for path in paths(read(value)):
        document = read(value)
        put(document, path)
        yield path, write(document)
