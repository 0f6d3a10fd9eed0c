"""Collects a model's blocks and calls while layers, losses and optimizers are built; nothing runs here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.compute import ops
from streamtrain.compute.spec import DTYPES, Array, Call, PerRow, Ref

RULES = _native.state_rules()   # how the elements of a block are stored, by its rule


@dataclass(frozen=True)
class BlockSpec:
    """A block of the state before it has an offset."""

    name: str
    group: str   # parameters | optimizer | statistics | score
    rule: str    # one of native/state/rules
    shape: tuple[int, ...]
    limit: float = 0.0   # parameters start uniform in [-limit, limit)
    start: Array | None = None   # of the first rows; else, and where there is no limit, everything starts at 0
    rows_of: str = ""   # the block that says whose its rows are; rows that lose what they were for are zeroed

    @property
    def dtype(self) -> str:
        return RULES[self.rule]


@dataclass(frozen=True)
class Value:
    """Activations flowing forward. `masks`: a relu is built in, so a gradient sent back must be masked with ref."""

    ref: Ref
    masks: bool = False
    learns: bool = True   # something below it has parameters, so its gradient is wanted


@dataclass(frozen=True)
class Table:
    """An embedding table with what its sparse update needs."""

    parameter: Ref
    gradient: Ref      # [entries, dim], valid for leading entries
    categories: Ref    # [entries, columns]
    column: int
    lead: Ref
    ends: Ref | None = None   # of each row's entries; none: a row has one


# dy -> (dx or None, whether dx is already masked by the input's relu)
Backward = Callable[[Ref], tuple[Ref | None, bool]]


STEP = Ref("step", "step", "step")


@dataclass
class Builder:
    """What a layer, loss or optimizer file calls. Calls go to the phases in force (see `during`)."""

    rows: PerRow
    parameters: list[BlockSpec] = field(default_factory=list)
    table_blocks: list[BlockSpec] = field(default_factory=list)
    statistics: list[BlockSpec] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    buffers: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    calls: dict[str, list[Call]] = field(default_factory=lambda: {"train": [], "predict": []})
    tape: list[tuple[Backward, Value]] = field(default_factory=list)
    _phases: tuple[str, ...] = ("train", "predict")

    @property
    def step(self) -> Ref:
        """The step block."""
        return STEP

    def parameter(self, name: str, *shape: int, limit: float = 0.0) -> tuple[Ref, Ref]:
        """A dense parameter, starting uniform in [-limit, limit), and its gradient."""
        block = BlockSpec(name, "parameters", "learned", shape, limit)
        self.parameters.append(block)
        return Ref("state", name, block.dtype, shape), Ref("gradient", name, block.dtype, shape)

    def table(self, name: str, buckets: int, dim: int, limit: float, rows_of: str = "") -> Ref:
        """A parameter of which a step touches few rows."""
        block = BlockSpec(name, "parameters", "learned", (buckets, dim), limit, rows_of=rows_of)
        self.table_blocks.append(block)
        return Ref("state", name, block.dtype, block.shape)

    def statistic(
        self, name: str, group: str, rule: str, *shape: int, start: Array | None = None
    ) -> tuple[Ref, Ref]:
        """A block of the statistics part: the round's base (read) and the worker's share (gathered)."""
        block = BlockSpec(name, group, rule, shape, start=start)
        self.statistics.append(block)
        return Ref("base", name, block.dtype, shape), Ref("share", name, block.dtype, shape)

    def buffer(self, name: str, *shape: int, dtype: str = "f32") -> Ref:
        """Workspace for the plan's life, zero at first. A second buffer of the name gets a number."""
        while name in self.buffers:
            name += "'"
        self.buffers[name] = (dtype, shape)
        return Ref("work", name, dtype, shape)

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

    def call(self, op: str, *args: Ref | int | float | None, types: str = "") -> None:
        """Appends a kernel call to the phases in force."""
        assert len(args) == len(ops.get(op).args), f"{op}: {len(args)} arguments"
        for phase in self._phases:
            self.calls[phase].append(Call(op, types, args))

    @contextmanager
    def during(self, *phases: str) -> Iterator[None]:
        """Calls inside go to these phases."""
        before, self._phases = self._phases, phases
        try:
            yield
        finally:
            self._phases = before

    def on_backward(self, backward: Backward, x: Value) -> None:
        """`backward` will be called, in reverse order, with the gradient of what was made from x."""
        self.tape.append((backward, x))

    def run_backward(self, gradient: Ref) -> None:
        """Walks the tape from the loss's gradient to the input."""
        current: Ref | None = gradient
        for backward, x in reversed(self.tape):
            if current is None:
                return
            current, masked = backward(current)
            if current is not None and x.masks and not masked:
                self.call("relu_gradient", current.elements, current, current, x.ref, x.ref, types="float")
