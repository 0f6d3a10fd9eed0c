"""The places of columns' cells in a nested row: "user.age", "items[0].price", '["a.b"].c'.

A path begins with a key. A column without a path has its cells at the key that is its name, whatever characters it
holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

Path = tuple[str | int, ...]  # keys of objects and indexes of arrays, from the row down
MOST_STEPS = 32
MOST_INDEX = 65_535
_STEP = re.compile(r'\.([^.\[\]"]+)|\[([0-9]{1,9})\]|\[("(?:[^"\\]|\\.)*")\]')
_PLAIN = re.compile(r'[^.\[\]"]+')


@cache
def steps(path: str) -> Path:
    """The steps of a path as a job file has it. ValueError says what is wrong with it."""
    text = path if path.startswith("[") else f".{path}"
    found: list[str | int] = []
    at = 0
    while match := _STEP.match(text, at):
        at = match.end()
        found.append(match[1] or (int(match[2]) if match[2] else _quoted(match[3])))
    if at < len(text) or isinstance(found[0], int):
        raise ValueError(f"""expected keys and indexes such as user.age, items[0].price or ["a.b"].c, got {path!r}""")
    if len(found) > MOST_STEPS or any(isinstance(step, int) and step > MOST_INDEX for step in found):
        raise ValueError(f"expected at most {MOST_STEPS} steps and indexes up to {MOST_INDEX:,}, got {path!r}")
    return tuple(found)


def _quoted(text: str) -> str:
    try:
        key = str(json.loads(text))
        key.encode()
    except ValueError:
        raise ValueError(f"expected a key in quotes as JSON writes it, got {text}") from None
    return key


def place(path: Path) -> str:
    """A path behind "$", as a dead letter names it."""
    return "".join(map(_format_step, path))


def _format_step(step: str | int) -> str:
    if isinstance(step, str) and _PLAIN.fullmatch(step):
        return f".{step}"
    return f"[{json.dumps(step, ensure_ascii=False)}]"


def cell_at(row: Any, path: Path) -> Any:
    """Returns the value at a path in a row of plain values; None if nothing is there."""
    for step in path:
        if isinstance(step, str):
            found = isinstance(row, Mapping) and step in row
        else:
            found = isinstance(row, list | tuple) and step < len(row)
        if not found:
            return None
        row = row[step]
    return row


def nested(cells: Mapping[str, Any], paths: Mapping[str, Path]) -> dict[str, Any]:
    """A row that has each cell at its column's path, or at the column's name; None where an array has no other."""
    row: dict[str, Any] = {}
    for name, cell in cells.items():
        path = paths.get(name)
        if path is None:
            row[name] = cell
            continue
        at: Any = row
        for step, below in zip(path, (*path[1:], None), strict=True):
            if isinstance(step, int):
                at.extend([None] * (step + 1 - len(at)))
            if below is None:
                at[step] = cell
                break
            inner = at[step] if isinstance(step, int) else at.get(step)
            if inner is None:
                inner = at[step] = [] if isinstance(below, int) else {}
            at = inner
    return row


def path_problems(columns: Iterable[tuple[str, str | None]]) -> Iterator[str]:
    """Yields what is wrong with the places of columns, given by name and path. Each problem begins with its column."""
    names = {name for name, _ in columns}
    cells: dict[Path, str] = {}  # whose cells stand there
    around: dict[Path, tuple[bool, str]] = {}  # whether it is an array, and the first column below it
    for name, given in columns:
        try:
            path: Path = (name,) if given is None else steps(given)
        except ValueError as error:
            yield f"columns.{name}: path: {error}"
            continue
        parts = [path[:count] for count in range(1, len(path))]
        arrays = [isinstance(step, int) for step in path[1:]]
        other = cells.get(path) or next((cells[part] for part in parts if part in cells), None)
        if path in around:
            other = around[path][1]
        mixed = next((around[part][1] for part, array in zip(parts, arrays, strict=True)
                      if part in around and around[part][0] != array), None)  # fmt: skip
        prefix = f"columns.{name}: path: "
        if other is not None:
            yield f"{prefix}expected cells of its own, got ${place(path)}, where those of {other} are"
        elif mixed is not None:
            yield f"{prefix}expected no array where another path has an object, got ${place(path)} beside {mixed}'s"
        elif arrays and arrays[0] and path[0] in names:
            yield (
                f"columns.{path[0]}: expected another name: in the path of {name} it is an array's, which nobody could "
                "tell from a column's cells"
            )
        cells[path] = name
        around |= {part: (array, name) for part, array in zip(parts, arrays, strict=True) if part not in around}
