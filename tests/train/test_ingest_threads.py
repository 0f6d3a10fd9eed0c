"""Threads of ingest that all wait for room in a full ring: whichever gathers what comes free, none waits on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from waiting import wait_for

from streamtrain import _native
from streamtrain.columns.plan import native_plan
from streamtrain.columns.schema import Schema
from tests.train.arena_run import ROWS, SPEC, ArenaRun

COLUMNS: dict[str, Any] = {f"x{at}": {} for at in range(4)} | {"late": {"role": "label"}}
ROUNDS, FREQUENCY, THREADS = 200, 4, 4


class Stream(ArenaRun):
    """A partition a thread, each with its share of the rows, and a ring of two rounds that they fill at once."""

    def __init__(self) -> None:
        super().__init__(workers=1, frequency=FREQUENCY, spec=SPEC, more_slots=THREADS - 1)
        self.ring.begin(round=-1, learning_rate=0.01, positions=[(at, 0, 0) for at in range(THREADS)])
        plan = native_plan(Schema.from_columns(COLUMNS, "binary_cross_entropy"), self.slots)
        self.cutter = _native.RoundCutter(self.arena)
        self.sources = [_native.MemorySource() for _ in range(THREADS)]
        self.threads = [_native.Ingest(self.cutter, source, "json", plan) for source in self.sources]
        for thread, source in zip(self.threads, self.sources, strict=True):
            thread.start()
            for _ in range(ROUNDS * FREQUENCY * ROWS // THREADS):
                assert source.put(b"[1, 2, 3, 4, 1]", 1.0)
            source.end()


    def full(self) -> bool:
        progress = self.arena.progress()
        return bool(progress["slots_filled"] - progress["slots_released"] == self.arena.slot_count)


def to_its_end(thread: _native.Ingest) -> _native.IngestStatus:
    while (status := thread.run(0.05)) == _native.IngestStatus.WORKING:
        pass
    return status


def test_what_comes_free_is_for_all_who_wait() -> None:
    stream = Stream()
    drain = _native.RoundLogThread(stream.ring)
    drain.start()
    with ThreadPoolExecutor(THREADS) as pool:
        ends = [pool.submit(to_its_end, thread) for thread in stream.threads]
        try:
            for _ in range(ROUNDS):
                wait_for(lambda: stream.full() or not wait(ends, 0.0005).not_done)
                wait(ends, 0.001)  # now all of them wait
                stream.crew[0][0].run_closed_round(stream.crew[0][1])
        finally:
            stream.cutter.leave()
    assert [end.result() for end in ends] == [_native.IngestStatus.ENDED] * THREADS
    assert stream.arena.progress()["rows"] == ROUNDS * FREQUENCY * ROWS
