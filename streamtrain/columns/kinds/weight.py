"""The weight of a row: a float32 not below 0 in the slot, 1 if no column gives it."""

from __future__ import annotations

from streamtrain.columns.kinds.kind import Block, Named
from streamtrain.columns.kinds.parsed import NumberKind, Parsed

HELP = "how much a row counts"


class Weight(NumberKind[Parsed]):
    role = "weight"
    in_requests = "optional"
    block = "weight"
    options = Parsed

    def missing_problem(self, column: Parsed) -> str | None:
        problem = super().missing_problem(column)
        if problem is None and not isinstance(column.missing, str) and column.missing < 0:
            return f"expected a weight not below 0, got {column.missing!r}"
        return problem

    def blocks(self, columns: Named[Parsed], loss: str) -> list[Block]:
        return [Block(self.block, "f32", 1)]

    def constants(self, columns: Named[Parsed]) -> dict[str, float]:
        return {} if columns else {self.block: 1.0}

KIND = Weight()
