"""A sample's column by its cells: numbers, texts, times, ids, lists, pictures, sounds."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from typing import Any

from streamtrain import _native
from streamtrain.cli.first_job.connect import ConnectDecimal
from streamtrain.cli.first_job.texts import Written, written_as
from streamtrain.columns.formats.parsed import Moment
from streamtrain.columns.kinds.kind import seconds
from streamtrain.columns.kinds.parsed import CONNECT_DECIMAL, DECIMAL_COMMA, is_missing
from streamtrain.columns.paths import MOST_STEPS, Path, place
from streamtrain.columns.rejected import MAX_REJECTED
from streamtrain.files.column_selection import iso_ms

Row = dict[str, Any]
EVIDENCE_ROWS = 20  # below it that a column never changes, or always does, says nothing
EXACT_FLOAT32 = 1 << 24  # float32 holds every whole number up to it
MANY_KEYS = 50  # of an object, from which on it is a map of features
FEW_VALUES = 10  # of whole numbers: grades, classes and the like
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_INFINITY = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_WHOLE = re.compile(r"([+-]?)(0|[1-9]\d*)(\.0*)?")  # 1, +1 and 1.0
_CODE = re.compile(r"0\d+")  # "01007": a code, not a number
_WORD = re.compile(r"[^\W_]+")
_STEPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")  # between the words of a name
_EVENT_TIMES = {"event_time", "event_timestamp", "ts", "timestamp", "time", "datetime", "created_at", "occurred_at"}
_EVENT_TIMES |= {"event_at", "event_ts", "unix_time", "epoch", "createdat", "eventtime", "time_stamp", "when"}
_TIME_WORDS = {"time", "timestamp", "ts", "date", "datetime", "epoch", "at", "when"}
_ROW_IDS = {"id", "uuid", "guid", "rowid", "row", "index", "idx", "unnamed"}
_ID_WORDS = _ROW_IDS | {
    "code", "zip", "zipcode", "postcode", "postal", "sku", "isbn", "ean", "upc", "store", "shop", "user", "item",
    "product", "customer", "client", "account", "device", "station", "merchant", "seller", "movie", "campaign",
    "site", "key", "hash",
}  # fmt: skip
_QUANTITY_WORDS = {
    "count", "counts", "num", "number", "n", "total", "sum", "qty", "quantity", "age", "year", "years", "month",
    "months", "week", "weeks", "day", "days", "hour", "hours", "minute", "minutes", "second", "seconds", "rating",
    "ratings", "score", "stars", "grade", "rank", "amount", "price", "cost", "fee", "income", "salary", "balance",
    "size", "length", "width", "height", "weight", "distance", "duration", "temperature", "temp", "speed", "level",
    "visits", "clicks", "views", "votes", "points", "rate", "pct", "percent", "mean", "avg", "max", "min",
}  # fmt: skip
_IN_BASE64 = ("/9j/", "iVBORw0KGgo", "UklGR", "ZkxhQ")  # first bytes of a JPEG, a PNG, a WAV and a FLAC
_UNITS = (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9))
UNIT_OF = {(1000, 1): "s", (1, 1): "ms", (1, 1000): "us", (1, 1_000_000): "ns"}  # by milliseconds of one
_FROM_S, _TO_S = 978_307_200, 4_102_444_800  # 2001 to 2100, as unix time


def is_number(value: Any) -> bool:
    if isinstance(value, str):
        return _NUMBER.fullmatch(value.strip()) is not None and math.isfinite(float(value))
    try:
        return isinstance(value, bool | int | float) and math.isfinite(value)
    except OverflowError:  # a whole number beyond a double
        return False


def whole_number(value: Any) -> int | None:
    """Returns the whole number that a cell is, however it is written: 1, 1.0, "+1"."""
    if isinstance(value, bool) or not is_number(value):
        return None
    if isinstance(value, int | float):
        return int(value) if value == int(value) else None
    found = _WHOLE.fullmatch(value.strip()) if isinstance(value, str) else None
    return int(found[1] + found[2]) if found else None


def words_of(name: str) -> list[str]:
    """Returns the words of a column's name in lower case: userId, user_id and user-id have two."""
    return [word.lower() for word in _STEPS.split(name) if word]


