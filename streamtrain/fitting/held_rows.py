"""Rows that are decoded once and held as slots, to be gone over again and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.columns.row_plan import BATCH_ROWS, told
from streamtrain.compute.model import aligned
from streamtrain.compute.spec import Array
from streamtrain.errors import UserMistake
from streamtrain.files.records import FileRecords
from streamtrain.fitting.parallel_wrapper import given_as
from streamtrain.job import Job

_HEADER = np.dtype(_native.SLOT_HEADER)


@dataclass(frozen=True)
class HeldRows:
    """Slots of one layout, in order."""

    layout: _native.SlotLayout
    slots: list[Array]

    @property
    def rows(self) -> int:
        return sum(int(slot[: _HEADER.itemsize].view(_HEADER)["rows"][0]) for slot in self.slots)


def hold(job: Job, source: Any, what: str, batch_rows: int = BATCH_ROWS) -> HeldRows:
    """All rows of a source, or the paths of files, as a job's columns have them, in slots of so many. UserMistake,
    which begins with `what`, for a row that cannot be used, and where there is none."""
    plan = job.plan(batch_rows=batch_rows)
    given = given_as(source)
    if "files" in given:
        paths = [str(path) for path in given["files"]]
        records = iter(FileRecords(job, paths, format=plan.bare))
    else:
        records = plan.encoded(given["rows"])
    slots: list[Array] = []
    for batch in plan.batches(records, bare=True, copy=False):
        if batch.left_out:
            raise UserMistake(f"{what}: {told(batch.left_out[0])}; mend it, or leave it out")
        if batch.count:
            slot = aligned(plan.layout.slot_bytes)
            slot[:] = plan.slot
            slots.append(slot)
    if not slots:
        raise UserMistake(f"{what}: expected at least one row, got none; has the iterator been used up before?")
    return HeldRows(plan.layout, slots)
