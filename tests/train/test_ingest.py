"""Ingest's batches of a stream, which grow with the rows seen; its threads, which wait for a full ring; rows that wait
for others before they are transformed; and slots filled by a log, which hold what ingest put there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from example_format import example_format, is_columnar
from looped import over
from slots import HEADER, RowSlot, Tally, slot_views
from waiting import wait_for

from streamtrain import _native
from streamtrain.columns.schema import Schema
from streamtrain.compute.model import Model
from streamtrain.compute.state import view
from streamtrain.job.round_sizes import round_sizes
from streamtrain.job.sections import Train
from streamtrain.run import unpublished_dead_letters
from streamtrain.run.publication_clock import PublicationClock
from streamtrain.topics.rounds import RANGE_DTYPE, ROUND_DTYPE, SLOT_DTYPE
from tests.columns.test_transforms import FORMATS, WHERE, chain_rows, chained
from tests.oracles.records import encode_records
from tests.train.arena_run import ROWS, SPEC, ArenaRun

COLUMNS: dict[str, Any] = {f"x{at}": {} for at in range(4)} | {"late": {"role": "label"}}
RECORD = b"[1, 2, 3, 4, 1]"
ROUNDS, FREQUENCY, THREADS = 200, 4, 4


class Stream(ArenaRun):
    """Rows through ingest, a record each, from a partition a thread into a ring of two rounds; its log is drained."""

    def __init__(self, threads: int = 1, batch_growth: int = 0, rows_seen: int = 0, min_rows: int = 1) -> None:
        super().__init__(workers=1, frequency=FREQUENCY, more_slots=threads - 1)
        positions = [(at, 0, 0) for at in range(threads)]
        self.ring.begin(round=-1, learning_rate=0.01, rows_seen=rows_seen, positions=positions)
        plan = Schema.from_columns(COLUMNS, "binary_cross_entropy").native_plan(self.slots)
        self.cutter = _native.RoundCutter(self.arena, batch_growth=batch_growth, min_batch_rows=min_rows)
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


def batch_sizes(rows: int, batch_growth: int = 0, rows_seen: int = 0, min_rows: int = 1) -> list[int]:
    """Sizes of the batches into which rows come that are read one by one."""
    stream, sizes = Stream(1, batch_growth, rows_seen, min_rows), []
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


@over(("growth", "rows", "least"), [(10, 400, 1), (50, 77, 1), (10, 400, 5), (10, 400, ROWS), (None, 400, 1)])
def test_the_updates_a_job_tells_are_those_the_filler_makes(growth: int | None, rows: int, least: int) -> None:
    train = Train.model_validate({"batch_rows": ROWS, "batch_growth": growth or "off", "min_batch_rows": least})
    sizes = batch_sizes(rows, growth or 0, min_rows=least)   # but for one that is still open
    assert abs(round_sizes(train, 0, 1).updates(rows, train) - len(sizes)) <= 1
    assert not growth or sizes[0] == min(least, ROWS)


def test_the_rounds_of_a_large_model_are_long() -> None:
    """A round costs as much as the state is large: rows a round go with it, as far as the ring's memory allows."""
    def sizes(megabytes: int, row_bytes: int = 100, **given: Any) -> tuple[int, ...]:
        return tuple(round_sizes(Train.model_validate(given), megabytes * 1_000_000, row_bytes))[1:]

    assert sizes(0) == (4, 1, 24) and sizes(4) == (4, 4, 24)
    assert sizes(192) == (64, 192, 192) and sizes(640) == (64, 256, 192)
    assert sizes(20, workers=2) == (20, 20, 120) and sizes(192, batch_rows=32) == (64, 32, 192)
    assert sizes(192, row_bytes=150_000) == (4, 192, 24) and sizes(192, prefetch_buffer=24) == (12, 192, 24)
    assert sizes(192, averaging_frequency=1, min_batch_rows=2) == (1, 2, 24)


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


CAPACITY, SLOTS = 40, 64
DeadRow = tuple[int, int, str, str]  # record, row, path, reason


