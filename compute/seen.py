"""The values that a model sees of a slot. It is a plan of its own that ends after numbers are standardised and
transforms with state have run. It serves callers that want these values and no prediction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamtrain import _native
from streamtrain.compute import backends, input, stateful_inputs
from streamtrain.compute.bound import Memory, bound
from streamtrain.compute.builder import Builder
from streamtrain.compute.model import Model
from streamtrain.compute.spec import Array, Call, Outside, PerRow, Ref

Place = tuple[str, int]   # block of a slot, column of it


class Seen:
    """A reader of what one state sees, for slots of one layout; on the CPU. One thread at a time.

    places: for columns of the blocks of numbers and vectors, which of numbers() they are; made: the same for transforms
    with state that make a number; indexes: the transforms with state that make an index.
    """

    def __init__(self, model: Model, slot_layout: _native.SlotLayout, state: Memory) -> None:
        """`state` is the model's, which is kept and only read."""
        self._model, self._layout, self._state = model, slot_layout, state
        shape, builder = model.parsed.input, Builder(PerRow(slot_layout.row_capacity))
        fixed = shape.blocks
        width = sum(map(len, fixed.values())) + sum(map(stateful_inputs.width, shape.stateful))
        x, at = builder.buffer("seen", builder.rows, max(1, width)), 0
        self.places: dict[Place, int] = {}
        self.stateful_columns: dict[str, int] = {}
        for block, chosen in fixed.items():
            self.places |= {(block, column): at + column for column in range(len(chosen))}
            at = input.numbers(builder, block, chosen, x, at)
        numbers = [*builder.calls_of("predict")]
        before = len(numbers)
        self._indexes: dict[str, _native.Plan] = {}
        for each, column, _, index in stateful_inputs.build(builder, shape.stateful, model.label_dtype, x, at):
            calls = builder.calls_of("predict")
            own, before = calls[before:], len(calls)
            if index is None:
                self.stateful_columns[each.name] = column
                numbers += own
            else:
                self._indexes[each.name] = self._compiled(builder, own, index)
        self._numbers = self._compiled(builder, numbers, x)

    def numbers(self, slot: Array) -> Array:
        """float32 [rows of the layout, columns] of a slot, uint8 and 64-byte aligned; holds until the next one."""
        self._numbers.predict(slot.ctypes.data)
        return self._numbers.output()

    @property
    def indexes(self) -> list[str]:
        return list(self._indexes)

    def index(self, name: str, slot: Array) -> Array:
        """int32 [rows of the layout] of a slot; holds until the next one."""
        plan = self._indexes[name]
        plan.predict(slot.ctypes.data)
        return plan.output().view(np.int32)[:, 0]

    def _compiled(self, builder: Builder, calls: Sequence[Call | Outside], output: Ref) -> _native.Plan:
        cpu = backends.get("cpu")
        program = self._model.assembled(builder, {"predict": tuple(calls)}, output, self._layout, cpu.TILE_ROWS)
        start = bound(self._state, self._model.state_bytes, "state")
        plan: _native.Plan = cpu.compile(program, (start, start + self._model.learned_bytes, 0))
        plan._held = (self._state, program)
        return plan
