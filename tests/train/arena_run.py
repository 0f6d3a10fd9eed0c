"""An arena with its workers in one process: rounds filled by hand, for tests of the native round code."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.compute.model import Model
from streamtrain.compute.state import view, views

SPEC: dict[str, Any] = {
    "input": {"numbers": 4, "standardize": [True, True, False, False]},
    "layers": [{"dense": 8, "activation": "relu"}],
    "loss": "binary_cross_entropy",
    "optimizer": {"name": "adam"},
}
ROWS = 16
WORKER_1 = """
import sys
from streamtrain import _native
from streamtrain.compute.model import Model
from streamtrain.compute.state import attach
from streamtrain.failpoints import arm
from tests.train.arena_run import SPEC

arena = attach(int(sys.argv[1]))
model = Model(SPEC)
worker = _native.Worker(arena, 1)
plan = model.compile("cpu", arena.slot_layout, worker.state_address, worker.base_address, worker.share_address)
arm(sys.argv[2])
worker.run_closed_round(plan)
"""


class ArenaRun:
    def __init__(
        self, workers: int = 2, frequency: int = 2, spec: dict[str, Any] = SPEC, round_: int = -1,
        backend: str = "cpu", more_slots: int = 0, slots: _native.SlotLayout | None = None,
        learning_rate: float = 0.01,
    ) -> None:  # fmt: skip
        self.model, self.backend = Model(spec), backend
        self.workers = workers
        self.frequency = frequency
        blocks = [("numbers", "f64", 4), ("label", "f32", 1), ("weight", "f32", 1)]
        self.slots = slots or _native.SlotLayout.make(ROWS, 8, blocks)
        self.arena = _native.Arena.create(
            workers=workers, averaging_frequency=frequency, slot_count=2 * workers * frequency + more_slots,
            slot_layout=self.slots, state_layout=self.model.layout,
        )  # fmt: skip
        self.layout = self.model.layout.published(workers)
        start = view(self.arena.mean_address(0), self.layout.state_bytes)
        self.model.layout.begin_lineage(self.model.initial_state(7), workers, start)
        self.ring = _native.CoordinatorEnd(self.arena)
        self.ring.begin(round=round_, learning_rate=learning_rate)
        self.ring.start()
        self.supervisor, self.ingest = _native.SupervisorEnd(self.arena), _native.IngestEnd(self.arena)
        self.next_round, self.next_slot = round_ + 1, 0
        self.crew = [self.worker(index) for index in range(workers)]

    def worker(self, index: int) -> tuple[_native.Worker, _native.Plan]:
        worker = _native.Worker(self.arena, index)
        plan = self.model.compile(
            self.backend, self.slots, worker.state_address, worker.base_address, worker.share_address
        )
        return worker, plan

    def fill(
        self, batches: list[tuple[np.ndarray, np.ndarray]], rejected: tuple[int, ...] = (), closed: bool = True
    ) -> None:
        """One round of (numbers, labels) batches; the first ones of it where it is not closed."""
        offsets = {block.name: block.offset for block in self.slots.blocks}
        for index, (numbers, labels) in enumerate(batches):
            slot = view(self.arena.slot_address(self.next_slot + index), self.slots.slot_bytes)
            slot[offsets["numbers"] :] = 0
            rows = len(labels)
            slot[offsets["numbers"] :][: rows * 32].view(np.float64)[:] = numbers.reshape(-1)
            slot[offsets["label"] :][: rows * 4].view(np.float32)[:] = labels
            slot[offsets["weight"] :][: rows * 4].view(np.float32)[:] = 1
            if index in rejected:
                self.supervisor.reject(self.next_slot + index, index % self.workers)
        self.ingest.fill_round(
            round=self.next_round, first_slot=self.next_slot, rows=[len(labels) for _, labels in batches], closed=closed
        )
        if closed:
            self.next_round += 1
            self.next_slot += len(batches)

    def clear_weights(self, slot: int) -> None:
        offset = next(block.offset for block in self.slots.blocks if block.name == "weight")
        view(self.arena.slot_address(slot) + offset, ROWS * 4)[:] = 0

    def train(self, *batches: tuple[np.ndarray, np.ndarray], rejected: tuple[int, ...] = ()) -> None:
        """Finishes the round that is closed, or one of these batches."""
        if batches:
            self.fill([*batches], rejected)
        for worker, plan in self.crew:
            worker.run_closed_round(plan)
        assert self.arena.progress()["finished_round"] == self.next_round - 1

    def state(self) -> np.ndarray:
        buffer, _ = self.ring.pin_newest()
        return view(self.arena.mean_address(buffer), self.layout.state_bytes).copy()

    def views(self) -> dict[str, np.ndarray]:
        return views(self.layout, self.state())


def worker_1_elsewhere(run: ArenaRun, failpoints: str) -> subprocess.Popen[bytes]:
    """A process that runs the closed round as worker 1, with these failpoints."""
    descriptor = run.arena.descriptor
    return subprocess.Popen([sys.executable, "-c", WORKER_1, str(descriptor), failpoints], pass_fds=(descriptor,))


def two_rounds(backend: str, bad: tuple[int, ...]) -> np.ndarray:
    """The state after two rounds, with an infinity in these slots of the second."""
    run, second = ArenaRun(frequency=8, backend=backend), batches(0, 16)
    for at in bad:
        second[at][0][2, 2] = np.inf
    run.train(*batches(16, 32))
    run.train(*second)
    return run.state()


def batches(first: int, end: int) -> list[tuple[np.ndarray, np.ndarray]]:
    return [batch(seed) for seed in range(first, end)]


def batch(seed: int, rows: int = ROWS) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    numbers = random.normal(3, 2, (rows, 4))
    return numbers, (numbers[:, 0] + random.normal(0, 1, rows) > 3).astype(np.float32)
