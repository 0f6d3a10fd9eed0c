"""Files whose lines are records of a format as they stand."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from streamtrain.columns.formats import format_names, is_lines
from streamtrain.columns.formats.parsed import Unusable
from streamtrain.columns.line_rows import LineRows
from streamtrain.columns.rejected import Unreadable
from streamtrain.files.column_selection import Row
from streamtrain.files.source import Source

_LINES = 1024  # decoded at once


def is_records(kind: str) -> bool:
    """Returns whether a file's lines are records of a format as they stand: of texts that hold features by index."""
    return kind in format_names() and is_lines(kind)


def text_lines(source: Source, comment: bytes = b"\n") -> Iterator[tuple[int, bytes]]:
    """The lines of a file that hold something, but for those that begin with `comment`."""
    source.begin()
    return ((number, line) for number, line in source.lines() if not line.lstrip().startswith(comment))


def format_rows(source: Source, format: str, comment: bytes = b"\n") -> Iterator[tuple[int, Row | Unreadable]]:
    """The rows of such a file."""
    reader, lines = LineRows(format), text_lines(source, comment)
    while block := list(islice(lines, 1 if source.is_live else _LINES)):
        rows, _ = reader.read(b"\n" + b"\n".join(line for _, line in block))  # a break: no registry's frame
        for (number, line), row in zip(block, rows, strict=True):
            if isinstance(row, Unusable) or any(isinstance(cell, Unusable) for cell in row.values()):
                got = line.strip()[:60].decode(errors="replace")
                yield number, Unreadable(f"expected a line of {format}, got {got!r}")
            else:
                yield number, row
