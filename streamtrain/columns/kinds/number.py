"""A number to learn from: a float32 in the slot, side by side with the other numbers."""

from __future__ import annotations

from typing import Any

from streamtrain.columns.kinds.cell import Cell, float32
from streamtrain.columns.kinds.kind import Block, Named
from streamtrain.columns.kinds.parsed import NumberKind, number_of
from streamtrain.columns.kinds.standardize import Standardized

HELP = "a number, standardised where asked for"


class Number(NumberKind[Standardized]):
    block = "numbers"
    options = Standardized

    def blocks(self, columns: Named[Standardized], loss: str) -> list[Block]:
        return [Block(self.block, "f32", len(columns))] if columns else []

    def engine_inputs(self, columns: Named[Standardized], loss: str) -> dict[str, Any]:
        return {"numbers": len(columns), "standardize": [column.standardized() for _, column in columns]}

    def holds(self, column: Standardized) -> str:
        return "number"

    def read_stand_in(self, column: Standardized, loss: str) -> float:
        return float(float32(self.stand_in(column, loss)))

    def meaning(self, name: str, column: Standardized, loss: str, cell: Cell) -> Any:
        return float32(number_of(column, cell))


KIND = Number()
