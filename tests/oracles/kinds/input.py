"""A number, a text or a time that transforms read and the model does not."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.columns.column import Column
from tests.oracles.kinds import Cell, Oracle, Wrong, category, time
from tests.oracles.kinds._numbers import number_in, number_of


class Input(Oracle):
    def meaning(self, name: str, column: Column, loss: str, cell: Cell) -> Any:
        holds = column.entry.holds(column)
        if holds == "time":
            return time.ORACLE.meaning(name, column, loss, cell)
        if holds == "text":
            return category.ORACLE.read(name, column, loss, cell)
        found = number_of(column, cell)
        if isinstance(found, str):
            raise Wrong
        try:
            number = float(found)
        except OverflowError:
            raise Wrong from None
        if not np.isfinite(number):
            raise Wrong
        return number

    def read(self, name: str, column: Column, loss: str, cell: Cell) -> Any:
        return self.meaning(name, column, loss, cell)

    def written(self, column: Column, loss: str, text: str) -> Cell:
        holds = column.entry.holds(column)
        if holds == "time":
            return time.ORACLE.written(column, loss, text)
        return number_in(column, text) if holds == "number" else text


ORACLE = Input()
