"""A line that holds up a guarantee or a check."""

from __future__ import annotations

from typing import NamedTuple


class Guard(NamedTuple):
    """`old` stands exactly once in `file`. With `new` in its place, by default nothing, the test function `test` fails.

    A name that several files have begins with the end of its file's path and `::`.
    """

    breaks: str  # a sentence
    file: str
    old: str
    test: str
    new: str = ""


def never(breaks: str, file: str, condition: str, test: str) -> Guard:
    """A guard whose condition never holds."""
    return Guard(breaks, file, f"if {condition}:", test, "if False:")
