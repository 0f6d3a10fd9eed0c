"""Training on a window of rows that is held in memory: all of it at every step, by an optimizer that asks for the whole
gradient. No process and no Kafka.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from streamtrain import _native
from streamtrain.build import build_digest
from streamtrain.columns.held_rows import HeldRows
from streamtrain.columns.row_plan import BATCH_ROWS
from streamtrain.compute import minimizers
from streamtrain.compute.minimizers import Iteration, Minimum
from streamtrain.compute.model import Model, aligned
from streamtrain.compute.objective import Objective, check_model
from streamtrain.compute.quality import Quality
from streamtrain.compute.spec import Array
from streamtrain.compute.window_statistics import memory, take_scores, take_statistics
from streamtrain.errors import UserMistake
from streamtrain.fitting.fit import job_of
from streamtrain.fitting.fitted import Fitted, fitted_of
from streamtrain.fitting.held_rows import hold
from streamtrain.fitting.history import History
from streamtrain.fitting.memory_publisher import stored_of
from streamtrain.job import Job
from streamtrain.run.lineage import Lineage
from streamtrain.run.publication import Assembler
from streamtrain.run.round_log import Columns
from streamtrain.topics.manifest import Position, Run, Slot

_TOPIC_ID = "memory"  # stands in the manifest where a topic's id would


@dataclass(frozen=True)
class WindowStep:
    """One step of the optimizer, `seconds` after the first look at the function."""

    told: Iteration
    seconds: float

    def row(self) -> dict[str, Any]:
        """As a row of the frame."""
        told = self.told
        return {
            "iteration": told.iteration, "evaluations": told.evaluations, "loss": told.value,
            "gradient_norm": told.gradient_norm, "step": told.step, "seconds": self.seconds,
        }  # fmt: skip


class WindowHistory(History):
    """The steps of a fit of a window in order. It never changes."""

    along = "iteration"


@dataclass(frozen=True)
class FittedWindow(Fitted):
    """A snapshot of a fit of a window. `metrics` of its manifest are of the window's rows under its parameters.

    `value`: what is minimised: the mean loss of the rows, with l1 and l2 on top. `reason`: why the optimizer has ended,
    one of gradient_tolerance, value_tolerance, iterations, evaluations, line_search, not_finite, callback; `stopped`
    has the figures too. `evaluations`: looks at all rows; `gradient_norm`: the largest part of the gradient.
    """

    reason: str = ""
    value: float = float("nan")
    gradient_norm: float = float("nan")
    evaluations: int = 0
    converged: bool = field(default=False)  # it ended because it was there

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
    callback: Callable[[Iteration], str | None] | None = None,
    **settings: Any,
) -> FittedWindow:
    """Minimises a job's loss over a window of rows, held in memory, and gives the snapshot, which predicts.

    `job`, `rows` and `files` as for `fit`; rows are read once. `optimizer` and its `settings`: `streamtrain list
    minimizers`. What is minimised is the mean of the rows' losses by their weights, and l1 |p| + l2 p^2 / 2 as
    [optimizer] and its groups say; all else of [optimizer] and of [train] but the seed is of steps, and not looked at.
    Statistics are taken once, of the whole window. `start`: a model of the same job whose parameters it begins with, in
    the place of fresh ones. `callback` gets each step, and ends it by what it returns, unless that is None.

    Raises JobMistakes and UserMistake for a job, rows, or settings that are none, for a row that cannot be used, for a
    network of PyTorch, one that draws random numbers or looks at other rows of a batch, and for more than 16 million
    parameters; and what an iterator or callback raises.
    """
    given = job_of(job, None)
    model = Model(given.model_spec(), given.network)
    check_model(model)
    minimizers.check(optimizer, settings)  # before rows are read
    batch_rows = given.train.batch_rows if minimizers.get(optimizer).BY_BATCHES else BATCH_ROWS
    held = hold(given, _source(rows, files), "fit_window", batch_rows)
    state = aligned(model.state_bytes)
    state[:] = model.initial_state(given.train.seed)
    before = state.copy()
    take_statistics(model, held.layout, held.slots, state)
    objective = Objective(model, held.layout, held.slots, state)
    if start is not None:
        _take_parameters(model, start, state)
    began_s = time.monotonic()
    steps: list[WindowStep] = []

    def told(iteration: Iteration) -> str | None:
        steps.append(WindowStep(iteration, time.monotonic() - began_s))
        return None if callback is None else callback(iteration)

    found = minimizers.minimize(objective, objective.start(), optimizer, callback=told, **settings)
    objective.take(found.x)
    return _fitted(given, model, held, (before, state), found, WindowHistory(steps))


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
    job: Job, model: Model, held: HeldRows, states: tuple[Array, Array], found: Minimum, history: History
) -> FittedWindow:
    before, state = states
    blocks = model.views(state)
    blocks[_native.OPTIMIZER_STEPS][:] = found.iterations
    take_scores(model, held.layout, held.slots, state)
    quality = Quality(job.schema.numbers)
    quality.begin(model.views(before))
    metrics = quality.look(blocks)
    one = _of_one_worker(job)
    run, slot = Run(1, uuid.uuid4().hex), Slot(held.layout.row_capacity, 1)
    assembler = Assembler(one, run, model.layout.published(1), slot, build_digest())
    lineage = Lineage(uuid.uuid4().hex, job.train.seed, -1, held.rows, [Position(len(held.slots))], _TOPIC_ID)
    assembled = assembler.assemble(replace(lineage, untrained=False), memory(model, state), 0, Columns.empty(), metrics)
    stored = stored_of(assembled.snapshot, 0)
    stopped = f"{found.reason}: {found.details}"
    plain = fitted_of(stored, job.network, history, stopped)
    whole = {each.name: getattr(plain, each.name) for each in fields(Fitted)}
    return FittedWindow(
        **whole, reason=found.reason, value=found.value, gradient_norm=found.gradient_norm,
        evaluations=found.evaluations, converged=found.converged,
    )  # fmt: skip


def _of_one_worker(job: Job) -> Job:
    return job if job.train.workers == 1 else replace(job, file=job.file.model_copy(
        update={"train": job.train.model_copy(update={"workers": 1})}))  # fmt: skip
