"""A number: itself, which its block rounds where it holds float32."""

from __future__ import annotations

from typing import Any

from streamtrain.columns.column import Column
from tests.oracles.kinds import Cell
from tests.oracles.kinds._numbers import NumberOracle, float32, number_of


class Number(NumberOracle):
    def meaning(self, name: str, column: Column, loss: str, cell: Cell) -> Any:
        found = number_of(column, cell)
        float32(found)  # fits, or is wrong
        return float(found)

    def meaning_of_missing(self, name: str, column: Column, loss: str) -> Any:
        return column.entry.stand_in(column, loss)


ORACLE = Number()
