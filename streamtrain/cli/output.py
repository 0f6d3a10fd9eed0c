"""The output of a command: documents and lines on stdout, as JSON or for people. NO_COLOR and pipes give plain text."""

from __future__ import annotations

import base64
import io
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any, cast

from rich.console import Console
from rich.table import Table
from rich.text import Text

PIPE_WIDTH = 10_000  # columns where there is no terminal: nothing is cut or wrapped there
_BLANKS = re.compile(r" +$", re.MULTILINE)


def _plain(value: Any) -> Any:
    """JSON for what json does not know: bytes as text where they are, else base64; NumPy values as Python's."""
    if isinstance(value, bytes | bytearray | memoryview):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(bytes(value)).decode()}
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


class _Unpadded(io.TextIOBase):
    """Standard output without the blanks that fill up a table's last column."""

    def write(self, text: str) -> int:
        return sys.stdout.write(_BLANKS.sub("", text))

    def flush(self) -> None:
        sys.stdout.flush()


class Output:
    """The writer of a command's result. With `as_json`, only `document` and `line` write."""

    def __init__(self, as_json: bool, *, quiet: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet
        if sys.stdout.isatty():
            self.console = Console(soft_wrap=True, highlight=False)
        else:
            self.console = Console(file=cast("IO[str]", _Unpadded()), width=PIPE_WIDTH, soft_wrap=True, highlight=False)

    def document(self, document: Mapping[str, Any], *human: Any) -> None:
        """The result of the command: as JSON, else what is given for people."""
        if self.as_json:
            print(json.dumps(document, default=_plain, ensure_ascii=False))
        else:
            self.say(*human)

    def line(self, line: Mapping[str, Any], human: str | None = None) -> None:
        """One of many: a JSON line, else a line of text."""
        if self.as_json or human is None:
            sys.stdout.write(json.dumps(line, default=_plain, ensure_ascii=False) + "\n")
        else:
            sys.stdout.write(human + "\n")
        sys.stdout.flush()

    def say(self, *human: Any) -> None:
        """For people only."""
        if not self.as_json:
            for item in human:
                self.console.print(item, markup=False) if isinstance(item, str) else self.console.print(item)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A plain table."""
    grid = Table(box=None, header_style="bold", pad_edge=False, show_header=any(columns))
    for column in columns:
        grid.add_column(column, overflow="fold")
    for row in rows:
        grid.add_row(*(cell if isinstance(cell, Text) else Text("" if cell is None else str(cell)) for cell in row))
    return grid


def age_text(age_s: float) -> str:
    """An age in the unit one would say it in."""
    for unit, size_s in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if age_s >= size_s:
            return f"{age_s / size_s:.1f} {unit}"
    return f"{age_s:.1f} s" if age_s < 10 else f"{age_s:.0f} s"


def count_text(count: int) -> str:
    """A count as one says it: 3.4 M."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**4)):
        if count >= size:
            return f"{count / size:.1f} {unit}" if unit != "k" else f"{count / 1_000:.0f} k"
    return f"{count:,}"
