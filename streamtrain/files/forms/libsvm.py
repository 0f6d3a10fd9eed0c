"""Files of libsvm's lines."""

from __future__ import annotations

from collections.abc import Iterator

from streamtrain.files.format_lines import format_rows
from streamtrain.files.source import Source
from streamtrain.files.wanted import Row

HELP = "libsvm's lines"
SUFFIXES = (".libsvm", ".svm", ".svmlight")
TEXT = True


def rows(source: Source) -> Iterator[tuple[int, Row]]:
    return format_rows(source, "libsvm")


def count(source: Source) -> int:
    source.begin()
    return sum(1 for _ in source.lines())
