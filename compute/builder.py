"""Collects a model's blocks and calls while layers, losses and optimizers are built; nothing runs here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from streamtrain import _native
from streamtrain.compute import ops
from streamtrain.compute.initial_values import ZERO, Start
from streamtrain.compute.shape import Mismatch, Shape
from streamtrain.compute.spec import DTYPES, Argument, Array, Call, Outside, PerRow, Ref, Refs, Run

RULES = _native.state_rules()   # how a block's elements may be stored, by its rule

# The phases of a plan (native/plan/plan.h) that have a call, by what it is part of. Each phase has its calls in the
# order they are added; those that are several in one have the calls of those.
FORWARD = ("forward",)                                # values, as training has them
INFERENCE = ("evaluate", "statistics", "predict")     # values, as a prediction has them
VALUES = (*FORWARD, *INFERENCE)
EVALUATE = ("forward", "evaluate", "statistics")      # loss and scores
STATISTICS = ("update", "statistics")                 # what a batch adds to the share's statistics
GRADIENT = ("gradient",)                              # the way back
UPDATE = ("update",)
SUMS = ("sum",)                                       # gradients of several batches added up
PREDICT = ("predict",)                                # what a prediction makes of the values

TRAINING, PREDICTING = ("train", "predict"), ("predict",)  # of a worker's plan, of a scorer's


@dataclass(frozen=True)
class BlockSpec:
    """A block of the state before it has an offset."""

    name: str
    group: str   # parameters | optimizer | statistics | score | window
    rule: str    # one of native/state/rules
    shape: tuple[int, ...]
    begin: Start = ZERO   # of parameters
    part: str = ""   # of parameters: the group of the optimizer's settings
    start: Array | None = None   # of the first rows; everything else starts at 0
    rows_of: str = ""   # the block that says whose its rows are; rows that lose what they were for are zeroed
    dtype: str = ""   # one the rule takes; given none, the first of them

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.dtype or RULES[self.rule][0])


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor [rows, columns] of the graph, which any number of vertices may read. `rows` are the batch's, or several
    for each of them."""

    ref: Ref
    masks: bool = False   # a relu is built in, so a gradient sent back must be masked with ref
    learns: bool = True   # something below it has parameters, so its gradient is wanted
    learned: tuple[int, int] | None = None   # of these columns alone: the first, and the one behind the last; no masks

    @property
    def has_numbers(self) -> bool:
        """Returns whether some columns are the batch's own numbers, which nothing learns."""
        return not self.learns or self.learned is not None

    @property
    def rows(self) -> PerRow:
        rows = self.ref.shape[0]
        assert isinstance(rows, PerRow)
        return rows

    @property
    def columns(self) -> int:
        return self.ref.shape[1]

    @property
    def shape(self) -> Shape:
        return Shape(self.rows.times, self.columns)


@dataclass(frozen=True)
class Gradient:
    """The gradient of a Value, in a buffer that the receiver may change. A narrower one covers only some of the
    columns."""

    ref: Ref
    masked: bool = False   # by the value's relu
    first: int = 0         # of the columns


@dataclass(frozen=True)
class Tables:
    """Embedding tables of one batch's entries, with what their sparse update needs."""

    parameters: Refs   # of each [buckets, dim]
    places: Ref        # i64 [tables, columns of a place]: see compute/ops/entry_table.py
    gradient: Ref      # f64 [entries, all their dims]: table by table [entries, dim], valid for leading entries
    categories: Ref    # i32 [entries, columns]
    lead: Ref          # i32 [tables, entries]
    ends: Ref | None = None   # of each row's entries; none: a row has one

    def __len__(self) -> int:
        return len(self.parameters.refs)

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Entries, columns of the categories, tables, all their dims: behind the rows in a kernel's arguments."""
        entries, columns = self.categories.shape
        return entries, columns, len(self), self.gradient.shape[1]


# dy, which it may change -> the gradient of each value that was read, None of one that does not learn
Backward = Callable[[Ref], Sequence[Gradient | None]]


STEP = Ref("step", "step", "step")
_OF_A_PARAMETER: tuple[Literal["state", "gradient"], ...] = ("state", "gradient")


