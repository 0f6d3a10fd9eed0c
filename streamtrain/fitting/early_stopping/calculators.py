"""What a model is scored by: the rows it has learned since it was scored last, each scored before; or rows held out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from streamtrain.columns.row_plan import told
from streamtrain.compute.metrics import summary
from streamtrain.compute.model import aligned
from streamtrain.compute.spec import Array
from streamtrain.errors import UserMistake
from streamtrain.files.records import FileRecords
from streamtrain.fitting.callbacks import Moment
from streamtrain.fitting.parallel_wrapper import given_as
from streamtrain.job import Job

Figures = Mapping[str, float]


class Calculator(Protocol):
    def figures(self, moment: Moment) -> Figures:
        """By name (compute/metrics.py). Asked once a moment, in order."""


class Progressive:
    """Over the rows trained since the last evaluation."""

    def __init__(self) -> None:
        self._before: dict[str, Array] = {}

    def figures(self, moment: Moment) -> Figures:
        scores = moment.scores()
        window = {name: array - self._before.get(name, np.zeros_like(array)) for name, array in scores.items()}
        self._before = {name: array.copy() for name, array in scores.items()}
        return summary(window)


class HeldOut:
    """Over rows that are never trained. They are decoded once, and held as slots.

    UserMistake, naming it, for a row that cannot be used, and where there is none.
    """

    def __init__(self, job: Job, source: Any) -> None:
        plan = job.plan()
        given = given_as(source)
        if "files" in given:
            paths = [str(path) for path in given["files"]]
            records = iter(FileRecords(job, paths, format=plan.bare))
        else:
            records = plan.encoded(given["rows"])
        self._layout = plan.layout
        self._slots: list[Array] = []
        for batch in plan.batches(records, bare=True, copy=False):
            if batch.left_out:
                raise UserMistake(f"held_out: {told(batch.left_out[0])}; mend it, or leave it out")
            if batch.count:
                slot = aligned(plan.layout.slot_bytes)
                slot[:] = plan.slot
                self._slots.append(slot)
        if not self._slots:
            raise UserMistake("held_out: expected at least one row, got none; has the iterator been used up before?")

    def figures(self, moment: Moment) -> Figures:
        judged = moment.model().scorer.served.judged(self._layout)
        for slot in self._slots:
            judged.add(slot)
        return summary(judged.scores())