def flattened(rows: Sequence[Row]) -> tuple[list[Row], dict[str, str]]:
    """Returns rows without objects in them, and the path of each field that was in one: user.age is named user_age.

    A field that is an object in some rows is no column itself. An object of MANY_KEYS different keys, of which a row
    has few, stays one cell: a map of features; so does a rare one where other rows have a value.
    """
    maps = _maps(rows)
    found = [dict(_fields(row, (), maps)) for row in rows]
    paths = dict.fromkeys(path for row in found for path in row)
    above = {path[:count] for path in paths for count in range(1, len(path))}
    names: dict[Path, str] = {path: str(path[0]) for path in paths if len(path) == 1}
    taken = set(names.values())
    for path in paths:
        if len(path) > 1:
            name = "_".join(map(str, path))
            while name in taken:
                name += "_"
            names[path] = name
            taken.add(name)
    flat = [{names[path]: cell for path, cell in row.items() if path not in above} for row in found]
    return flat, {name: place(path).removeprefix(".") for path, name in names.items() if len(path) > 1}


def change_events(rows: Sequence[Row]) -> Path | None:
    """Returns where the envelopes of change events lie in rows: (), ("payload",), or None where rows are no envelopes.

    The format is Debezium's: op (c, u, r, d or t), source, and before or after.
    """
    for path in ((), ("payload",)):
        found = [row.get(path[0]) if path else row for row in rows]
        envelopes = [each for each in found if isinstance(each, dict) and _is_envelope(each)]
        if len(envelopes) > 0.9 * len(rows):
            return path
    return None


def _is_envelope(cell: Mapping[str, Any]) -> bool:
    return cell.get("op") in ("c", "u", "r", "d", "t") and "source" in cell and ("before" in cell or "after" in cell)


def _maps(rows: Sequence[Row]) -> set[Path]:
    """Returns the paths of objects that are maps of features, or stand in rows that cannot be used."""
    keys: dict[Path, set[str]] = defaultdict(set)
    objects: Counter[Path] = Counter()
    entries: Counter[Path] = Counter()
    values: Counter[Path] = Counter()

    def visit(cell: Mapping[str, Any], path: Path) -> None:
        for key, value in cell.items():
            if isinstance(value, dict):
                below = (*path, key)
                keys[below].update(value)
                objects[below] += 1
                entries[below] += len(value)
                visit(value, below)
            elif value is not None:
                values[(*path, key)] += 1

    for row in rows:
        visit(row, ())
    return {
        path for path, found in keys.items()
        if (len(found) >= MANY_KEYS and entries[path] < 0.5 * len(found) * objects[path])
        or objects[path] <= MAX_REJECTED * values[path]
    }  # fmt: skip


def _fields(row: Row, above: Path, maps: set[Path]) -> Iterator[tuple[Path, Any]]:
    for key, value in row.items():
        path = (*above, key)
        if path not in maps and isinstance(value, dict) and value and len(path) < MOST_STEPS:
            yield from _fields(value, path, maps)
        else:
            yield path, None if value == {} else value


def _media(cell: Any) -> bytes:
    """Returns bytes that may be a picture or a clip of sound; empty where they cannot."""
    if isinstance(cell, bytes):
        return cell
    if not isinstance(cell, str) or not cell.startswith(_IN_BASE64):
        return b""
    try:
        return base64.b64decode(cell, validate=True)
    except binascii.Error:
        return b""


def _plain(cell: Any) -> Any:
    """A decimal, and the seconds of a duration or a time of day, as a number; any other cell as it is."""
    found = float(cell) if isinstance(cell, Decimal) else seconds(cell)
    return cell if found is None else found


def _is_infinite(cell: Any) -> bool:
    """Returns whether a cell is a number that no double holds, or a word for such a one."""
    if isinstance(cell, str):
        text = cell.strip()
        return _INFINITY.fullmatch(text) is not None or (_NUMBER.fullmatch(text) is not None and not is_number(text))
    return isinstance(cell, int | float) and not is_number(cell)


def _without_rare(cells: list[Any], is_usual: Callable[[Any], bool]) -> tuple[list[Any], int]:
    """Returns the usual cells, and how many others there are; all cells where these are more than MAX_REJECTED."""
    usual = [cell for cell in cells if is_usual(cell)]
    rare = len(cells) - len(usual)
    return (usual, rare) if rare <= MAX_REJECTED * len(cells) else (cells, 0)


