"""The meaning of cells in plain Python: a file for each of columns/kinds that is decoded, by the same name, with its
ORACLE."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from streamtrain.columns.column import Column
from streamtrain.columns.formats.parsed import TextHash
from streamtrain.columns.kinds import kinds
from streamtrain.columns.kinds.kind import Kind

Cell = bool | int | float | str


class Wrong(Exception):
    """A cell does not fit its column."""


class Oracle:
    """The slow half of a kind. `name`: of the column; `loss`: of its head, or the job's."""

    def meaning(self, name: str, column: Column, loss: str, cell: Any) -> Any:
        """Returns what a cell becomes in its block. Raises Wrong if the cell does not fit."""
        raise NotImplementedError

    def meaning_of_list(self, name: str, column: Column, loss: str, cell: list[Any]) -> list[Any]:
        """Returns the elements that a list becomes, for each of its blocks. Those that are missing are None; a pair,
        and an entry of a map, is a list."""
        raise Wrong

    def meaning_of_hash(self, name: str, column: Column, hashed: TextHash) -> Any:
        """Returns what a text becomes of which the record has the hash alone."""
        raise Wrong

    def meaning_of_missing(self, name: str, column: Column, loss: str) -> Any:
        """Returns what a missing cell becomes in its block."""
        return self.meaning(name, column, loss, column.entry.stand_in(column, loss))

    def read(self, name: str, column: Column, loss: str, cell: Cell) -> Any:
        """Returns a cell as transforms read it: a float, an int where it is a time, or a text."""
        found = self.meaning(name, column, loss, cell)
        return found if column.entry.holds(column) == "time" else float(found)

    def written(self, column: Column, loss: str, text: str) -> Cell:
        """Returns the cell that a text stands for in a text-only format. Raises Wrong if the kind cannot read it."""
        return text


@cache
def _oracles() -> dict[Kind[Any], Oracle]:
    return {kind: import_module(f"{__name__}.{name}").ORACLE for name, kind in kinds().items() if kind.decoded}


def of(column: Column) -> Oracle:
    """Returns the oracle of a column's kind."""
    return _oracles()[column.entry]
