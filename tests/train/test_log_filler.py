"""Slots filled by a log hold what ingest put there: whatever straddles them, and however the partitions alternate."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from streamtrain import _native
from streamtrain.columns.plan import native_plan
from streamtrain.columns.schema import Schema
from streamtrain.topics.rounds import RANGE_DTYPE, ROUND_DTYPE, SLOT_DTYPE
from tests.train.arena_run import ArenaRun

COLUMNS: dict[str, Any] = {f"x{at}": {} for at in range(4)} | {"late": {"role": "label", "missing": "skip"}}
PARTITIONS = 2
SILENCE_S = 0.2
Log = tuple[np.ndarray, np.ndarray, np.ndarray]  # rounds, slots, ranges
Open = Callable[[int, int], _native.Source]


def records(partition: int) -> list[bytes | None]:
    """Records of 1 to 9 rows, some of which cannot be trained or are left out, and some that are no records at all."""
    random = np.random.default_rng(partition)
    made: list[bytes | None] = []
    for size in random.integers(1, 10, 60).tolist():
        rows = random.normal(0, 1, (size, 4)).round(3).tolist()
        labels = random.choice(["0", "1", "null", '"bad"'], size, p=[0.4, 0.4, 0.1, 0.1])
        cells = ",".join(f"[{json.dumps(row)[1:-1]}, {label}]" for row, label in zip(rows, labels, strict=True))
        made.append(random.choice([b"{", f"[{cells}]".encode()], p=[0.1, 0.9]))
    return made


def plan_of(run: ArenaRun) -> _native.DecodePlan:
    return native_plan(Schema.from_columns(COLUMNS, "binary_cross_entropy"), run.slots)


def trained() -> tuple[ArenaRun, Log]:
    """A run whose ingest read the records, by a thread a partition in turn, and the log of it."""
    run = ArenaRun(more_slots=64)
    run.ring.begin(round=-1, learning_rate=0.01, positions=[(at, 0, 0) for at in range(PARTITIONS)])
    drain, cutter = _native.RoundLogThread(run.ring), _native.RoundCutter(run.arena)
    drain.start()
    sources = [_native.MemorySource() for _ in range(PARTITIONS)]
    threads = [_native.Ingest(cutter, source, "json", plan_of(run)) for source in sources]
    for thread in threads:
        thread.start()
    for values in zip(*map(records, range(PARTITIONS)), strict=True):
        for value, source, thread in zip(values, sources, threads, strict=True):
            source.put(value, 1.0)
            thread.run(0.001)
    for source, thread in zip(sources, threads, strict=True):
        source.end()
        while thread.run(0.05) != _native.IngestStatus.ENDED:
            pass
    for _ in range(closed := run.arena.progress()["rounds_closed"]):
        for worker, plan in run.crew:
            worker.run_closed_round(plan)
    taken: list[tuple[bytes, ...]] = []
    last = -1
    while last < closed - 1:
        last, _, *columns = drain.take()
        taken.append(tuple(columns))
    rounds, slots, ranges = (
        np.frombuffer(b"".join(parts), dtype)
        for parts, dtype in zip(zip(*taken, strict=True), (ROUND_DTYPE, SLOT_DTYPE, RANGE_DTYPE), strict=True)
    )
    return run, (rounds, slots, ranges)


def of_iterators(partition: int, offset: int) -> _native.Source:
    return _native.IteratorSource(iter(list(enumerate(records(partition)))[offset:]))


def filler_of(run: ArenaRun, open_: Open = of_iterators) -> _native.LogFiller:
    return _native.LogFiller(run.arena, _native.LogSource(open_), SILENCE_S, "json", plan_of(run))


def filled(run: ArenaRun, log: Log) -> list[tuple[_native.LogStatus, int, int]]:
    """How each slot of the log was filled, and trained."""
    (rounds, slots, ranges), filler = log, filler_of(run)
    ends = []
    for round_ in rounds:
        first, found = int(round_["first_slot"]), []
        for slot in slots[first : first + round_["slots"]]:
            own, ranges = ranges[: slot["range_count"]], ranges[slot["range_count"] :]
            found.append(filler.fill(int(slot["slot"]), own.tobytes()))
        run.ingest.fill_round(round=int(round_["round"]), first_slot=first, rows=[rows for _, rows, _ in found])
        for worker, plan in run.crew:
            worker.run_closed_round(plan)
        ends += found
    return ends


def test_the_bits_are_those_of_ingest() -> None:
    run, log = trained()
    _, slots, ranges = log
    assert (np.diff(ranges["partition"]) != 0).any() and (ranges["to_row"] > 0).sum() > 4
    again = ArenaRun()
    ends = filled(again, log)
    assert [status for status, _, _ in ends] == [_native.LogStatus.FILLED] * len(slots)
    assert [rows for _, rows, _ in ends] == slots["rows"].tolist()
    assert again.state().tobytes() == run.state().tobytes()


def test_a_partition_is_opened_once_and_again_where_a_log_leads_back() -> None:
    _, (_, _, ranges) = trained()
    opened: list[tuple[int, int]] = []

    def open_(partition: int, offset: int) -> _native.Source:
        opened.append((partition, offset))
        return of_iterators(partition, offset)

    filler, first = filler_of(ArenaRun(), open_), ranges[ranges["partition"] == 0][:3]
    assert filler.fill(0, first.tobytes())[0] == _native.LogStatus.FILLED and opened == [(0, 0)]
    assert filler.fill(1, first.tobytes())[0] == _native.LogStatus.FILLED and opened == [(0, 0), (0, 0)]


@pytest.mark.parametrize("field", ["records", "to_offset"])
def test_records_that_are_not_there_are_missed(field: str) -> None:
    """The range tells of one more than lies up to its end, or of one less far."""
    _, (_, _, ranges) = trained()
    first = ranges[:1].copy()
    first[field] += 1 if field == "records" else -1
    assert filler_of(ArenaRun()).fill(0, first.tobytes())[0] == _native.LogStatus.LACKING


def test_a_range_beyond_the_end_is_missed_and_a_silent_source_is_told() -> None:
    _, (_, _, ranges) = trained()
    beyond = ranges[:2].copy()
    beyond["from_offset"][1], beyond["to_offset"][1], beyond["records"][1] = 1000, 1001, 1

    def silent(partition: int, offset: int) -> _native.Source:
        return _native.MemorySource()

    ends = []
    for open_ in (of_iterators, silent):
        status, _, at = filler_of(ArenaRun(), open_).fill(0, beyond.tobytes())
        ends.append((status, at))
    assert ends == [(_native.LogStatus.LACKING, 1), (_native.LogStatus.SILENT, 0)]


def test_what_opening_or_reading_raises_comes_through() -> None:
    _, (_, _, ranges) = trained()

    def broken(partition: int, offset: int) -> _native.Source:
        raise LookupError("gone")

    def breaks(partition: int, offset: int) -> _native.Source:
        return _native.IteratorSource((1 // 0, b"") for _ in range(1))

    for open_, error in ((broken, LookupError), (breaks, ZeroDivisionError)):
        with pytest.raises(error):
            filler_of(ArenaRun(), open_).fill(0, ranges[:1].tobytes())