class Waiting:
    """Records through ingest into a ring that has room for all their rows."""

    def __init__(self, schema: Schema, format_name: str, records: list[bytes]) -> None:
        model = Model(SPEC)
        self.layout = _native.SlotLayout.make(CAPACITY, 8, schema.block_specs())
        self.arena = _native.Arena.create(
            workers=1, averaging_frequency=SLOTS // 2, slot_count=SLOTS, slot_layout=self.layout,
            state_layout=model.layout,
        )  # fmt: skip
        self.ring = _native.CoordinatorEnd(self.arena)
        self.ring.begin(round=-1, learning_rate=0.01, positions=[(0, 0, 0)])
        plan = schema.native_plan(self.layout)
        source = _native.MemorySource()
        ingest = _native.Ingest(_native.RoundCutter(self.arena), source, example_format(format_name), plan)
        ingest.start()
        for record in records:
            assert source.put(record, 1.0)
        source.end()
        while (status := ingest.run(0.05)) == _native.IngestStatus.WORKING:
            pass
        assert status == _native.IngestStatus.ENDED

    def slots(self) -> list[tuple[Any, Any, dict[str, bytes]]]:
        """Returns the header, the ranges and the rows by block of each slot."""
        found = []
        for number in range(self.arena.progress()["slots_filled"]):
            slot = view(self.arena.slot_address(number), self.layout.slot_bytes)
            header = slot[: HEADER.itemsize].view(HEADER)[0]
            ranges = slot[HEADER.itemsize :][: RANGE_DTYPE.itemsize * int(header["range_count"])].view(RANGE_DTYPE)
            rows = {name: blocks[: header["rows"]].tobytes() for name, blocks in slot_views(self.layout, slot).items()}
            found.append((header, ranges, rows))
        return found

    def letters(self) -> list[DeadRow]:
        """Returns what each() gives of those that wait to be published, in order."""
        waiting = unpublished_dead_letters._letters(self.ring.dead_letters(1 << 30)[0], str, 0)
        return [row for letter in waiting for row in each(letter.offset, letter.rows)]


def each(record: int, dead_rows: Iterable[Any]) -> list[DeadRow]:
    """Row by row; of rows together only the first one's path is told, hence no numbers."""
    return [
        (record, row, re.sub(r"\d+", "", dead.path), dead.reason)
        for dead in dead_rows for row in range(dead.row_from, dead.row_to)
    ]  # fmt: skip


def one_by_one(schema: Schema, format_name: str, records: list[bytes]) -> tuple[dict[str, bytes], Tally, list[DeadRow]]:
    """The same records, each by itself, which transforms its rows one by one."""
    slot = RowSlot(schema, CAPACITY, format_name)
    blocks = dict.fromkeys(slot.views, b"")
    tally, letters = Tally(), []
    for number, record in enumerate(records):
        known = len(tally.dead_rows)
        for rows, part in slot.record(record):
            tally.add(part)
            for name, block in slot.views.items():
                blocks[name] += block[:rows].tobytes()
        letters += each(number, tally.dead_rows[known:])
    return blocks, tally, letters


def records_of(format_name: str, schema: Schema, rows: list[dict[str, Any]], rows_of_a_record: int) -> list[bytes]:
    parts = [rows[at : at + rows_of_a_record] for at in range(0, len(rows), rows_of_a_record)]
    return [record for part in parts for record in encode_records(format_name, schema, part)]


def rows_without_mistakes(count: int, seed: int) -> list[dict[str, Any]]:
    """Rows that the encoders of columns take, too."""
    rows = chain_rows(count, seed)
    for row in rows:
        row["a"] = None if isinstance(row["a"], str) else row["a"]
        row["w"] = abs(row["w"])
    return rows


def compare(schema: Schema, format_name: str, records: list[bytes]) -> Tally:
    blocks, tally, letters = one_by_one(schema, format_name, records)
    stream = Waiting(schema, format_name, records)
    slots = stream.slots()
    assert sum(int(header["rows"]) for header, _, _ in slots) == tally.trained
    for name, block in blocks.items():
        assert b"".join(rows[name] for _, _, rows in slots) == block, name
    assert {int(header["rows"]) for header, _, _ in slots[:-1]} <= {CAPACITY}
    for kind in ("trained", "dead", "filtered"):
        assert sum(int(ranges[kind].sum()) for _, ranges, _ in slots) == getattr(tally, kind), kind
    assert all(int(ranges["trained"].sum()) == header["rows"] for header, ranges, _ in slots)
    assert max(int(header["newest_event_time_ms"]) for header, _, _ in slots) == tally.newest_event_time_ms
    assert stream.letters() == letters
    return tally


@over("where", [None, WHERE], ids=["all", "where"])
@over("format_name", FORMATS)
def test_ingest_ends_where_rows_by_themselves_do(format_name: str, where: str | None) -> None:
    schema = chained(where)
    make_rows = chain_rows if not is_columnar(format_name) and format_name != "csv" else rows_without_mistakes
    for rows_of_a_record in (1, 7, 300):
        records = records_of(format_name, schema, make_rows(600, rows_of_a_record), rows_of_a_record)
        tally = compare(schema, format_name, records)
        assert tally.trained > 100 and tally.filtered > 20


OVERFLOWS: dict[str, Any] = {
    "x": {"role": "input"},
    "t": {"kind": "category", "buckets": 9, "missing": ""},
    "late": {"role": "label"},
}


