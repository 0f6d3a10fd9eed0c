"""Scores rows and their labels with a state that learns nothing of them: what a held-out set is judged by."""

from __future__ import annotations

from streamtrain import _native
from streamtrain.compute.bound import Memory, bound
from streamtrain.compute.model import Model, aligned
from streamtrain.compute.spec import Array


class Evaluator:
    """A scorer for one state and slots of one layout, on the CPU. Use it from one thread at a time. Raises
    UserMistake where the model's network is not there."""

    def __init__(self, model: Model, slot_layout: _native.SlotLayout, state: Memory) -> None:
        """`state` is the model's, which is kept and only read."""
        self._model, self._share = model, aligned(model.statistics_bytes)
        base = bound(state, model.state_bytes, "state") + model.learned_bytes
        self._plan = model.compile("cpu", slot_layout, state, base, self._share, phases=("evaluate",))

    def add(self, slot: Array) -> None:
        """The rows of a slot, uint8 and 64-byte aligned."""
        self._plan.evaluate(slot.ctypes.data)

    def scores(self) -> dict[str, Array]:
        """The score blocks of all rows so far (compute/metrics.py)."""
        return self._model.scores(self._share)
