"""Rows of files in blocks: so many at a time, whole packs of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from streamtrain.columns.forms import FileRows
from streamtrain.columns.rejected import Unreadable
from streamtrain.files.column_selection import ColumnSelection, Row


class Size:
    """The largest number of rows of a block: a `multiple` of packs, and no more than `limit` in all."""

    def __init__(self, rows: int, multiple: int = 1, limit: int | None = None) -> None:
        self._rows = max(multiple, rows - rows % multiple)
        self.multiple = multiple
        self._left = limit

    @property
    def rows(self) -> int:
        """Returns the most rows that the next block may have; 0 if there is none."""
        return self._rows if self._left is None else min(self._rows, self._left)

    def passed(self, rows: int) -> None:
        if self._left is not None:
            self._left -= rows


def in_blocks(
    name: str, rows: Iterator[tuple[int, Row | Unreadable]], selection: ColumnSelection, size: Size
) -> Iterator[FileRows]:
    """Rows with the job's columns; of each its line or number is known."""
    first, is_checked = 0, False
    while size.rows and (block := list(islice(rows, size.rows))):
        if not is_checked and (row := next((row for _, row in block if isinstance(row, dict)), None)) is not None:
            selection.check_row(row, name)
            is_checked = True
        found = [row if isinstance(row, Unreadable) else selection.row(row) for _, row in block]
        yield FileRows(found, name, first, tuple(line for line, _ in block))
        first += len(block)
        size.passed(len(block))
