"""Files of Vowpal Wabbit's text."""

from __future__ import annotations

from collections.abc import Iterator

from streamtrain.columns.forms import FileRows
from streamtrain.columns.rejected import Unreadable
from streamtrain.files.blocks import Size
from streamtrain.files.column_selection import ColumnSelection, Row
from streamtrain.files.format_lines import format_blocks, format_rows, text_lines
from streamtrain.files.source import Source

HELP = "Vowpal Wabbit's text"
SUFFIXES = (".vw",)
TEXT = True


def rows(source: Source) -> Iterator[tuple[int, Row | Unreadable]]:
    return format_rows(source, "vw")


def blocks(source: Source, selection: ColumnSelection, size: Size) -> Iterator[FileRows]:
    return format_blocks(source, selection, size, "vw")


def count(source: Source) -> int:
    return sum(1 for _ in text_lines(source))
