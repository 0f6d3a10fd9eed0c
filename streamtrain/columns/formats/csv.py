"""CSV records (RFC 4180): a line is a row, its cells in column order, or in that of the names in the first line.

All cells are text; an empty one is missing, in quotes too. A line that holds nothing is no row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamtrain.compute.options import Flag, Option, Word

HELP = "CSV text: a line a row, its cells in the order of the columns or of the names in the first line"


@dataclass(frozen=True, kw_only=True)
class Delimiter(Option):
    """A character that no number has, nor a line's end or a quote."""

    def takes(self) -> str:
        return 'one ASCII character but letters, digits, quotes, line breaks, "+", "-" and "."'

    def read(self, given: Any) -> str:
        if not isinstance(given, str) or len(given) != 1 or not given.isascii():
            raise ValueError
        if given.isalnum() or given in "\"'\r\n+-.\0":
            raise ValueError
        return given


OPTIONS = {
    "delimiter": Delimiter(default=",", help=r'between cells; "\t" for TSV'),
    "header": Flag(default=False, help="whether the first line of each record names its cells; else they are in order"),
    "quote": Word(of=('"', "'"), default='"', help="around cells with delimiters, line breaks or quotes in them"),
}
