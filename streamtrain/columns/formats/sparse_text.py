"""Lines of text that hold a label, perhaps a weight, and features by index: what such formats share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from streamtrain.columns.column import Column
from streamtrain.columns.formats._cells import plain_columns
from streamtrain.columns.formats.parsed import Pairs, Parsed, Unusable, registry_frame
from streamtrain.columns.paths import cell_at
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake

LABEL = "label"
WEIGHT = "weight"
TAG = "tag"
FEATURES = "features"
_ODD = frozenset(" \t\r\n|:#'")
_PARTS = {LABEL: "a label", WEIGHT: "a weight", TAG: 'one with path = "tag"'}


class Features(list[Any]):
    """A line's, side by side; of each of its namespaces, in order, the name and how many there are up to its end."""

    def __init__(self) -> None:
        super().__init__()
        self.namespaces: list[tuple[bytes, int]] = []

    def of(self, column: Column, others: frozenset[bytes]) -> list[Any]:
        """Returns the features that a column takes, beside columns of the namespaces `others`."""
        wanted = None if column.namespaces is None else {name.encode() for name in column.namespaces}
        found, start = [], 0
        for name, end in self.namespaces:
            if name in wanted if wanted is not None else name not in others:
                found += self[start:end]
            start = end
        return found


def names(schema: Schema) -> dict[str, str]:
    """The columns that a line's label, weight and tag are."""
    found = {role: told[0] for role in (LABEL, WEIGHT) if (told := schema.column_of(role)) is not None}
    tags = [name for name, column in schema.columns if _is_tag(column) and name not in found.values()]
    return found | dict.fromkeys([TAG], tags[0]) if tags else found


def features(schema: Schema) -> dict[str, Column]:
    """The columns that a line's features are."""
    return {name: column for name, column in schema.columns if column.entry.cells(column) == "pairs"}


def _is_tag(column: Column) -> bool:
    return column.path == TAG and column.entry.cells(column) == "value"


def named(schema: Schema, row: Any) -> Any:
    """A row of a line by the columns' names, its tag where that stands; what is no column's is left out."""
    if not isinstance(row, Pairs):
        return row
    by, wide, given = names(schema), features(schema), dict(row)
    others = frozenset(name.encode() for column in wide.values() for name in column.namespaces or ())
    cells = [(part if part == TAG else by[part], value) for part, value in row if part in by]
    return Pairs([*cells, *((name, given[FEATURES].of(column, others)) for name, column in wide.items())])


def mistakes(schema: Schema, form: str, more: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """(column, what is wrong) of columns that no line gives, which has a label, features and `more`."""
    parts = LABEL, *more
    wide, told = features(schema), [name for part, name in names(schema).items() if part in parts]
    rest = [name for name, column in wide.items() if column.namespaces is None]
    expected = f"{', '.join(_PARTS[part] for part in parts)} or one column of kind sparse"
    for name in schema.record_names - {*told, *wide}:
        yield name, f"expected {expected} for {form}, got another column"
    if not wide:
        yield next(iter(dict(schema.columns))), f"expected a column of kind sparse for {form}, got none"
    for name in rest[1:]:
        yield name, f"expected one column of kind sparse that names no namespaces for {form}, got {rest[0]} too"
    taken: dict[str, str] = {}
    for name, column in wide.items():
        for each in column.namespaces or ():
            if each in taken:
                yield name, f"namespaces: expected each in one column, got {each!r} in {taken[each]} too"
            taken.setdefault(each, name)


def encode(schema: Schema, columns: Mapping[str, Any], line: Callable[..., str]) -> bytes:
    """A line for each row of columns."""
    cells = plain_columns(columns)
    count = max(map(len, cells.values()), default=0)
    return encode_rows(schema, [{name: column[row] for name, column in cells.items()} for row in range(count)], line)


def encode_rows(schema: Schema, rows: Sequence[Any], line: Callable[..., str]) -> bytes:
    """`line(label, weight, tag, features)` of each row, a dict: words, and of each of its columns of features the first
    namespace (None: it names none) and its pairs, of words. UserMistake for what is no word."""
    by, wide, made = names(schema), features(schema), []
    for row in rows:
        if not isinstance(row, Mapping):
            raise UserMistake(f"rows: expected dicts, got {type(row).__name__}")
        cell = {part: _word(cell_at(row, schema.paths.get(name, (name,)))) for part, name in by.items()}
        parts = [
            (column.namespaces[0] if column.namespaces else None, _pairs(cell_at(row, schema.paths.get(name, (name,)))))
            for name, column in wide.items()
        ]
        written = line(*(cell.get(part, "") for part in (LABEL, WEIGHT, TAG)), parts)
        made.append((written or " ") + "\n")  # a line that holds nothing is no row
    return "".join(made).encode()


def _pairs(given: Any) -> list[tuple[str, str]]:
    pairs = (given.items() if isinstance(given, Mapping) else given) or ()
    return [(_word(index), _word(value)) for index, value in pairs]


def _word(cell: Any) -> str:
    if cell is None:
        return ""
    word = str(int(cell)) if isinstance(cell, bool) else repr(cell) if isinstance(cell, float) else str(cell)
    if _ODD & set(word):
        raise UserMistake(f"rows: expected a word without spaces, bars and colons, got {cell!r}")
    return word


def parse(record: bytes, row: Callable[[bytes], Any]) -> Parsed:
    """`row(line)` of each line that holds something."""
    parsed = Parsed(broken=registry_frame(record), written=True, maps_of_arrays=False, by_role=True)
    if parsed.broken is None:
        lines = [line for piece in record.split(b"\n") if (line := piece.lstrip(b"\r"))]
        parsed.many = True
        parsed.rows = [row(line.removesuffix(b"\r")) for line in lines]
    return parsed


def text(word: bytes) -> Any:
    """A word; None where there is none."""
    try:
        return word.decode() or None
    except UnicodeDecodeError:
        return Unusable("text that is not UTF-8")
