"""What a column of a sample looks like: numbers, texts, times, ids, or nothing to learn from. Used by `init`."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from streamtrain.columns.paths import MOST_STEPS, Path, place
from streamtrain.columns.picture_meaning import size_of
from streamtrain.columns.sound_meaning import Head, head_of
from streamtrain.files.wanted import is_missing, iso_ms

Row = dict[str, Any]
EVIDENCE_ROWS = 20  # below it that a column never changes, or always does, says nothing
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WHOLE = re.compile(r"-?(0|[1-9]\d*)")
_CODE = re.compile(r"0\d+")  # "01007": its digits are letters
_WORD = re.compile(r"[^\W_]+")
_TIME_NAME = re.compile(r"(^|_)(time|timestamp|ts|date|datetime|epoch|at|when)(_|$|\d)|(Time|Timestamp|Date|At)$", re.I)
_ID_NAME = re.compile(r"(^|_)(id|uuid|guid|rowid|row|index|idx)$|(Id|ID)$|^unnamed", re.I)
_IN_BASE64 = ("/9j/", "iVBORw0KGgo", "UklGR", "ZkxhQ")  # first bytes of a JPEG, a PNG, a WAV and a FLAC
_UNITS = (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9))
_FROM_S, _TO_S = 978_307_200, 4_102_444_800  # 2001 to 2100, as unix time


def is_number(value: Any) -> bool:
    if isinstance(value, bool | int):
        return True
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str) and _NUMBER.fullmatch(value.strip()) is not None


def flattened(rows: Sequence[Row]) -> tuple[list[Row], dict[str, str]]:
    """Rows without objects in them, and the path of each field that stood in one: user.age is named user_age.

    A field that is an object in one row is none of its own in any.
    """
    found = [dict(_fields(row, ())) for row in rows]
    paths = dict.fromkeys(path for row in found for path in row)
    around = {path[:count] for path in paths for count in range(1, len(path))}
    names: dict[Path, str] = {path: str(path[0]) for path in paths if len(path) == 1}
    taken = set(names.values())
    for path in paths:
        if len(path) > 1:
            name = "_".join(map(str, path))
            while name in taken:
                name += "_"
            names[path] = name
            taken.add(name)
    flat = [{names[path]: cell for path, cell in row.items() if path not in around} for row in found]
    return flat, {name: place(path).removeprefix(".") for path, name in names.items() if len(path) > 1}


def _fields(row: Row, above: Path) -> Iterator[tuple[Path, Any]]:
    for key, value in row.items():
        if isinstance(value, dict) and value and len(above) + 1 < MOST_STEPS:
            yield from _fields(value, (*above, key))
        else:
            yield (*above, key), None if value == {} else value


def _encoded(cell: Any) -> bytes:
    """What may be a picture or a clip of sound; empty where it is none."""
    try:
        return cell if isinstance(cell, bytes) else base64.b64decode(cell, validate=True) if _may_be(cell) else b""
    except binascii.Error:
        return b""


def _may_be(cell: Any) -> bool:
    return isinstance(cell, str) and cell.startswith(_IN_BASE64)


@dataclass
class Sampled:
    """A column's cells."""

    name: str
    values: list[Any]  # not missing
    missing: int

    @classmethod
    def of(cls, rows: Sequence[Row], name: str) -> Sampled:
        cells = [row.get(name) for row in rows]
        values = [cell for cell in cells if cell is not None and cell != "" and cell == cell]
        known = [cell for cell in values if not is_missing(cell)]
        if all(map(is_number, known)) or all(iso_ms(cell) is not None for cell in known):
            values = known  # elsewhere such a text is one of many
        return cls(name, values, len(cells) - len(values))

    @property
    def nested(self) -> bool:
        return any(isinstance(value, dict | list) for value in self.values)

    @cached_property
    def elements(self) -> list[Any]:
        """Those of all cells, where each is a list of numbers or texts, and they differ; else none."""
        if not all(isinstance(value, list) for value in self.values) or len(set(map(str, self.values))) < 2:
            return []
        found = [each for value in self.values for each in value if each is not None and each != ""]
        numbers = all(is_number(each) and not isinstance(each, str) for each in found)
        plain = all(isinstance(each, str | int) for each in found)
        return found if numbers or plain else []

    @cached_property
    def pairs(self) -> list[Any]:
        """Those of all cells, where each is a list of pairs of an index or a name and a number; else none."""
        found = [pair for value in self.values if isinstance(value, list) for pair in value]
        fits = all(
            isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str | int) and is_number(pair[1])
            for pair in found
        )
        return found if fits and all(isinstance(value, list) for value in self.values) else []

    @cached_property
    def picture(self) -> tuple[int, int] | None:
        """Height and width that most have, where every cell is a JPEG or a PNG, as bytes or in base64."""
        sizes = [size_of(_encoded(value)) for value in self.values]
        known = Counter(size for size in sizes if size is not None)
        return known.most_common(1)[0][0] if sizes and known.total() == len(sizes) else None

    @cached_property
    def clips(self) -> list[Head]:
        """What their heads tell, where every cell is a WAV or a FLAC, as bytes or in base64; else none."""
        heads = [head_of(_encoded(value)) for value in self.values]
        known = [head for head in heads if head is not None and head[0] and head[2]]
        return known if len(known) == len(heads) else []

    @property
    def flat(self) -> bool:
        return all(isinstance(value, str | int | float | bool) for value in self.values)

    @property
    def numeric(self) -> bool:
        return bool(self.values) and all(map(is_number, self.values))

    @property
    def boolean(self) -> bool:
        return any(isinstance(value, bool) for value in self.values)

    @property
    def coded(self) -> bool:
        """Digits that are no number: zip codes and the like."""
        return any(isinstance(value, str) and _CODE.fullmatch(value.strip()) for value in self.values)

    @cached_property
    def distinct(self) -> list[Any]:
        return sorted(set(self.values), key=str)

    @cached_property
    def wholes(self) -> list[int] | None:
        """The cells as whole numbers, where all are written as such."""
        texts = [str(value).strip() for value in self.values if not isinstance(value, bool)]
        if len(texts) < len(self.values) or not all(map(_WHOLE.fullmatch, texts)):
            return None
        return [int(text) for text in texts]

    @property
    def constant(self) -> bool:
        return len(self.distinct) == 1 and not self.missing and len(self.values) >= EVIDENCE_ROWS

    @property
    def time(self) -> tuple[str, str] | None:
        """(what it is, its unit) of a column of times."""
        if not self.values:
            return None
        if all(iso_ms(value) is not None for value in self.values):
            return ("a time as text" if isinstance(self.values[0], str) else "a timestamp"), "ms"
        wholes = self.wholes
        if not wholes:
            return None
        unit = next((name for name, per_s in _UNITS if _FROM_S <= min(wholes) / per_s <= _TO_S), None)
        if unit is None or max(wholes) / dict(_UNITS)[unit] > _TO_S:
            return None
        forward = sum(a <= b for a, b in pairwise(wholes))
        in_order = len(wholes) >= EVIDENCE_ROWS and forward >= 0.95 * (len(wholes) - 1)
        return (f"unix time in {unit}", unit) if in_order or _TIME_NAME.search(self.name) else None

    @cached_property
    def prose(self) -> int:
        """Words of the longest of many texts that are no names: they mostly differ, and have some words each."""
        if self.numeric or not all(isinstance(value, str) for value in self.values) or len(self.distinct) <= 20:
            return 0
        words = [len(_WORD.findall(value)) for value in self.values]
        differ = len(self.distinct) > 0.5 * len(self.values)
        return max(words) if differ and sum(words) >= 3 * len(words) else 0

    @property
    def counts_rows(self) -> bool:
        """Whole numbers that go up by the same step from row to row."""
        wholes = self.wholes
        if not wholes or len(wholes) < EVIDENCE_ROWS:
            return False
        steps = {b - a for a, b in pairwise(wholes)}
        return len(steps) == 1 and steps != {0}

    @property
    def identifies(self) -> bool:
        """Named as an id, and nearly every row has its own."""
        many = len(self.values) >= EVIDENCE_ROWS and len(self.distinct) > 0.9 * len(self.values)
        return many and (self.wholes is not None or not self.numeric) and _ID_NAME.search(self.name) is not None