@dataclass
class SampledColumn:
    """The cells of a column in a sample."""

    name: str
    values: list[Any]  # not missing
    missing: int
    written: Written | None = None  # how texts that are no plain numbers are written; `values` are what they say
    scale: int | None = None  # of decimals of Kafka Connect

    @classmethod
    def of(cls, rows: Sequence[Row], name: str, commas: bool = False) -> SampledColumn:
        """`commas`: other columns have a comma before the fraction."""
        cells = [_plain(row.get(name)) for row in rows]
        scale = next((cell.scale for cell in cells if type(cell) is ConnectDecimal), None)
        values = [cell for cell in cells if cell is not None and cell != "" and cell == cell]
        values, odd = _without_rare(values, lambda cell: not isinstance(cell, list | dict))
        known = [cell for cell in values if not is_missing(cell)]
        finite, infinite = _without_rare(known, lambda cell: not _is_infinite(cell))
        if infinite and all(map(is_number, finite)):
            known, odd = finite, odd + infinite
        is_plain = all(map(is_number, known)) or all(iso_ms(cell) is not None for cell in known)
        written = None if is_plain and not commas else written_as(known, commas)
        if is_plain and written is not None and written.parse != DECIMAL_COMMA:
            written = None
        if is_plain or written is not None:
            values = known  # in a column of texts such a word is one of many
        missing = len(cells) - len(values) - odd
        return cls(name, values if written is None else written.values, missing, written, scale)

    @property
    def parse(self) -> str:
        """The setting that reads texts that are no plain numbers; empty where there are none."""
        written = "" if self.written is None else self.written.parse
        return written if self.scale is None else f"{CONNECT_DECIMAL}:{self.scale}"

    @property
    def nested(self) -> bool:
        return any(isinstance(value, dict | list) for value in self.values)

    @cached_property
    def elements(self) -> list[Any]:
        """The elements of all cells, where each cell is a list of numbers or texts, and they differ; else none."""
        if not all(isinstance(value, list) for value in self.values) or len(set(map(str, self.values))) < 2:
            return []
        found = [each for value in self.values for each in value if each is not None and each != ""]
        numbers = all(is_number(each) and not isinstance(each, str) for each in found)
        plain = all(isinstance(each, str | int) for each in found)
        return found if numbers or plain else []

    @cached_property
    def pairs(self) -> list[Any]:
        """The pairs (index or name, number) of all cells, where each cell is a list of them or a map; else none."""
        cells = [[*map(list, value.items())] if isinstance(value, dict) else value for value in self.values]
        found = [pair for value in cells if isinstance(value, list) for pair in value]
        fits = all(
            isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str | int) and is_number(pair[1])
            and not isinstance(pair[1], str)
            for pair in found
        )  # fmt: skip
        return found if fits and all(isinstance(value, list) for value in cells) else []

    @cached_property
    def picture(self) -> tuple[int, int] | None:
        """Height and width that most have, where every cell is a JPEG or a PNG, as bytes or in base64."""
        sizes = [_native.picture_size(_media(value)) for value in self.values]
        known = Counter(size for size in sizes if size is not None)
        return known.most_common(1)[0][0] if sizes and known.total() == len(sizes) else None

    @cached_property
    def clips(self) -> list[tuple[int, int, int]]:
        """The heads of all cells, where every cell is a WAV or a FLAC, as bytes or in base64; else none."""
        heads = [_native.sound_head(_media(value)) for value in self.values]
        known = [head for head in heads if head is not None and head[0] and head[2]]
        return known if len(known) == len(heads) else []

    @property
    def flat(self) -> bool:
        return all(isinstance(value, str | int | float | bool) for value in self.values)

    @cached_property
    def has_text(self) -> bool:
        return any(isinstance(value, str) for value in self.values)

    @cached_property
    def numeric(self) -> bool:
        return bool(self.values) and all(map(is_number, self.values))

    @property
    def boolean(self) -> bool:
        return any(isinstance(value, bool) for value in self.values)

    @property
    def coded(self) -> bool:
        """Returns whether its digits are codes rather than numbers, such as zip codes that begin with 0."""
        return any(isinstance(value, str) and _CODE.fullmatch(value.strip()) for value in self.values)

    @cached_property
    def distinct(self) -> list[Any]:
        return sorted(set(self.values), key=str)

    @cached_property
    def wholes(self) -> list[int] | None:
        """The cells as whole numbers, where all are some."""
        found = [whole for whole in map(whole_number, self.values) if whole is not None]
        return found if len(found) == len(self.values) else None

    @property
    def constant(self) -> bool:
        return len(self.distinct) == 1 and not self.missing and len(self.values) >= EVIDENCE_ROWS

    @cached_property
    def time(self) -> tuple[str, str] | None:
        """(what it is, its unit) of a column of times."""
        if not self.values or self.parse:
            return None
        by_schema = {value.unit for value in self.values if isinstance(value, Moment)}
        if len(by_schema) == 1 and (unit := UNIT_OF.get(by_schema.pop())):
            return "a time", unit
        if all(iso_ms(value) is not None for value in self.values):
            return ("a time as text" if self.has_text else "a timestamp"), "ms"
        wholes = self.wholes
        if not wholes:
            return None
        unit = next((name for name, per_s in _UNITS if _FROM_S <= min(wholes) / per_s <= _TO_S), None)
        if unit is None or max(wholes) / dict(_UNITS)[unit] > _TO_S:
            return None
        rises = len(wholes) >= EVIDENCE_ROWS and _rises(wholes)
        return (f"unix time in {unit}", unit) if rises or not _TIME_WORDS.isdisjoint(words_of(self.name)) else None

    @cached_property
    def event_time_evidence(self) -> int:
        """Returns the evidence for an event time: 2 if the name suggests one, plus 1 if the times rise row by row."""
        times = self.wholes if self.numeric else [iso_ms(value) or 0 for value in self.values]
        rises = len(self.values) >= EVIDENCE_ROWS and _rises(times or [])
        return 2 * ("_".join(words_of(self.name)) in _EVENT_TIMES) + rises

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
        """Returns whether it is whole numbers that go up by the same step from row to row."""
        wholes = self.wholes
        if not wholes or len(wholes) < EVIDENCE_ROWS:
            return False
        steps = {b - a for a, b in pairwise(wholes)}
        return len(steps) == 1 and steps != {0}

    @property
    def one_a_row(self) -> bool:
        """Returns whether nearly every row has its own value."""
        return len(self.values) >= EVIDENCE_ROWS and len(self.distinct) > 0.9 * len(self.values)

    @property
    def identifies(self) -> bool:
        """Returns whether it is named as an id, and nearly every row has its own."""
        named = not _ID_WORDS.isdisjoint(words_of(self.name)[-1:])
        return named and self.one_a_row and (self.wholes is not None or not self.numeric)

    @property
    def is_quantity(self) -> bool:
        """Returns whether its name says that it counts or measures."""
        return not _QUANTITY_WORDS.isdisjoint(words_of(self.name))

    def is_named_id(self) -> bool:
        words = words_of(self.name)
        return not self.is_quantity and bool(words) and words[-1] in _ID_WORDS  # items are a count, item is an id

    @property
    def is_named_row(self) -> bool:
        """Returns whether it is named as the id of a row."""
        return "_".join(words_of(self.name)) in _ROW_IDS

    @property
    def too_large(self) -> bool:
        """Returns whether it has whole numbers that float32 cannot tell from the next."""
        return self.wholes is not None and max(map(abs, self.wholes), default=0) > EXACT_FLOAT32


def sampled(rows: Sequence[Row], names: Iterable[str]) -> dict[str, SampledColumn]:
    """The columns of a sample. A file has a comma before the fraction in all of them or in none."""
    found = {name: SampledColumn.of(rows, name) for name in names}
    if any(each.parse == DECIMAL_COMMA for each in found.values()):
        found = {name: SampledColumn.of(rows, name, commas=True) for name in found}
    return found


def _rises(numbers: Sequence[int]) -> bool:
    """Returns whether most are no smaller than the one before, and some are larger."""
    forward = sum(a <= b for a, b in pairwise(numbers))
    return len(numbers) > 1 and forward >= 0.95 * (len(numbers) - 1) and numbers[0] < numbers[-1]
