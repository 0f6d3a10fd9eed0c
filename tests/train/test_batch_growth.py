"""Batches grow with the rows the lineage has seen: what ingest's filler makes of a stream."""

from __future__ import annotations

from typing import Any

import pytest

from streamtrain import _native
from streamtrain.columns.plan import native_plan
from streamtrain.columns.schema import Schema
from streamtrain.job.sections import Train
from tests.train.arena_run import SPEC, ArenaRun

COLUMNS: dict[str, Any] = {f"x{at}": {} for at in range(4)} | {"late": {"role": "label"}}
CAPACITY = 16   # rows of a slot of ArenaRun


class Stream(ArenaRun):
    """Rows through the filler, a record each; `sizes` are those of the batches they came into."""

    def __init__(self, batch_growth: int, rows_seen: int = 0) -> None:
        super().__init__(workers=1, frequency=4, spec=SPEC)
        self.ring.begin(round=-1, learning_rate=0.01, rows_seen=rows_seen, positions=[(0, 0, 0)])
        plan = native_plan(Schema.from_columns(COLUMNS, "binary_cross_entropy"), self.slots)
        self.source = _native.MemorySource()
        cutter = _native.RoundCutter(self.arena, batch_growth=batch_growth)
        self.ingesting = _native.Ingest(cutter, self.source, "json", plan)
        self.ingesting.start()
        self.sizes: list[int] = []

    def feed(self, rows: int) -> list[int]:
        drain = _native.RoundLogThread(self.ring)
        drain.start()
        seen = 0
        for offset in range(rows):
            assert self.source.put(b"[1, 2, 3, 4, 1]", 1.0)
            while self.arena.progress()["records"] == offset:
                assert self.ingesting.run(0.0001) == _native.IngestStatus.WORKING
            while self.arena.progress()["slots_filled"] > seen:
                self.sizes.append(offset + 1 - sum(self.sizes))
                seen += 1
                if seen % 4 == 0:
                    self.crew[0][0].run_closed_round(self.crew[0][1])
        return self.sizes


@pytest.mark.parametrize("growth", [10, 50])
def test_a_batch_has_a_row_for_so_many_rows_seen(growth: int) -> None:
    seen = 0
    for size in Stream(growth).feed(600):
        assert size == min(max(1, seen // growth), CAPACITY)
        seen += size


def test_a_run_that_goes_on_has_the_batches_of_a_lineage_of_its_age() -> None:
    assert Stream(10, rows_seen=75).feed(28) == [7, 8, 9]
    assert set(Stream(10, rows_seen=10**12).feed(64)) == {CAPACITY}


def test_without_growth_every_batch_fills_its_slot() -> None:
    assert set(Stream(0).feed(64)) == {CAPACITY}


@pytest.mark.parametrize(("growth", "rows"), [(10, 400), (50, 77), (None, 400)])
def test_the_updates_a_job_tells_are_those_the_filler_makes(growth: int | None, rows: int) -> None:
    train = Train.model_validate({"batch_rows": CAPACITY, "batch_growth": growth or "off"})
    batches = len(Stream(growth or 0).feed(rows))   # but for one that is still open
    assert abs(train.updates(rows) - batches) <= 1
    assert Train.model_validate({"batch_rows": CAPACITY, "workers": 4}).updates(10**6) < 10**6
