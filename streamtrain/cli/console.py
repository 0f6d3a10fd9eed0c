"""Tables and colours for people, through rich. NO_COLOR and pipes give plain text."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterable, Sequence
from typing import IO, cast

from rich.console import Console
from rich.table import Table
from rich.text import Text

PIPE_WIDTH = 10_000  # columns where there is no terminal: nothing is cut or wrapped there
_BLANKS = re.compile(r" +$", re.MULTILINE)


class _Unpadded(io.TextIOBase):
    """Standard output without the blanks that fill up a table's last column."""

    def write(self, text: str) -> int:
        return sys.stdout.write(_BLANKS.sub("", text))

    def flush(self) -> None:
        sys.stdout.flush()


def console() -> Console:
    """Standard output."""
    if sys.stdout.isatty():
        return Console(soft_wrap=True, highlight=False)
    return Console(file=cast("IO[str]", _Unpadded()), width=PIPE_WIDTH, soft_wrap=True, highlight=False)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A plain table."""
    grid = Table(box=None, header_style="bold", pad_edge=False, show_header=any(columns))
    for column in columns:
        grid.add_column(column, overflow="fold")
    for row in rows:
        grid.add_row(*(cell if isinstance(cell, Text) else Text("" if cell is None else str(cell)) for cell in row))
    return grid
