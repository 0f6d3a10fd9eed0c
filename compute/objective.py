"""The objective that a model minimises over loaded rows, as a function of its parameters as one vector; on the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamtrain import _native
from streamtrain.compute import backends, optimizers
from streamtrain.compute.bound import at_address, bound
from streamtrain.compute.builder import BlockSpec
from streamtrain.compute.gradient_sums import DENSE, OF_TABLE
from streamtrain.compute.model import Model, aligned
from streamtrain.compute.spec import Array, Program
from streamtrain.errors import UserMistake

Vector = NDArray[np.float64]
MOST_PARAMETERS = 1 << 24   # a vector of them takes 128 MiB, and an optimizer keeps some twenty


@dataclass(frozen=True)
class _Part:
    """One parameter: where it lies in the vector, what it is in the state, and the sum of its gradients."""

    first: int
    state: NDArray[np.float32]
    total: Vector
    group: str

    @property
    def place(self) -> slice:
        return slice(self.first, self.first + self.state.size)


class Objective:
    """The mean loss of the rows of `slots`, by their weights, and l2 p^2 / 2 of the optimizer's settings; with its
    gradient.

    The parameters of `state`, the model's whole one, are those that were asked for last. Sums over slots are double, in
    their order: the same bits in every run and on every instruction set.
    """

    rounding = 1e-7   # of a value, relative: a row's loss is a float32

    def __init__(
        self, model: Model, slot_layout: _native.SlotLayout, slots: Sequence[Array], state: Array, isa: str = ""
    ) -> None:
        """Slots are uint8 and 64-byte aligned; `isa` is for tests. UserMistake for a model of which no such function
        can be had, and for slots without weight."""
        check_model(model)
        self._slots, self._state = list(slots), state
        share = self._share = aligned(model.statistics_bytes)   # of scores that nobody asks for
        program = model.program(slot_layout, ("objective",))
        start = bound(state, model.state_bytes, "state")
        addresses = (start, start + model.learned_bytes, bound(share, model.statistics_bytes, "share"))
        self._plan = backends.get("cpu").compile(program, addresses, isa=isa)
        self._parts = _parts(model, program, self._plan.work_address, model.views(state))
        settings = optimizers.by_group(model.parsed.optimizer, model.parsed.optimizer_settings)
        self._l2 = {group: its["l2"] for group, its in settings.items()}
        self._weight = 0.0
        for slot in self._slots:
            self._plan.objective(slot.ctypes.data)
            self._weight += self._plan.step.weight_sum
        if not self._weight > 0:
            raise UserMistake("rows: expected a weight above 0, got 0 of all of them")

    @property
    def size(self) -> int:
        """Returns the size of the vector: dense parameters in the state's order, then tables."""
        last = self._parts[-1]
        return last.first + last.state.size

    def start(self) -> Vector:
        """The parameters as the state has them."""
        return np.concatenate([part.state.reshape(-1) for part in self._parts]).astype(np.float64)

    def take(self, x: Vector) -> None:
        """Into the state."""
        for part in self._parts:
            with np.errstate(over="ignore"):   # too large for float32 is infinite there
                part.state.reshape(-1)[:] = x[part.place]

    def __call__(self, x: Vector) -> tuple[float, Vector]:
        """Returns value and gradient at x, rounded to float32."""
        self.take(x)
        for part in self._parts:
            part.total[:] = 0
        loss = 0.0
        for slot in self._slots:
            self._plan.objective(slot.ctypes.data)
            loss += self._plan.step.objective_sum
        loss /= self._weight
        gradient = np.concatenate([part.total for part in self._parts]) / self._weight
        for part in self._parts:
            if l2 := self._l2[part.group]:
                own = x[part.place]
                loss += l2 / 2 * float(np.add.reduce(own * own))
                gradient[part.place] += l2 * own
        return loss, gradient


def check_model(model: Model) -> None:
    """Raises UserMistake for one that has no objective over a window: before rows are read, and again by Objective."""
    if model.parsed.module is not None:
        raise UserMistake(
            "a PyTorch module: expected a network of layers, of which a whole window has one gradient, got a module; "
            "torch.optim.LBFGS is for those, or `fit`"
        )
    for group, its in optimizers.by_group(model.parsed.optimizer, model.parsed.optimizer_settings).items():
        if its["l1"]:
            raise UserMistake(
                f"optimizer: expected l1 = 0 for {group}, for |p| has no gradient at 0, got {its['l1']:g}; use l2, or "
                "`fit`, which takes an l1"
            )
    builder, _ = model.built(1)
    if builder.averages:
        raise UserMistake(
            "layers: expected none that looks at other rows of a batch, for then each cut of the rows into batches has "
            f"an objective of its own, got {builder.averages[0].name}; layer_norm and rms_norm look at a row alone"
        )
    if builder.draws:
        raise UserMistake(
            "layers: expected none that draws random numbers, for then the objective is another at every look, got "
            "dropout; leave it out, or use l2"
        )
    count = sum(int(np.prod(block.shape)) for block in (*builder.parameters, *builder.table_blocks))
    if count > MOST_PARAMETERS:
        raise UserMistake(
            f"parameters: expected at most {MOST_PARAMETERS:,}, for a window's optimizer keeps some twenty numbers for "
            f"each, got {count:,}; give the columns fewer buckets, or use `fit`"
        )


def _parts(model: Model, program: Program, work: int, blocks: Mapping[str, Array]) -> list[_Part]:
    builder, _ = model.built(1)
    found: list[_Part] = []
    at = 0

    def add(block: BlockSpec, name: str, skipped: int, group: str) -> None:
        nonlocal at
        state, total = blocks[block.name], np.zeros(blocks[block.name].size)
        if ("work", name) in program.offsets:   # else no output depends on it
            where = work + program.offsets["work", name] + 8 * skipped
            total = at_address(where, 8 * state.size).view(np.float64)
        found.append(_Part(at, state, total, group))
        at += state.size

    for place, block in builder.places() if builder.parameters else []:
        add(block, DENSE, place, block.part)
    for block in builder.table_blocks:
        add(block, f"{OF_TABLE}{block.name}", 0, "embedding")
    return found
