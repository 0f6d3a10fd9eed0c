"""Lines of text that hold a label, perhaps a weight, and features by index: what such formats share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from streamtrain.columns.formats._cells import plain_columns
from streamtrain.columns.formats.parsed import Pairs, Parsed, Unusable, registry_frame
from streamtrain.columns.paths import cell_at
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake

LABEL = "label"
WEIGHT = "weight"
FEATURES = "features"
_ODD = frozenset(" \t\r\n|:#'")


def names(schema: Schema) -> dict[str, str]:
    """The columns that the parts of a line are."""
    found = {role: told[0] for role in (LABEL, WEIGHT) if (told := schema.column_of(role)) is not None}
    pairs = [name for name, column in schema.columns if column.entry.cells(column) == "pairs"]
    return found | ({FEATURES: pairs[0]} if pairs else {})


def named(schema: Schema, row: Any) -> Any:
    """A row of a line by the columns' names; those of which there is no column are left out."""
    by = names(schema)
    return Pairs((by[part], value) for part, value in row if part in by) if isinstance(row, Pairs) else row


def mistakes(schema: Schema, form: str) -> Iterator[tuple[str, str]]:
    """(column, what is wrong) of columns that no line gives."""
    parts = names(schema).values()
    for name in schema.record_names - set(parts):
        yield name, f"expected a label, a weight or one column of kind sparse for {form}, got another column"
    if FEATURES not in names(schema):
        yield next(iter(dict(schema.columns))), f"expected a column of kind sparse for {form}, got none"


def encode(schema: Schema, columns: Mapping[str, Any], line: Callable[..., str]) -> bytes:
    """A line for each row of columns."""
    cells = plain_columns(columns)
    count = max(map(len, cells.values()), default=0)
    return encode_rows(schema, [{name: column[row] for name, column in cells.items()} for row in range(count)], line)


def encode_rows(schema: Schema, rows: Sequence[Any], line: Callable[..., str]) -> bytes:
    """`line(label, weight, features)` of each row, words: a dict. UserMistake for what is no word."""
    by, made = names(schema), []
    for row in rows:
        if not isinstance(row, Mapping):
            raise UserMistake(f"rows: expected dicts, got {type(row).__name__}")
        cell = {part: cell_at(row, schema.paths.get(name, (name,))) for part, name in by.items()}
        given = cell.get(FEATURES) or ()
        pairs = given.items() if isinstance(given, Mapping) else given
        features = "".join(f" {_word(index)}:{_word(value)}" for index, value in pairs)
        made.append(line(_word(cell.get(LABEL)), _word(cell.get(WEIGHT)), features) + "\n")
    return "".join(made).encode()


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
