"""A network that another library computes, between the input matrix and the loss: its blocks in the state, and the
calls out of a plan that it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from streamtrain import _native
from streamtrain.compute.builder import FORWARD, INFERENCE, STEP, Builder, Gradient, Value
from streamtrain.compute.module_spec import COUNTERS, ModuleSpec
from streamtrain.compute.spec import Array, InSlot, Ref, Run
from streamtrain.compute.tiling import leading_to
from streamtrain.errors import UserMistake


class Instance(Protocol):
    """The network over one plan's memory. Each method gets arrays that stay where they are and gives what runs; those
    of a state are its parameters and then its averages."""

    def forward(self, step: _native.StepBlock, x: Array, z: Array, *rest: Array) -> Run:
        """A training step's outputs into z. `rest`: where there are counters, int64 what they were at the round's start
        and what this worker has added to them; the state."""

    def backward(self, dz: Array, flat: Array, *rest: Array) -> Run:
        """From the gradient of the newest z to those of the parameters, which lie in `flat` with gaps. `rest`: where x
        learns, its gradient; the parameters'."""

    def loss(self, z: Array, dz: Array, label: InSlot, weight: InSlot) -> Run:
        """The gradient of the weighted mean of its own loss into dz; `z` is what the network gave, and whatever the job
        has added to it. Only where the spec says own_loss."""

    def update(self, step: _native.StepBlock, *kept: Array) -> Run:
        """One step of its own optimizer, over what that keeps in the spec's order. Only where the spec has one."""

    def predict(self, x: Array, z: Array, *rest: Array) -> Run:
        """Outputs into z; changes nothing else. `rest`: where there are counters, what they are; the state."""


class Module(Protocol):
    """The network itself, wherever it comes from. Both raise UserMistake where it is not what the spec says."""

    def start(self, spec: ModuleSpec, seed: int) -> Mapping[str, Array]:
        """Returns the parameters, averages and counters by name that a lineage begins with."""

    def instance(self, spec: ModuleSpec, x_learns: bool) -> Instance:
        """For one plan; `x_learns`: something below wants the gradient of x."""


def _needed(module: Module | None, spec: ModuleSpec) -> Module:
    if module is None:
        raise UserMistake(
            f"the network of this model is {spec.name}, which is not at hand: nothing is imported because a snapshot "
            f'says so; give it (module = …), or use a job file that says [model] torch = "{spec.name}"'
        )
    return module


class _Late:
    """The instance of one builder, made when its first call is bound to memory: a layout alone needs none."""

    def __init__(self, module: Module | None, spec: ModuleSpec, x_learns: bool) -> None:
        self._module, self._spec, self._x_learns = module, spec, x_learns
        self._instance: Instance | None = None

    def bound(self, method: str) -> Callable[..., Run]:
        def bind(*arrays: Any) -> Run:
            if self._instance is None:
                self._instance = _needed(self._module, self._spec).instance(self._spec, self._x_learns)
            run: Run = getattr(self._instance, method)(*arrays)
            return run

        return bind


class Network:
    """The network in one builder."""

    def __init__(self, builder: Builder, spec: ModuleSpec, module: Module | None, x: Value) -> None:
        """Adds its blocks, module.<name> each."""
        self._spec, self._x, self._instance = spec, x, _Late(module, spec, x.learns)
        learned = [builder.parameter(tensor.block, *tensor.shape, part=tensor.part) for tensor in spec.parameters]
        self._gradients = [gradient for _, gradient in learned]
        self._state = [*(parameter for parameter, _ in learned),
                       *(builder.average(tensor.block, *tensor.shape) for tensor in spec.averages)]
        count = sum(tensor.elements for tensor in spec.counters)
        self._counters = builder.statistic(COUNTERS, "statistics", "sum", count, dtype="i64") if count else ()

    def forward(self, builder: Builder, outputs: int) -> Value:
        """Adds the calls of both phases, and of the way back."""
        x, bound = self._x, self._instance.bound
        z = builder.buffer("module.output", builder.rows, outputs)
        self._train = partial(builder.outside, bound("forward"), STEP, x.ref, z, *self._counters, *self._state)
        with builder.during(*FORWARD):
            if not self._is_scored_apart:
                self._train()
        with builder.during(*(FORWARD if self._is_scored_apart else ()), *INFERENCE):
            builder.outside(bound("predict"), x.ref, z, *self._counters[:1], *self._state)
        self._z, self._first = z, len(builder.calls)

        def backward(dz: Ref) -> list[Gradient | None]:
            dx = builder.buffer("module.input_gradient", *x.ref.shape) if x.learns else None
            builder.outside(bound("backward"), dz, builder.flat("gradient"), *([dx] if dx else []), *self._gradients)
            return [None if dx is None else Gradient(dx)]

        return builder.on_backward(backward, [x], Value(z))

    @property
    def _is_scored_apart(self) -> bool:
        """True if rows are scored by the prediction pass: a batch's own moments would show each row the others."""
        return self._spec.least_rows > 1

    def train(self, builder: Builder, dz: Ref) -> None:
        """Adds the training pass behind the scores of another, and the gradient of its outputs."""
        if not self._is_scored_apart:
            return
        calls = [call for phases, call in builder.calls[self._first :] if FORWARD[0] in phases]
        self._train()
        builder.repeat(leading_to(dz, self._z, calls))

    def loss(self, builder: Builder, z: Value, dz: Ref, label_dtype: str) -> None:
        """Adds the gradient of the network's own loss, if it has one. It replaces the gradient of the job's loss."""
        if self._spec.own_loss:
            label, weight = builder.slot("label", label_dtype, 1), builder.slot("weight", "f32", 1)
            builder.outside(self._instance.bound("loss"), z.ref, dz, label, weight)

    @property
    def has_update(self) -> bool:
        """Returns whether the network has an optimizer of its own for its parameters."""
        return self._spec.optimizer is not None

    def update(self, builder: Builder, rule: str) -> None:
        """Adds the call of its own optimizer. `rule`: of what that keeps."""
        own = self._spec.optimizer
        assert own is not None
        kept = [builder.kept(own.block(each), rule, *each.shape) for each in own.kept]
        builder.outside(self._instance.bound("update"), STEP, *kept, besides=(*self._gradients, *self._state))


def begin(spec: ModuleSpec, module: Module | None, seed: int, blocks: Mapping[str, Array]) -> None:
    """The network's own start into the blocks of a state."""
    start = _needed(module, spec).start(spec, seed)
    for tensor in (*spec.parameters, *spec.averages):
        blocks[tensor.block][...] = start[tensor.name]
    at = 0
    for tensor in spec.counters:
        blocks[COUNTERS][at : at + tensor.elements] = start[tensor.name].reshape(-1)
        at += tensor.elements
