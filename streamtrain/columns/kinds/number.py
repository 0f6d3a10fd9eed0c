"""A number to learn from, side by side with the other numbers in the slot."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from streamtrain.columns.kinds.kind import Block, Named
from streamtrain.columns.kinds.standardize import Standardized, StandardizedKind
from streamtrain.compute.input import NUMBERS, dtype_of

HELP = "a number, standardised where asked for"


class Number(StandardizedKind[Standardized]):
    block = NUMBERS
    options = Standardized

    def blocks(self, columns: Named[Standardized], loss: str) -> list[Block]:
        dtype = dtype_of(NUMBERS, (column.standardized() for _, column in columns))
        return [Block(self.block, dtype, len(columns))] if columns else []

    def engine_inputs(self, columns: Named[Standardized], loss: str) -> dict[str, Any]:
        return {"numbers": len(columns), "standardize": [column.standardized() for _, column in columns]}

    def holds(self, column: Standardized) -> str:
        return "number"

def exact_numbers(columns: Named[Any], read: AbstractSet[str]) -> frozenset[str]:
    """Returns the names of those of the job's numbers that a record must not round to float32, because the slot holds
    doubles or a transform reads them. `read`: what transforms read."""
    has_doubles = any(column.standardized() for _, column in columns)
    return frozenset(name for name, _ in columns if has_doubles or name in read)


KIND = Number()
