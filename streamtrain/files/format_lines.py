"""Files whose lines are records of a format as they stand."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from streamtrain.columns.formats import format_names, is_lines
from streamtrain.columns.formats.parsed import Unusable
from streamtrain.columns.formats.sparse_text import FEATURES, LABEL, TAG, WEIGHT
from streamtrain.columns.kinds.category import MOST_BUCKETS
from streamtrain.columns.kinds.kind import LARGEST
from streamtrain.columns.rejected import Unreadable
from streamtrain.columns.rows import RowReader
from streamtrain.columns.schema import Schema
from streamtrain.files.column_selection import Row
from streamtrain.files.source import Source

_LINES = 1024  # decoded at once
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


def format_rows(source: Source, format: str, comment: bytes = b"\n") -> Iterator[tuple[int, Row | Unreadable]]:
    """The rows of such a file: texts of label, weight and tag, and features by index."""
    reader = RowReader(Schema.from_columns(_PARTS, "mean_squared_error"), format, texts=True)
    lines = text_lines(source, comment)
    while block := list(islice(lines, 1 if source.is_live else _LINES)):
        rows = reader.rows(b"\n" + b"\n".join(line for _, line in block)).rows  # a break: no registry's frame
        for (number, line), row in zip(block, rows, strict=True):
            reason = row.reason if isinstance(row, Unusable) else _unfit(row)
            yield number, row if reason is None else Unreadable(reason, line, format)


def _unfit(row: Row) -> str | None:
    """Returns why no column can take the features of a row; None where one can."""
    for index, value in row.get(FEATURES, ()):
        if index >= MOST_BUCKETS:
            return f"$.{FEATURES}: expected an index below {MOST_BUCKETS}, got {index}"
        if abs(value) > LARGEST:
            return f"$.{FEATURES}: expected a number from -1e18 to 1e18, whose square fits float32, got {value}"
    return None
