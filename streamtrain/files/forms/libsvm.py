"""Files of libsvm's lines. A # begins a comment, which may be a whole line, as in those that scikit-learn writes."""

from __future__ import annotations

from collections.abc import Iterator

from streamtrain.columns.forms import FileRows
from streamtrain.columns.rejected import Unreadable
from streamtrain.files.blocks import Size
from streamtrain.files.column_selection import ColumnSelection, Row
from streamtrain.files.format_lines import format_blocks, format_rows, text_lines
from streamtrain.files.source import Source

HELP = "libsvm's lines"
SUFFIXES = (".libsvm", ".svm", ".svmlight")
TEXT = True
_COMMENT = b"#"


def rows(source: Source) -> Iterator[tuple[int, Row | Unreadable]]:
    return format_rows(source, "libsvm", _COMMENT)


def blocks(source: Source, selection: ColumnSelection, size: Size) -> Iterator[FileRows]:
    return format_blocks(source, selection, size, "libsvm", _COMMENT)


def count(source: Source) -> int:
    return sum(1 for _ in text_lines(source, _COMMENT))