def test_a_cell_that_does_not_fit_ends_its_row_alone() -> None:
    """A square beyond float32, here and there, beside rows that a missing result leaves out."""
    tables: dict[str, Any] = {
        "square": {"power": "x", "exponent": 2},
        "root": {"power": "x", "exponent": 0.5, "missing": "skip"},
        "log": {"log1p": "x", "missing": 0.25},
        "is": {"one_hot": "t", "values": ["a", "b"], "missing": -1},
    }
    schema = Schema.from_columns(OVERFLOWS, "binary_cross_entropy", tables)
    random = np.random.default_rng(3)
    values = random.choice([2.0, 1e30, -3.0, 7.5], 900, p=[0.8, 0.01, 0.01, 0.18])
    rows = [{"x": float(x), "t": "abc"[i % 3], "late": i % 2} for i, x in enumerate(values)]
    for rows_of_a_record in (1, 3, 900):
        tally = compare(schema, "json", records_of("json", schema, rows, rows_of_a_record))
        assert tally.dead == int((values == 1e30).sum()) > 2 and tally.filtered == int((values < 0).sum()) > 2
    for row in rows[::41]:
        row["late"] = 7  # dies as it is read, among others that die as they are transformed
    for rows_of_a_record in (1, 3, 30, 900):
        tally = compare(schema, "json", records_of("json", schema, rows, rows_of_a_record))
        assert tally.dead > int((values == 1e30).sum())


@over("label_transforms", [0, 1, 2])
def test_rows_without_any_label_are_left_out_of_those_that_wait(label_transforms: int) -> None:
    """The rows have two heads; transforms make so many of their labels."""
    skip: dict[str, Any] = {"role": "label", "missing": "skip_head"}
    columns: dict[str, Any] = {"x": {}, "when": {"role": "event_time"}}
    tables: dict[str, Any] = {"log_x": {"log1p": "x"}}
    sources = {}
    for at, name in enumerate(("more", "late")):
        sources[name] = f"{name}.given" if at < label_transforms else name
        columns[sources[name]] = {"role": "input"} if at < label_transforms else skip
        tables |= {name: {"rename": sources[name], **skip}} if at < label_transforms else {}
    schema = Schema.from_columns(columns, "", tables, head_losses={"late": "focal", "more": "huber"})
    random = np.random.default_rng(5)
    for missing in (0.02, 0.6):
        gone = random.random((900, 2)) < missing
        rows = [{"x": float(i % 9), "when": i, sources["late"]: None if late else i % 2,
                 sources["more"]: None if more else 2.5} for i, (late, more) in enumerate(gone)]  # fmt: skip
        for rows_of_a_record in (1, 7, 900):
            tally = compare(schema, "json", records_of("json", schema, rows, rows_of_a_record))
            assert tally.filtered == int(gone.all(1).sum()) and tally.trained == 900 - tally.filtered


LOGGED: dict[str, Any] = {f"x{at}": {} for at in range(4)} | {"late": {"role": "label", "missing": "skip"}}
PARTITIONS = 2
SILENCE_S = 0.2
Log = tuple[np.ndarray, np.ndarray, np.ndarray]  # rounds, slots, ranges
Open = Callable[[int, int], _native.Source]


def records(partition: int) -> list[bytes | None]:
    """Records of 1 to 9 rows, some of which cannot be trained or are left out, and some that are no records at all."""
    random = np.random.default_rng(partition)
    values: list[bytes | None] = []
    for size in random.integers(1, 10, 60).tolist():
        rows = random.normal(0, 1, (size, 4)).round(3).tolist()
        labels = random.choice(["0", "1", "null", '"bad"'], size, p=[0.4, 0.4, 0.1, 0.1])
        cells = ",".join(f"[{json.dumps(row)[1:-1]}, {label}]" for row, label in zip(rows, labels, strict=True))
        values.append(random.choice([b"{", f"[{cells}]".encode()], p=[0.1, 0.9]))
    return values


def plan_of(run: ArenaRun) -> _native.DecodePlan:
    return Schema.from_columns(LOGGED, "binary_cross_entropy").native_plan(run.slots)


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
    """Fills the slots of the log and trains their rounds. Returns how each was filled."""
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


def test_a_range_beyond_the_end_is_missed_and_a_silent_source_is_reported() -> None:
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


def test_a_publication_closes_one_round_and_one_longer_than_the_interval_is_followed_by_a_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_ns = 0
    due_s: list[float] = []
    ring: Any = SimpleNamespace(publication_due=lambda due_ns: due_s.append(due_ns / 1e9))
    monkeypatch.setattr("time.monotonic_ns", lambda: now_ns)
    clock = PublicationClock(ring, 1.0, closes_rounds=True)
    for took_s, left_s in (0.4, 0.6), (2.5, 2.5), (60, 5):
        clock.begun()
        now_ns += int(took_s * 1e9)
        clock.ended()
        assert clock.left_s == pytest.approx(left_s)
        now_ns += int(left_s * 1e9)
    assert due_s == pytest.approx([1, 0, 1, 0, 6, 0, 71])  # ingest closes one round for each that is not 0
