"""A plan that runs no step before collect(): the host's order of things on a device, over a CPU plan."""

from __future__ import annotations

import ctypes

import numpy as np

from streamtrain import _native
from streamtrain.compute.model import aligned
from streamtrain.compute.state import view


class Deferred:
    """Steps as `inner` does them; asserts that the caller keeps to the order Plan asks for."""

    def __init__(self, inner: _native.Plan, steps_ahead: int) -> None:
        self.inner = inner
        self.steps_ahead = steps_ahead
        self.waiting: list[tuple[int, bytes]] = []   # slot address, step block
        self.most_waiting = 0
        self.blocks = aligned(steps_ahead * _native.STEP_BYTES)
        self.plan = _native.ForeignPlan(
            inner.rows, inner.width, dict(train=self.train, predict=inner.predict), self.begin_round, self.end_round,
            self.enqueue, self.collect, steps_ahead,
        )  # fmt: skip
        self.step_address = self.plan.step.address

    def enqueue(self, slot: int) -> None:
        assert len(self.waiting) < self.steps_ahead
        self.waiting.append((slot, ctypes.string_at(self.step_address, _native.STEP_BYTES)))
        self.most_waiting = max(self.most_waiting, len(self.waiting))

    def collect(self) -> int:
        assert self.waiting
        self.blocks[:] = 0xFF   # what was handed out before is over
        for at, (slot, block) in enumerate(self.waiting):
            step = view(self.inner.step.address, _native.STEP_BYTES)
            step[:] = np.frombuffer(block, np.uint8)
            self.inner.train(slot)
            self.blocks[at * len(step) : (at + 1) * len(step)] = step
        self.waiting.clear()
        return int(self.blocks.ctypes.data)

    def train(self, slot: int) -> None:
        self.enqueue(slot)
        ctypes.memmove(self.step_address, self.collect(), _native.STEP_BYTES)

    def begin_round(self) -> None:
        assert not self.waiting
        self.inner.begin_round()

    def end_round(self) -> None:
        assert not self.waiting
        self.inner.end_round()
