"""A list of as many numbers as the column has."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.columns.column import Column
from tests.oracles.kinds import Wrong
from tests.oracles.kinds._numbers import NumberOracle, float32, number_of


class Vector(NumberOracle):
    def meaning_of_list(self, name: str, column: Column, loss: str, cell: list[Any]) -> list[Any]:
        if len(cell) != column.size or None in cell:
            raise Wrong
        return [[float32(number_of(column, each)) for each in cell]]

    def meaning_of_missing(self, name: str, column: Column, loss: str) -> Any:
        return [[np.float32(column.entry.stand_in(column, loss))] * column.size]


ORACLE = Vector()
