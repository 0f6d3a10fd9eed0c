"""How much a row counts: a float32 not below 0 in the slot, 1 where no column says it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamtrain.columns.kinds.cell import Cell, float32
from streamtrain.columns.kinds.kind import Block, Kind, Named, Wrong
from streamtrain.columns.kinds.parsed import Parsed, number_of, number_problems

HELP = "how much a row counts"


class Weight(Kind[Parsed]):
    role = "weight"
    in_requests = "optional"
    block = "weight"
    options = Parsed

    def problems(self, column: Parsed) -> Iterator[str]:
        yield from number_problems(column)

    def missing_problem(self, column: Parsed) -> str | None:
        problem = super().missing_problem(column)
        if problem is None and not isinstance(column.missing, str) and column.missing < 0:
            return f"expected a weight not below 0, got {column.missing!r}"
        return problem

    def blocks(self, columns: Named[Parsed], loss: str) -> list[Block]:
        return [Block(self.block, "f32", 1)]

    def constants(self, columns: Named[Parsed]) -> dict[str, float]:
        return {} if columns else {self.block: 1.0}

    def meaning(self, name: str, column: Parsed, loss: str, cell: Cell) -> Any:
        exact = number_of(column, cell)
        number = float32(exact)
        if isinstance(exact, str) or exact < 0:
            raise Wrong
        return number

    def native_options(self, column: Parsed, loss: str) -> dict[str, Any]:
        return {"parse": column.parse or ""}

    def takes_text(self, column: Parsed) -> bool:
        return column.parse is not None

    def is_numeric(self, column: Parsed) -> bool:
        return True

    def is_float(self, column: Parsed) -> bool:
        return True


KIND = Weight()