@dataclass
class Builder:
    """The builder that a layer, loss or optimizer file calls. Calls go to the phases in force (see `during`)."""

    rows: PerRow
    parameters: list[BlockSpec] = field(default_factory=list)
    table_blocks: list[BlockSpec] = field(default_factory=list)
    statistics: list[BlockSpec] = field(default_factory=list)
    on_tables: Callable[[Tables], None] = lambda tables: None   # their gradients are there
    shared: list[tuple[Ref, Ref]] = field(default_factory=list)   # a parameter's gradient, and another of it
    buffers: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    averages: list[BlockSpec] = field(default_factory=list)   # learned, but by no optimizer
    foreign: list[BlockSpec] = field(default_factory=list)   # what an optimizer keeps that is not one of ours
    calls: list[tuple[tuple[str, ...], Call | Outside]] = field(default_factory=list)   # with the phases that have them
    tape: list[tuple[Backward, tuple[Value, ...], Value]] = field(default_factory=list)
    _phases: tuple[str, ...] = VALUES
    _streams: int = 0

    @property
    def step(self) -> Ref:
        """The step block."""
        return STEP

    def parameter(self, name: str, *shape: int, begin: Start = ZERO, part: str = "weight") -> tuple[Ref, Ref]:
        """A dense parameter and a gradient of it; `part`: the group of settings
        that the optimizer has for it. One that is there already is shared: its gradients are added. Mismatch where it
        has another shape."""
        before = next((block for block in self.parameters if block.name == name), None)
        block = before or BlockSpec(name, "parameters", "learned", shape, begin, part)
        if block.shape != shape:
            raise Mismatch(f"expected a shared {name} of {list(block.shape)}, got {list(shape)}; one "
                           "like another reads what is as wide")
        parameter, gradient = (Ref(space, name, block.dtype, shape) for space in _OF_A_PARAMETER)
        if before is None:
            self.parameters.append(block)
            return parameter, gradient
        again = self.buffer(f"{name}.gradient", *shape)
        self.shared.append((gradient, again))
        return parameter, again

    def flat(self, space: Literal["state", "gradient"], prefix: str = "") -> Ref:
        """All dense parameters, their gradients or what the optimizer keeps of them, with the gaps between them."""
        first = self.parameters[0]
        return Ref(space, prefix + first.name, first.dtype, (self._placed()[1],))

    def places(self) -> list[tuple[int, BlockSpec]]:
        """Returns where each dense parameter begins in their flat vector."""
        return list(zip(self._placed()[0], self.parameters, strict=True))

    def _placed(self) -> tuple[list[int], int]:
        """Returns the first element of each dense parameter and the end of the last. All have one type."""
        item = np.dtype(DTYPES[self.parameters[0].dtype]).itemsize
        places, end = _native.place([math.prod(block.shape) * item for block in self.parameters])
        return [place // item for place in places], end // item

    def table(self, name: str, buckets: int, dim: int, begin: Start, rows_of: str = "") -> Ref:
        """A parameter of which a step touches few rows."""
        block = BlockSpec(name, "parameters", "learned", (buckets, dim), begin, rows_of=rows_of)
        self.table_blocks.append(block)
        return Ref("state", name, block.dtype, block.shape)

    def average(self, name: str, *shape: int, begin: Start = ZERO) -> Ref:
        """Declares a block that a step changes and no optimizer does. It is averaged as parameters are. A block that
        exists already is shared."""
        block = BlockSpec(name, "statistics", "learned", shape, begin)
        if name not in (each.name for each in self.averages):
            self.averages.append(block)
        return Ref("state", name, block.dtype, shape)

    def kept(self, name: str, rule: str, *shape: int) -> Ref:
        """Declares a block of state that a foreign optimizer keeps, one that is not ours."""
        block = BlockSpec(name, "optimizer", rule, shape)
        self.foreign.append(block)
        return Ref("state", name, block.dtype, shape)

    def statistic(
        self, name: str, group: str, rule: str, *shape: int, start: Array | None = None, dtype: str = ""
    ) -> tuple[Ref, Ref]:
        """A block of the statistics part: the round's base (read) and the worker's share (gathered)."""
        block = BlockSpec(name, group, rule, shape, start=start, dtype=dtype)
        self.statistics.append(block)
        return Ref("base", name, block.dtype, shape), Ref("share", name, block.dtype, shape)

    def buffer(self, name: str, *shape: int, dtype: str = "f32") -> Ref:
        """Workspace for the plan's life, zero at first. A second buffer of the name gets a number."""
        while name in self.buffers:
            name += "'"
        self.buffers[name] = (dtype, shape)
        return Ref("work", name, dtype, shape)

    @property
    def draws(self) -> bool:
        """Returns whether any op draws random numbers."""
        return self._streams > 0

    def stream(self) -> int:
        """Returns a stream of the step's random numbers, a new one for each op that draws some."""
        self._streams += 1
        return self._streams - 1

    def constant(self, name: str, content: Any, dtype: str) -> Ref:
        array: Array = np.ascontiguousarray(content, DTYPES[dtype])
        self.constants[name] = array
        return Ref("constant", name, dtype, array.shape)

    def slot(self, name: str, dtype: str, width: int) -> Ref:
        return Ref("slot", name, dtype, (self.rows, width))

    def ragged(self, name: str, dtype: str, width: int, least: int) -> tuple[Ref, Ref]:
        """A ragged block of a slot: i32 [rows], where each row's entries end, and the entries [as many as it has room
        for]."""
        entries = max(int(self.rows) * width, least)
        return Ref("slot", name, "i32", (self.rows,), start=1), Ref("slot", f"{name}.values", dtype, (entries,))

    def call(self, op: str, *args: Argument, types: str = "") -> None:
        """Appends a kernel call to the phases in force."""
        assert len(args) == len(ops.get(op).args), f"{op}: {len(args)} arguments"
        self.calls.append((self._phases, Call(op, types, args)))

    def outside(self, bind: Callable[..., Run], *args: Ref, besides: tuple[Ref, ...] = ()) -> None:
        """Appends a call out of the plan to the phases in force."""
        self.calls.append((self._phases, Outside(bind, args, besides)))

    def repeat(self, calls: Iterable[Call | Outside]) -> None:
        """Appends calls that have been made before to the phases in force."""
        self.calls += [(self._phases, call) for call in calls]

    def calls_of(self, phase: str) -> tuple[Call | Outside, ...]:
        """In order; a phase that is several in one has each call of theirs once."""
        plan_phases = {*_native.PLAN_PHASES[phase]}
        return tuple(call for phases, call in self.calls if plan_phases.intersection(phases))

    @contextmanager
    def during(self, *phases: str) -> Iterator[None]:
        """Calls inside go to these phases."""
        before, self._phases = self._phases, phases
        try:
            yield
        finally:
            self._phases = before

    def on_backward(self, backward: Backward, read: Sequence[Value], output: Value) -> Value:
        """`backward` will be called with the gradient of `made`, after those of all that have read it. Gives `made`."""
        self.tape.append((backward, tuple(read), output))
        return output

    def run_backward(self, values: Sequence[Value], gradients: Sequence[Ref]) -> None:
        """Walks the tape from the losses' gradients of `values` down. What several have read gets the sum of what they
        send back, behind what its own loss does, in the order of the last reader to the first."""
        sent = {value: [Gradient(gradient)] for value, gradient in zip(values, gradients, strict=True)}
        for backward, read, output in reversed(self.tape):
            if output not in sent:
                continue   # nothing that the loss depends on has read it
            dy = self._sum(output, sent.pop(output))
            for below, found in zip(read, backward(dy), strict=True):
                if found is not None:
                    sent.setdefault(below, []).append(found)

    def add_shared(self) -> None:
        """Adds up the gradients of each parameter that several layers have, in the order they were made."""
        for gradient, again in self.shared:
            self.call("add_forward", gradient.elements, gradient, gradient, again)

    def _sum(self, output: Value, sent: Sequence[Gradient]) -> Ref:
        """Returns the sum for all its columns, or for the learned columns only if nobody sends more."""
        if output.learned and all((each.first, each.first + each.ref.shape[1]) == output.learned for each in sent):
            output = replace(output, ref=sent[0].ref)
        of_all = [each for each in sent if each.ref.shape[1] == output.columns]
        of_some = [each for each in sent if each.ref.shape[1] < output.columns]
        for each in of_all if not of_some else ():
            if output.masks and not each.masked:
                self._mask(output, each.ref)
        total = of_all[0].ref if of_all else self._zeros(output)
        for each in of_all[1:]:
            self.call("add_forward", total.elements, total, total, each.ref)
        for each in of_some:
            rows, count = each.ref.shape
            self.call("add_columns", rows, count, count, 0, output.columns, each.first, each.ref, total)
        if output.masks and of_some:
            self._mask(output, total)
        return total

    def _mask(self, output: Value, gradient: Ref) -> None:
        self.call("relu_gradient", gradient.elements, gradient, gradient, output.ref, output.ref, types="float")

    def _zeros(self, output: Value) -> Ref:
        zeros = self.buffer(f"{output.ref.name}.gradient", *output.ref.shape)
        self.call("fill", zeros.elements, 0.0, zeros)
        return zeros
