"""Rounds over any blocks: an arena whose workers' one step leaves the values it is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.compute.state import block_view, view, views

Array = np.ndarray[Any, Any]
Spec = tuple[Any, ...]   # name, group, rule, shape, and if it is said how it is stored
STEPS: Spec = (_native.OPTIMIZER_STEPS, "optimizer", "highest", (1,))
NOTHING: Mapping[str, str] = {}   # says whose the rows of a block are
SLOTS = _native.SlotLayout.make(1, 1, [("weight", "f32", 1)])


class Worker:
    """One worker's memory, block by block, and the plan that writes what it is given into it."""

    def __init__(self, arena: _native.Arena, layout: _native.StateLayout, index: int) -> None:
        self.rounds = _native.Worker(arena, index)
        state = view(self.rounds.state_address, layout.state_bytes)
        base = view(self.rounds.base_address, layout.statistics_bytes)
        self.state = {block.name: block_view(block, state, block.offset) for block in layout.blocks}
        statistics = [block for block in layout.blocks if block.offset >= layout.learned_bytes]
        self.base = {block.name: block_view(block, base, block.part_offset) for block in statistics}
        self.plan = _native.ForeignPlan(1, 1, {"train": self._train}, lambda: None, lambda: None)
        self._step = _native.StepBlock.at(self.plan.step.address)
        self.values: Mapping[str, Array] = {}
        self.weight = 0.0

    def begin(self) -> None:
        """The open round, of which no slot has come yet."""
        assert self.rounds.run(self.plan, 0.01) == _native.WorkerStatus.WORKING

    def _train(self, slot: int) -> None:
        for name, value in self.values.items():
            self.state[name][...] = value   # a statistics block's share lies in the state as well
        self._step.weight_sum = self.weight


class BlockRounds:
    """`start` is a whole state by block; kept-per-worker blocks begin with it in every worker."""

    def __init__(
        self, blocks: Sequence[Spec], workers: int, start: Mapping[str, Array], rows_of: Mapping[str, str] = NOTHING
    ) -> None:
        specs = ((name, *rest, *[""] * (4 - len(rest)), rows_of.get(name, "")) for name, *rest in (*blocks, STEPS))
        self.layout = _native.StateLayout.make([_native.StateBlockSpec(*spec) for spec in specs])
        self.published = self.layout.published(workers)
        self.arena = _native.Arena.create(
            workers=workers, averaging_frequency=1, slot_count=2 * workers, slot_layout=SLOTS, state_layout=self.layout
        )
        weight = next(block for block in SLOTS.blocks if block.name == "weight").offset
        for slot in range(2 * workers):
            view(self.arena.slot_address(slot) + weight, 4).view(np.float32)[:] = 1
        state = np.zeros(self.layout.state_bytes, np.uint8)
        for name, value in start.items():
            views(self.layout, state)[name][...] = value
        self.layout.begin_lineage(state, workers, view(self.arena.mean_address(0), self.published.state_bytes))
        self.ring, self.ingest = _native.CoordinatorEnd(self.arena), _native.IngestEnd(self.arena)
        self.ring.begin(round=6, learning_rate=0.1)   # not a lineage's first, which has a pass of its own
        self.ring.start()
        self.workers = [Worker(self.arena, self.layout, index) for index in range(workers)]
        self._round = 7

    def train(self, values: Sequence[Mapping[str, Array]], weights: Sequence[float]) -> dict[str, Array]:
        """One round; what is published of its mean. A worker of weight 0 has a batch without rows."""
        first = (self._round - 7) * len(self.workers)
        self.ingest.fill_round(round=self._round, first_slot=first, rows=[int(weight > 0) for weight in weights])
        self._round += 1
        for worker, given, weight in zip(self.workers, values, weights, strict=True):
            worker.values, worker.weight = given, weight
            worker.rounds.run_closed_round(worker.plan)
        return self.mean()

    def mean(self) -> dict[str, Array]:
        """What is published of the newest mean."""
        buffer, _ = self.ring.pin_newest()
        return views(self.published, view(self.arena.mean_address(buffer), self.published.state_bytes).copy())

    def begun(self, name: str, worker: int) -> Array:
        """What a worker's vector has of a block at the start of the next round, by the newest mean."""
        mean, shape = self.mean(), self.workers[worker].state[name].shape
        if name in self.workers[worker].base:
            return np.zeros(shape, self.workers[worker].base[name].dtype)
        return mean.get(f"{name}@{worker}", mean.get(name)).reshape(shape)
