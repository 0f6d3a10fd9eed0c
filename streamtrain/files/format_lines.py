"""Files whose lines are records of a format as they stand."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

from streamtrain.columns.formats import Format, for_columns, format_names, has_namespaces, is_lines
from streamtrain.columns.formats.parsed import Unusable
from streamtrain.columns.formats.sparse_text import FEATURES, LABEL, TAG, WEIGHT, features, names
from streamtrain.columns.forms import FileRows
from streamtrain.columns.kinds.category import MOST_BUCKETS
from streamtrain.columns.kinds.kind import LARGEST
from streamtrain.columns.rejected import Unreadable
from streamtrain.columns.rows import RowReader
from streamtrain.columns.schema import Schema
from streamtrain.files.blocks import Size, in_blocks
from streamtrain.files.column_selection import ColumnSelection, Row
from streamtrain.files.source import Source

_LINES = 1024  # decoded at once
_ROW = re.compile(r"^\$\[\d+\]")
_LOSS = "mean_squared_error"  # any: the label stays a text
_PARTS: dict[str, dict[str, Any]] = {
    LABEL: {"role": "label"}, WEIGHT: {"role": "weight"}, TAG: {"kind": "category", "buckets": 2, "path": TAG},
    FEATURES: {"kind": "sparse", "buckets": 2},
}  # fmt: skip


def is_records(kind: str) -> bool:
    """Returns whether a file's lines are records of a format as they stand: of texts that hold features by index."""
    return kind in format_names() and is_lines(kind)


def text_lines(source: Source, comment: bytes = b"\n") -> Iterator[tuple[int, bytes]]:
    """The lines of a file that hold something, but for those that begin with `comment`."""
    source.begin()
    return ((number, line) for number, line in source.lines() if not line.lstrip().startswith(comment))


def format_blocks(
    source: Source, selection: ColumnSelection, size: Size, format: str, comment: bytes = b"\n"
) -> Iterator[FileRows]:
    """Yields the rows of such a file as a job has them: its columns get a line's parts by role and kind."""
    schema = selection.schema
    wide = _wide(format, schema)
    options = for_columns(format, [column for name, column in schema.columns if name in wide])
    columns = tuple(each for each in schema.columns if each[0] in {*wide, *names(schema).values()})
    found = _rows(source, comment, options, Schema(columns, schema.loss), wide)
    return in_blocks(source.name, found, selection, size)


def format_rows(source: Source, format: str, comment: bytes = b"\n") -> Iterator[tuple[int, Row | Unreadable]]:
    """The rows of such a file: texts of label, weight and tag, and features by index."""
    return _rows(source, comment, format, Schema.from_columns(_PARTS, _LOSS), [FEATURES])


def _wide(format: str, schema: Schema) -> list[str]:
    """Returns the columns that get a line's features: those with namespaces, and one for the rest, which is that
    called features, else the first."""
    rest = [name for name, column in features(schema).items() if column.namespaces is None]
    others = [name for name in features(schema) if name not in rest] if has_namespaces(format) else []
    return [*others, *([FEATURES] if FEATURES in rest else rest[:1])]


def _rows(
    source: Source, comment: bytes, format: Format, schema: Schema, wide: Collection[str]
) -> Iterator[tuple[int, Row | Unreadable]]:
    name = format if isinstance(format, str) else str(format["name"])
    reader, lines = RowReader(schema, format, texts=True), text_lines(source, comment)
    while block := list(islice(lines, 1 if source.is_live else _LINES)):
        rows = reader.rows(b"\n" + b"\n".join(line for _, line in block)).rows  # a break: no registry's frame
        for (number, line), row in zip(block, rows, strict=True):
            reason = _in_line(row) if isinstance(row, Unusable) else _unfit(row, wide)
            yield number, row if reason is None else Unreadable(reason, line, name)


def _in_line(row: Unusable) -> str:
    """Returns the reason without the row's number among the lines read together."""
    place = _ROW.sub("$", row.path or "$")
    reason = row.reason.removeprefix(f"{row.path}: ")
    return reason if place == "$" else f"{place}: {reason}"


def _unfit(row: Row, wide: Collection[str]) -> str | None:
    """Returns why no column can take a cell of a row; None where one can."""
    for name, cell in row.items():
        if isinstance(cell, Unusable):
            return f"$.{name}: {cell.reason}"
    for name in wide:
        for index, value in row.get(name) or ():
            if index >= MOST_BUCKETS:
                return f"$.{name}: expected an index below {MOST_BUCKETS}, got {index}"
            if abs(value) > LARGEST:
                return f"$.{name}: expected a number from -1e18 to 1e18, whose square fits float32, got {value}"
    return None
