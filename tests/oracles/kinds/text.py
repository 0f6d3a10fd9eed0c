"""Text as the buckets of its words or letters, and of the runs of them."""

from __future__ import annotations

from functools import cache
from typing import Any

from streamtrain.columns.characters import capitals, in_word
from streamtrain.columns.column import Column
from tests.oracles.kinds import Cell, Oracle
from tests.oracles.kinds._numbers import text_of
from tests.oracles.kinds.category import hash_of, kept


class Text(Oracle):
    def meaning(self, name: str, column: Column, loss: str, cell: Cell) -> Any:
        entries = entries_of(column, text_of(cell))
        return [kept(column, [hash_of(name, column, each) % column.buckets for each in entries])]


def entries_of(column: Column, text: str) -> list[str]:
    """Returns the words or letters and their runs, in the text's order, at one place the shorter first."""
    text = small(text) if column.lower_case else text
    words = column.by == "word"
    tokens = "".join(each if in_word(each) else " " for each in text).split() if words else list(text)
    least, longest = column.sizes
    return [
        (" " if words else "").join(tokens[first : first + size])
        for first in range(len(tokens))
        for size in range(least, longest + 1)
        if first + size <= len(tokens)
    ]


def small(text: str) -> str:
    """Returns the text in small letters, letter by letter."""
    return text.translate(_mapping())


@cache
def _mapping() -> dict[int, int]:
    ascii_pairs = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
    return ascii_pairs | dict(zip(capitals()[::2], capitals()[1::2], strict=True))


ORACLE = Text()
