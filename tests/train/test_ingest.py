"""Ingest's batches of a stream, which grow with the rows seen, and its threads, which wait for a full ring."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from looped import over
from waiting import wait_for

from streamtrain import _native
from streamtrain.columns.plan import native_plan
from streamtrain.columns.schema import Schema
from streamtrain.job.sections import Train
from tests.train.arena_run import ROWS, ArenaRun

COLUMNS: dict[str, Any] = {f"x{at}": {} for at in range(4)} | {"late": {"role": "label"}}
RECORD = b"[1, 2, 3, 4, 1]"
ROUNDS, FREQUENCY, THREADS = 200, 4, 4


class Stream(ArenaRun):
    """Rows through ingest, a record each, from a partition a thread into a ring of two rounds; its log is drained."""

    def __init__(self, threads: int = 1, batch_growth: int = 0, rows_seen: int = 0) -> None:
        super().__init__(workers=1, frequency=FREQUENCY, more_slots=threads - 1)
        positions = [(at, 0, 0) for at in range(threads)]
        self.ring.begin(round=-1, learning_rate=0.01, rows_seen=rows_seen, positions=positions)
        plan = native_plan(Schema.from_columns(COLUMNS, "binary_cross_entropy"), self.slots)
        self.cutter = _native.RoundCutter(self.arena, batch_growth=batch_growth)
        self.sources = [_native.MemorySource() for _ in range(threads)]
        self.threads = [_native.Ingest(self.cutter, source, "json", plan) for source in self.sources]
        for thread in self.threads:
            thread.start()
        self.drain = _native.RoundLogThread(self.ring)
        self.drain.start()

    def train_round(self) -> None:
        self.crew[0][0].run_closed_round(self.crew[0][1])

    def full(self) -> bool:
        progress = self.arena.progress()
        return bool(progress["slots_filled"] - progress["slots_released"] == self.arena.slot_count)


def batch_sizes(rows: int, batch_growth: int = 0, rows_seen: int = 0) -> list[int]:
    """Sizes of the batches into which rows come that are read one by one."""
    stream, sizes = Stream(1, batch_growth, rows_seen), []
    for offset in range(rows):
        assert stream.sources[0].put(RECORD, 1.0)
        while stream.arena.progress()["records"] == offset:
            assert stream.threads[0].run(0.0001) == _native.IngestStatus.WORKING
        while stream.arena.progress()["slots_filled"] > len(sizes):
            sizes.append(offset + 1 - sum(sizes))
            if len(sizes) % FREQUENCY == 0:
                stream.train_round()
    return sizes


@over("growth", [10, 50])
def test_a_batch_has_a_row_for_so_many_rows_seen(growth: int) -> None:
    seen = 0
    for size in batch_sizes(600, growth):
        assert size == min(max(1, seen // growth), ROWS)
        seen += size


def test_a_run_that_goes_on_has_the_batches_of_a_lineage_of_its_age() -> None:
    assert batch_sizes(28, 10, rows_seen=75) == [7, 8, 9]
    assert set(batch_sizes(64, 10, rows_seen=10**12)) == {ROWS}
    assert set(batch_sizes(64)) == {ROWS}   # without growth every batch fills its slot


@over(("growth", "rows"), [(10, 400), (50, 77), (None, 400)])
def test_the_updates_a_job_tells_are_those_the_filler_makes(growth: int | None, rows: int) -> None:
    train = Train.model_validate({"batch_rows": ROWS, "batch_growth": growth or "off"})
    batches = len(batch_sizes(rows, growth or 0))   # but for one that is still open
    assert abs(train.updates(rows) - batches) <= 1
    assert Train.model_validate({"batch_rows": ROWS, "workers": 4}).updates(10**6) < 10**6


def to_its_end(thread: _native.Ingest) -> _native.IngestStatus:
    while (status := thread.run(0.05)) == _native.IngestStatus.WORKING:
        pass
    return status


def test_what_comes_free_is_for_all_who_wait() -> None:
    """Whichever thread gathers it: none waits on."""
    stream = Stream(THREADS)
    for source in stream.sources:
        for _ in range(ROUNDS * FREQUENCY * ROWS // THREADS):
            assert source.put(RECORD, 1.0)
        source.end()
    with ThreadPoolExecutor(THREADS) as pool:
        ends = [pool.submit(to_its_end, thread) for thread in stream.threads]
        try:
            for _ in range(ROUNDS):
                wait_for(lambda: stream.full() or not wait(ends, 0.0005).not_done)
                wait(ends, 0.001)  # now all of them wait
                stream.train_round()
        finally:
            stream.cutter.leave()
    assert [end.result() for end in ends] == [_native.IngestStatus.ENDED] * THREADS
    assert stream.arena.progress()["rows"] == ROUNDS * FREQUENCY * ROWS
