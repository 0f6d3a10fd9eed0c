"""A job's training without Kafka: its records through ingest's filler, the decoder and the workers' rounds, as a
trainer has them, in threads of this process.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.columns.plan import native_plan
from streamtrain.compute.metrics import summary
from streamtrain.compute.model import Model
from streamtrain.compute.state import view, views
from streamtrain.job import Job

RANGES = 512  # of a slot, as the supervisor gives it


class LocalRun:
    """One lineage on the CPU. Rounds close when they are full, and at the end."""

    def __init__(self, job: Job) -> None:
        train, schema = job.train, job.schema
        self.model = Model(job.model_spec())
        layout = _native.SlotLayout.make(train.batch_rows, RANGES, schema.block_specs())
        self.arena = _native.Arena.create(
            workers=train.workers, averaging_frequency=train.averaging_frequency, slot_count=train.prefetch_buffer,
            slot_layout=layout, state_layout=self.model.layout,
        )  # fmt: skip
        self._layout = self.model.layout.published(train.workers)
        start = view(self.arena.mean_address(0), self._layout.state_bytes)
        self.model.layout.begin_lineage(self.model.initial_state(train.seed), train.workers, start)
        self._ring = _native.CoordinatorEnd(self.arena)
        rate = job.optimizer.learning_rate
        self._ring.begin(round=-1, learning_rate=rate, positions=[(0, 0, 0)])
        self._log = _native.RoundLogThread(self._ring)
        self._log.start()
        self._ring.start()
        plan = native_plan(schema, layout)
        self._source = _native.MemorySource()
        cutter = _native.RoundCutter(self.arena, batch_growth=train.batch_growth or 0)
        self._ingest = _native.Ingest(cutter, self._source, job.records.format, plan)
        self._workers = [threading.Thread(target=self._work, args=(index, layout)) for index in range(train.workers)]
        self._workers.append(threading.Thread(target=self._take))
        for worker in self._workers:
            worker.start()

    def _work(self, index: int, layout: _native.SlotLayout) -> None:
        worker = _native.Worker(self.arena, index)
        addresses = (worker.state_address, worker.base_address, worker.share_address)
        plan = self.model.compile("cpu", layout, *addresses)
        while worker.run(plan, 1.0) == _native.WorkerStatus.WORKING:
            pass

    def _take(self) -> None:
        self._ingest.start()
        while self._ingest.run(1.0) == _native.IngestStatus.WORKING:
            self._ring.beat()

    def feed(self, records: Sequence[bytes]) -> None:
        for record in records:
            assert self._source.put(record, 600.0)

    def end(self) -> dict[str, np.ndarray[Any, Any]]:
        """The state's blocks by name once every record is trained."""
        self._source.end()
        for worker in self._workers:
            worker.join()
        buffer, _ = self._ring.pin_newest()
        state = view(self.arena.mean_address(buffer), self._layout.state_bytes).copy()
        return views(self._layout, state)


def trained(job: Job, records: Sequence[bytes]) -> dict[str, float]:
    """The figures of one pass, every row scored before it is learned, and the updates it took."""
    run = LocalRun(job)
    run.feed(records)
    state = run.end()
    return {
        **summary({name: array for name, array in state.items() if name.startswith("score.")}),
        "updates": int(state["optimizer.steps"].reshape(-1)[0]),
    }
