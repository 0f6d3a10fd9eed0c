"""Rows that are decoded once and held as slots, to be gone over again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.columns.row_plan import Around, LeftOut, RowPlan, cell_path
from streamtrain.compute.evaluator import Evaluator
from streamtrain.compute.metrics import summary
from streamtrain.compute.model import aligned
from streamtrain.compute.spec import Array
from streamtrain.errors import UserMistake

_HEADER = np.dtype(_native.SLOT_HEADER)


def numbered(record: int, row: int) -> str:
    """A row of records that have no other place than their order."""
    return f"record {record}, row {row}"


@dataclass(frozen=True)
class RowCache:
    """Slots of one layout, in order."""

    layout: _native.SlotLayout
    slots: list[Array]

    @classmethod
    def of(
        cls,
        plan: RowPlan,
        records: Iterable[bytes | tuple[bytes, Around]],
        what: str,
        where: Callable[[int, int], str] = numbered,
        bare: bool = True,
        leave_out: Callable[[LeftOut], None] | None = None,
    ) -> RowCache:
        """All rows of records, in slots of the plan's. UserMistake, which begins with `what`, for a row that cannot be
        used and where there is none, unless `leave_out` gets such rows; `where` tells the place of a row of a record,
        both from 0."""
        slots: list[Array] = []
        for batch in plan.batches(records, bare=bare, copy=False):
            for first in batch.left_out:
                if leave_out is not None:
                    leave_out(first)
                    continue
                place = f"{where(first.record, first.row_from)} at {cell_path(first.path)}"
                raise UserMistake(f"{what}: {place}: {first.reason}; mend it, or leave it out")
            if batch.count:
                slot = aligned(plan.layout.slot_bytes)
                slot[:] = plan.slot
                slots.append(slot)
        if not slots and leave_out is None:
            raise UserMistake(f"{what}: expected at least one row, got none")
        return cls(plan.layout, slots)

    @property
    def rows(self) -> int:
        return sum(int(slot[: _HEADER.itemsize].view(_HEADER)["rows"][0]) for slot in self.slots)

    def judge(self, evaluator: Evaluator) -> dict[str, Any]:
        """The figures of all rows, by name (compute/metrics.py)."""
        for slot in self.slots:
            evaluator.add(slot)
        return summary(evaluator.scores())
