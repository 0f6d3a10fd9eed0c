"""How much a row counts: a float32 not below 0 in the slot, 1 where no column says it."""

from __future__ import annotations

from typing import Any

from streamtrain.columns.kinds.cell import Cell, float32
from streamtrain.columns.kinds.kind import Block, Kind, Named, Settings, Wrong

HELP = "how much a row counts"


class Weight(Kind[Settings]):
    role = "weight"
    in_requests = "optional"
    block = "weight"
    options = Settings

    def missing_problem(self, column: Settings) -> str | None:
        problem = super().missing_problem(column)
        if problem is None and not isinstance(column.missing, str) and column.missing < 0:
            return f"expected a weight not below 0, got {column.missing!r}"
        return problem

    def blocks(self, columns: Named[Settings], loss: str) -> list[Block]:
        return [Block(self.block, "f32", 1)]

    def constants(self, columns: Named[Settings]) -> dict[str, float]:
        return {} if columns else {self.block: 1.0}

    def meaning(self, name: str, column: Settings, loss: str, cell: Cell) -> Any:
        number = float32(cell)
        if isinstance(cell, str) or cell < 0:
            raise Wrong
        return number

    def is_float(self, column: Settings) -> bool:
        return True


KIND = Weight()
