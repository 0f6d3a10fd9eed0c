"""Training on a window of rows that is held in memory: all of it at every step, by an optimizer that asks for the whole
gradient. No process and no Kafka.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from streamtrain import _native
from streamtrain.build import build_digest
from streamtrain.columns.rejected import MAX_REJECTED, RejectedRows, Rejecting
from streamtrain.columns.row_cache import RowCache
from streamtrain.compute.model import Model, aligned
from streamtrain.compute.objective import Objective, check_model
from streamtrain.compute.quality import Quality
from streamtrain.compute.spec import Array
from streamtrain.compute.window_statistics import memory, take_scores, take_statistics
from streamtrain.errors import UserMistake
from streamtrain.fitting import minimizers
from streamtrain.fitting.cached_rows import cache_rows
from streamtrain.fitting.fit import job_of
from streamtrain.fitting.fit_history import History
from streamtrain.fitting.fitted import Fitted, fitted_of
from streamtrain.fitting.memory_publisher import stored_of
from streamtrain.fitting.minimizers import Minimum, WindowStep
from streamtrain.job import Job
from streamtrain.record_sources.source_changes import MEMORY
from streamtrain.run.lineage import Lineage
from streamtrain.run.publication import Assembler
from streamtrain.run.round_log import Columns
from streamtrain.topics.manifest import Counts, Position, Run, Slot


class WindowHistory(History):
    """The steps of a fit of a window in order. It never changes."""

    along = "iteration"


@dataclass(frozen=True)
class FittedWindow(Fitted):
    """A snapshot of a fit of a window. `metrics` of its manifest are of the window's rows under its parameters.

    `value`: the objective, the mean loss of the rows with l2 on top. `reason`: why the optimizer ended, one of
    gradient_tolerance, value_tolerance, iterations, evaluations, line_search, not_finite, callback; `stopped` has the
    figures too. `evaluations`: passes over all rows; `gradient_norm`: the largest part of the gradient.
    """

    reason: str = ""
    value: float = float("nan")
    gradient_norm: float = float("nan")
    evaluations: int = 0

    @property
    def converged(self) -> bool:
        """True where a tolerance ended it."""
        return self.reason in ("gradient_tolerance", "value_tolerance")

    @property
    def iterations(self) -> int:
        return len(self.history)


def fit_window(
    job: Job | str | Path | Mapping[str, Any],
    rows: Any = None,
    *,
    files: str | Path | Sequence[str | Path] | None = None,
    optimizer: str = "lbfgs",
    start: Fitted | None = None,
    callback: Callable[[WindowStep], str | None] | None = None,
    max_rejected: float = MAX_REJECTED,
    **settings: Any,
) -> FittedWindow:
    """Minimises a job's loss over a window of rows, held in memory, and gives the snapshot, which predicts.

    `job`, `rows` and `files` as for `fit`; rows are read once. `optimizer`: "lbfgs" or "conjugate_gradient", both of
    SciPy (extra `window`), or "gradient_descent"; `settings` are its own. The objective is the mean of the rows' losses
    by their weights, and l2 p^2 / 2 by [optimizer] and its groups; the rest of [optimizer] and of [train] but the seed
    is about steps, and ignored. Statistics are taken once, of the whole window. `start`: a model of the same job that
    gives the first parameters. `callback` gets each step, and ends the fit by a text that it returns.

    A row that cannot be used is left out; `rejected` of the result has its place and reason.

    Raises JobMistakes and UserMistake for a job, rows or settings that are wrong, where more than `max_rejected`, a
    share from 0 to 1, of the rows cannot be used, for an l1, for a network of PyTorch, one that draws random numbers or
    reads other rows of a batch, and for more than 16 million parameters; and what an iterator or callback raises.
    """
    given = job_of(job, None)
    model = Model(given.model_spec(), given.network)
    check_model(model)
    minimizers.check(optimizer, settings)  # before rows are read
    rejecting = Rejecting(max_rejected)
    window = cache_rows(given, _source(rows, files), "fit_window", rejecting)
    state = aligned(model.state_bytes)
    state[:] = model.initial_state(given.train.seed)
    before = state.copy()
    take_statistics(model, window.layout, window.slots, state)
    objective = Objective(model, window.layout, window.slots, state)
    if start is not None:
        _take_parameters(model, start, state)
    found = minimizers.minimize(objective, optimizer, settings, callback)
    objective.take(found.x)
    return _fitted(given, model, window, (before, state), found, rejecting.found)


def _source(rows: Any, files: Any) -> Any:
    if (rows is None) == (files is None):
        got = "neither" if rows is None else "both"
        raise UserMistake(f"fit_window: expected rows, or the paths of files, got {got}")
    return rows if files is None else files


def _take_parameters(model: Model, start: Fitted, state: Array) -> None:
    blocks = model.views(state)
    for name, array in start.parameters.items():
        if name in blocks:
            blocks[name][:] = array


def _fitted(
    job: Job, model: Model, window: RowCache, states: tuple[Array, Array], found: Minimum, rejected: RejectedRows
) -> FittedWindow:
    before, state = states
    blocks = model.views(state)
    blocks[_native.OPTIMIZER_STEPS][:] = len(found.steps)
    take_scores(model, window.layout, window.slots, state)
    quality = Quality(job.schema.numbers)
    quality.begin(model.views(before), {})
    metrics = quality.look(blocks)
    one = _of_one_worker(job)
    run, slot = Run(1, uuid.uuid4().hex), Slot(window.layout.row_capacity, 1)
    assembler = Assembler(one, run, model.layout.published(1), slot, build_digest())
    lineage = Lineage(uuid.uuid4().hex, job.train.seed, -1, window.rows, [Position(len(window.slots))], MEMORY)
    lineage.counts = Counts(window.rows, rejected.rows)
    assembled = assembler.assemble(replace(lineage, untrained=False), memory(model, state), 0, Columns.empty(), metrics)
    return fitted_of(
        FittedWindow, stored_of(assembled.snapshot, 0), job.network, WindowHistory(found.steps), rejected=rejected,
        stopped=f"{found.reason}: {found.details}", reason=found.reason, value=found.value,
        gradient_norm=found.gradient_norm, evaluations=found.evaluations,
    )  # fmt: skip


def _of_one_worker(job: Job) -> Job:
    return job if job.train.workers == 1 else replace(job, file=job.file.model_copy(
        update={"train": job.train.model_copy(update={"workers": 1})}))  # fmt: skip
