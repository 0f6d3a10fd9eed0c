"""The weight of a row: a number not below 0."""

from __future__ import annotations

from typing import Any

from streamtrain.columns.column import Column
from tests.oracles.kinds import Cell, Wrong
from tests.oracles.kinds._numbers import NumberOracle, float32, number_of


class Weight(NumberOracle):
    def meaning(self, name: str, column: Column, loss: str, cell: Cell) -> Any:
        exact = number_of(column, cell)
        number = float32(exact)
        if isinstance(exact, str) or exact < 0:
            raise Wrong
        return number


ORACLE = Weight()
