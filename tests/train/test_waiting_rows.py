"""Rows that wait for others before they are transformed end in ingest's slots as they would one by one: bits, ranges,
dead letters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from example_format import example_format, is_columnar
from looped import over
from slots import HEADER, RowSlot, Tally, slot_views

from streamtrain import _native
from streamtrain.columns.formats import encode_records
from streamtrain.columns.plan import native_plan
from streamtrain.columns.schema import Schema
from streamtrain.compute.model import Model
from streamtrain.compute.state import view
from streamtrain.run import dead_letters
from streamtrain.topics.rounds import RANGE_DTYPE
from tests.columns.test_transforms import FORMATS, WHERE, chain_rows, chained
from tests.train.arena_run import SPEC

CAPACITY, SLOTS = 40, 64
DeadRow = tuple[int, int, str, str]  # record, row, path, reason


class Stream:
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
        plan = native_plan(schema, self.layout)
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
        waiting = dead_letters._letters(self.ring.dead_letters(1 << 30)[0], str, 0)
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
    blocks, told, letters = one_by_one(schema, format_name, records)
    stream = Stream(schema, format_name, records)
    slots = stream.slots()
    assert sum(int(header["rows"]) for header, _, _ in slots) == told.trained
    for name, block in blocks.items():
        assert b"".join(rows[name] for _, _, rows in slots) == block, name
    assert {int(header["rows"]) for header, _, _ in slots[:-1]} <= {CAPACITY}
    for kind in ("trained", "dead", "filtered"):
        assert sum(int(ranges[kind].sum()) for _, ranges, _ in slots) == getattr(told, kind), kind
    assert all(int(ranges["trained"].sum()) == header["rows"] for header, ranges, _ in slots)
    assert max(int(header["newest_event_time_ms"]) for header, _, _ in slots) == told.newest_event_time_ms
    assert stream.letters() == letters
    return told


@over("where", [None, WHERE], ids=["all", "where"])
@over("format_name", FORMATS)
def test_ingest_ends_where_rows_by_themselves_do(format_name: str, where: str | None) -> None:
    schema = chained(where)
    made = chain_rows if not is_columnar(format_name) and format_name != "csv" else rows_without_mistakes
    for rows_of_a_record in (1, 7, 300):
        records = records_of(format_name, schema, made(600, rows_of_a_record), rows_of_a_record)
        told = compare(schema, format_name, records)
        assert told.trained > 100 and told.filtered > 20


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
        told = compare(schema, "json", records_of("json", schema, rows, rows_of_a_record))
        assert told.dead == int((values == 1e30).sum()) > 2 and told.filtered == int((values < 0).sum()) > 2
    for row in rows[::41]:
        row["late"] = 7  # dies as it is read, among others that die as they are transformed
    for rows_of_a_record in (1, 3, 30, 900):
        told = compare(schema, "json", records_of("json", schema, rows, rows_of_a_record))
        assert told.dead > int((values == 1e30).sum())


@over("made", [0, 1, 2])
def test_rows_without_any_label_are_left_out_of_those_that_wait(made: int) -> None:
    """The rows have two heads; transforms make so many of their labels."""
    skip: dict[str, Any] = {"role": "label", "missing": "skip_head"}
    columns: dict[str, Any] = {"x": {}, "when": {"role": "event_time"}}
    tables: dict[str, Any] = {"log_x": {"log1p": "x"}}
    sources = {}
    for at, name in enumerate(("more", "late")):
        sources[name] = f"{name}.given" if at < made else name
        columns[sources[name]] = {"role": "input"} if at < made else skip
        tables |= {name: {"rename": sources[name], **skip}} if at < made else {}
    schema = Schema.from_columns(columns, "", tables, head_losses={"late": "focal", "more": "huber"})
    random = np.random.default_rng(5)
    for missing in (0.02, 0.6):
        gone = random.random((900, 2)) < missing
        rows = [{"x": float(i % 9), "when": i, sources["late"]: None if late else i % 2,
                 sources["more"]: None if more else 2.5} for i, (late, more) in enumerate(gone)]  # fmt: skip
        for rows_of_a_record in (1, 7, 900):
            told = compare(schema, "json", records_of("json", schema, rows, rows_of_a_record))
            assert told.filtered == int(gone.all(1).sum()) and told.trained == 900 - told.filtered
