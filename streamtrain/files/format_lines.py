"""Files whose lines are records of a format as they stand."""

from __future__ import annotations

from collections.abc import Iterator

from streamtrain.columns.formats import format_names, parse
from streamtrain.columns.formats.parsed import contains_unusable
from streamtrain.columns.rejected import Unreadable
from streamtrain.files.source import Source
from streamtrain.files.wanted import Row


def is_records(kind: str) -> bool:
    """Returns whether a file's lines are records of a format as they stand: of texts that hold features by index."""
    return kind in format_names() and parse(kind, b"").by_role


def text_lines(source: Source, comment: bytes = b"\n") -> Iterator[tuple[int, bytes]]:
    """The lines of a file that hold something, but for those that begin with `comment`."""
    source.begin()
    return ((number, line) for number, line in source.lines() if not line.lstrip().startswith(comment))


def format_rows(source: Source, format: str, comment: bytes = b"\n") -> Iterator[tuple[int, Row | Unreadable]]:
    """The rows of such a file."""
    for number, line in text_lines(source, comment):
        for row in parse(format, line).rows:
            if not isinstance(row, list) or contains_unusable(row):
                got = line.strip()[:60].decode(errors="replace")
                yield number, Unreadable(f"expected a line of {format}, got {got!r}")
            else:
                yield number, dict(row)
