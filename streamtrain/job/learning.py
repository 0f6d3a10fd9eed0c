"""The check that a job learns: its loss beside the constant prediction's, in windows of rows, and the likely cause if
not.

Used by the coordinator for `train` and `fit`, and by who reads a job's round log for `status` and the UI.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from streamtrain._native import WINDOW_ROWS
from streamtrain.columns.kinds import FEATURE
from streamtrain.compute import optimizers
from streamtrain.compute.losses import label_kind
from streamtrain.compute.metrics import LOSS, by_head, constant_of
from streamtrain.job.job import Job

FIRST_ROWS = 10_000  # of a lineage, in which no model is judged
WINDOWS = 2  # in a row that lose too much
WORST = 1.05  # times the constant prediction's loss
HIGH_RATE = 30  # times the optimizer's default learning rate
LARGE = 10  # deviation of a raw label: a learning rate for labels around 1 is then too low, or diverges
MOST_NAMED = 5  # columns
Array = npt.NDArray[np.float64]


class Loss(NamedTuple):
    """Sums over rows: of the model's loss and of the constant prediction's, by weight."""

    model: float
    constant: float
    weight: float

    @property
    def is_bad(self) -> bool:
        return 0 < self.constant * WORST < self.model

    def minus(self, other: Loss) -> Loss:
        return Loss(*(one - two for one, two in zip(self, other, strict=True)))


class Learning:
    """Takes a job's publications in order. `total`: the total figures where the first of them starts; None if unknown.

    Figures are known for a publication as a whole, and the loss also for each of its batches. So a publication that
    loses too much is divided into windows by the losses of its batches, and any other evenly.
    """

    def __init__(self, job: Job, total: Mapping[str, Any] | None = None) -> None:
        self._job = job
        self._windows: deque[dict[str, Loss]] = deque(maxlen=WINDOWS)
        self._open: dict[str, Loss] = {}  # a window that is not full
        self._open_rows = 0
        self._total = total
        self._figures: Mapping[str, Any] = {}

    def add(self, total: Mapping[str, Any], slots: npt.NDArray[Any]) -> None:
        """Takes a publication: the total figures after it, and the slots of its round log."""
        before, self._total = self._total, total
        self._figures = total
        if before is None:
            return
        sums, earlier = _sums(total), _sums(before)
        stretch = {head: loss.minus(earlier.get(head, Loss(0, 0, 0))) for head, loss in sums.items()}
        trained = slots[(slots["trained"] > 0) & (slots["rejected"] == 0)]
        if not len(trained) or not np.isfinite(trained["loss_sum"]).all():
            return
        first = max(0, FIRST_ROWS - int(before.get("rows", 0)))
        ends = np.cumsum(trained["trained"], dtype=np.int64)
        start = int(np.searchsorted(ends, first)) + 1 if first else 0  # the first slot that is judged
        if start < len(trained):
            rows = np.diff(ends, prepend=0)[start:]
            self._divide(rows, {head: _by_slot(loss, trained, start) for head, loss in stretch.items()})

    def _divide(self, rows: npt.NDArray[np.int64], losses: Mapping[str, Array]) -> None:
        """Cuts slots into windows. `losses`: of each head [slots, 3]."""
        ends = np.cumsum(rows)
        at = done = 0
        while at < len(rows):
            to = min(len(rows), int(np.searchsorted(ends, done + WINDOW_ROWS - self._open_rows)) + 1)
            for head, each in losses.items():
                added = each[at:to].sum(0) + self._open.get(head, Loss(0, 0, 0))
                self._open[head] = Loss(*map(float, added))
            self._open_rows += int(ends[to - 1]) - done
            at, done = to, int(ends[to - 1])
            if self._open_rows >= WINDOW_ROWS:
                self._windows.append(self._open)
                self._open, self._open_rows = {}, 0

    @property
    def warning(self) -> str:
        """Which head loses more than the constant prediction, and the likely cause; "" where none does."""
        if len(self._windows) < WINDOWS:
            return ""
        bad = [head for head in self._windows[-1] if all(head in each and each[head].is_bad for each in self._windows)]
        if not bad:
            return ""
        head, newest = bad[0], self._windows[-1][bad[0]]
        what = f"the loss of {', '.join(bad)}" if head else "the loss"
        model, constant = (each / newest.weight for each in (newest.model, newest.constant))
        return (
            f"{what} is above that of the constant prediction ({model:.4g} and {constant:.4g} in the newest "
            f"{WINDOW_ROWS:,} rows): {self._cause(head)}"
        )

    def _cause(self, head: str) -> str:
        """The likely cause that the job and its figures show."""
        return next(self._causes(head), "the job shows no cause; a lower optimizer.learning_rate may help")

    def _causes(self, head: str) -> Iterator[str]:
        schema, optimizer = self._job.schema, self._job.optimizer
        label = next((each for name, each in schema.labels if not head or name == head), None)
        name = head or next((name for name, _ in schema.labels), "")
        figures = by_head(self._figures).get(head, {})
        deviation = figures.get(constant_of("rmse"))
        is_raw = label is not None and not label.standardize and label_kind(schema.labelled.loss_of(name)) == "number"
        if is_raw and deviation is not None and deviation > LARGE:
            yield f"likely because label {name} has a deviation of {deviation:.4g}; standardize it"
        raw = [
            name for name, column in schema.columns
            if column.role == FEATURE and column.entry.block == "numbers" and not column.standardize
        ]  # fmt: skip
        rate = optimizers.get(optimizer.name).RATE
        if optimizer.learning_rate > HIGH_RATE * rate:
            yield (
                f"likely because optimizer.learning_rate is {optimizer.learning_rate:g}, and {rate:g} is usual for "
                f"{optimizer.name}"
            )
        if raw:
            more = f" and {len(raw) - MOST_NAMED} more" if len(raw) > MOST_NAMED else ""
            yield (
                f"{', '.join(raw[:MOST_NAMED])}{more} are not standardised, which is the likely cause if their values "
                "are large; standardize them"
            )
        if is_raw:
            yield f"label {name} is not standardised, which is the likely cause if it is far from 0; standardize it"


def _sums(total: Mapping[str, Any]) -> dict[str, Loss]:
    """The sums behind total figures, by head; without the heads whose figures are not finite."""
    found = {}
    for head, figures in by_head(total).items():
        name = LOSS if constant_of(LOSS) in figures else "log_loss"
        model, constant, weight = (figures.get(each, math.nan) for each in (name, constant_of(name), "weight"))
        if math.isfinite(model * constant * weight):
            found[head] = Loss(model * weight, constant * weight, weight)
    return found


def _by_slot(loss: Loss, slots: npt.NDArray[Any], start: int) -> Array:
    """A stretch's loss, shared out among its slots from `start` on: [slots, 3]."""
    weights, losses = slots["weight_sum"].astype(np.float64), slots["loss_sum"].astype(np.float64)
    weight, of_model = (each / each.sum() if each.sum() > 0 else np.zeros(len(each)) for each in (weights, losses))
    share = weight[start:].sum()
    later = Loss(loss.model * of_model[start:].sum(), loss.constant * share, loss.weight * share)
    if loss.is_bad and later.is_bad:
        model = loss.model * of_model
    else:
        model = weight * (later.model / share if loss.is_bad and share > 0 else loss.model)
    return np.stack([model, loss.constant * weight, loss.weight * weight], 1)[start:]
