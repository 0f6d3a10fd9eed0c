"""Slots of a test's own, filled from records and Python rows by the product's decoders; what became of the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from example_format import example_format
from numpy.typing import NDArray

from streamtrain import _native
from streamtrain.columns.formats import Format
from streamtrain.columns.forms import Names, is_columns
from streamtrain.columns.record_encoding import Records
from streamtrain.columns.schema import Schema
from streamtrain.compute.model import aligned
from streamtrain.compute.spec import DTYPES

CONVENIENCE_ROWS = 1024  # rows a slot of our own holds, where nobody else says
HEADER = np.dtype(_native.SLOT_HEADER)


@dataclass(frozen=True)
class DeadRows:
    """Rows [row_from, row_to) of a record that cannot be used, and why. `remainder`: the record's rest, as one row."""

    row_from: int
    row_to: int
    path: str
    reason: str
    remainder: bool = False

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


@dataclass
class Tally:
    """The fates of the rows passed."""

    trained: int = 0
    dead: int = 0
    filtered: int = 0
    newest_event_time_ms: int = -1
    dead_rows: list[DeadRows] = field(default_factory=list)
    filtered_rows: list[tuple[int, int, int]] = field(default_factory=list)  # from, to, column that is missing

    def add(self, other: _native.RowTally) -> Tally:
        self.trained += other.trained
        self.dead += other.dead
        self.filtered += other.filtered
        self.newest_event_time_ms = max(self.newest_event_time_ms, other.newest_event_time_ms)
        self.dead_rows += [DeadRows(*each) for each in other.dead_rows]
        self.filtered_rows += other.filtered_rows
        return self


def slot_views(layout: _native.SlotLayout, slot: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
    """The blocks of a slot as arrays [row_capacity, width], without a copy; a ragged one as Ragged."""
    views: dict[str, Any] = {}
    for block in layout.blocks:
        dtype = np.dtype(DTYPES[block.dtype])
        if block.ragged:
            views[block.name] = Ragged(block, layout.row_capacity, slot)
            continue
        size = layout.row_capacity * block.width * dtype.itemsize
        view = slot[block.offset : block.offset + size].view(dtype)
        views[block.name] = view.reshape(layout.row_capacity, block.width)
    return views


class Ragged:
    """A ragged block of a slot: [:rows] gives an object a row, an array of its entries."""

    def __init__(self, block: _native.Block, rows: int, slot: NDArray[np.uint8]) -> None:
        dtype = np.dtype(DTYPES[block.dtype])
        self._ends = slot[block.offset : block.offset + 4 * (rows + 1)].view(np.uint32)
        self._values = slot[block.values : block.values + block.capacity * dtype.itemsize].view(dtype)

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        found = np.empty(rows.stop, object)
        for row in range(rows.stop):
            found[row] = self._values[self._ends[row] : self._ends[row + 1]].copy()
        return found


def set_rows(slot: NDArray[np.uint8], rows: int) -> None:
    """Writes into a slot's header how many rows it holds."""
    slot[: HEADER.itemsize].view(HEADER)["rows"] = rows


def decode_rows(
    format_name: Format, schema: Schema, record: bytes, from_row: int = 0, slot: RowSlot | None = None
) -> tuple[dict[str, NDArray[Any]], Tally]:
    """Decodes all rows of a record from `from_row` on: blocks, and the rows' fates. Never raises for what the bytes
    hold.

    `slot`: of this format and schema, for many records.
    """
    slot = slot or RowSlot(schema, CONVENIENCE_ROWS, format_name)
    tally = Tally()
    parts: list[dict[str, NDArray[Any]]] = []
    for rows, batch_tally in slot.record(record, from_row):
        tally.add(batch_tally)
        parts.append({name: view[:rows].copy() for name, view in slot.views.items()})
    return {name: np.concatenate([part[name] for part in parts]) for name in slot.views}, tally


class RowSlot:
    """A slot of its own, filled from records of one format or from Python rows."""

    def __init__(self, schema: Schema, row_capacity: int, format_name: Format = "packed") -> None:
        self.schema = schema
        self.layout = _native.SlotLayout.make(row_capacity, 1, schema.block_specs())
        self.plan = schema.native_plan(self.layout)
        self.slot = aligned(self.layout.slot_bytes)
        self.views = slot_views(self.layout, self.slot)
        self.filler = _native.BatchFiller(example_format(format_name), self.plan)
        self._names = Names.of(schema)

    def record(
        self, record: bytes, from_row: int = 0, around: _native.RecordAround | None = None
    ) -> Iterator[tuple[int, _native.RowTally]]:
        """A record's rows, a slot at a time: how many the slot holds, and what became of those passed."""
        self.filler.open(self.slot)
        done = self.filler.fill(record, from_row, None, around)
        yield self.filler.close(), self.filler.take_tally()
        while not done:
            self.filler.open(self.slot)
            done = self.filler.more()
            yield self.filler.close(), self.filler.take_tally()

    def fill_row(self, row: Mapping[str, Any]) -> DeadRows | None:
        """Writes one dict as the slot's only row; gives why it cannot be used, or None. One call, no array made."""
        self.filler.open(self.slot)
        self.filler.fill_rows(row, until=1)
        dead_rows = self.filler.take_tally().dead_rows
        return DeadRows(*dead_rows[0]) if dead_rows else None

    def batches(self, rows: Any) -> Iterator[tuple[int, Tally]]:
        """Fills the slot until all rows have been in it; each time gives how many rows it holds, and their tally.

        `rows`: a dict or a list of dicts (or of lists in column order), as a program decodes rows; a dict of arrays
        or a frame, as it encodes columns.
        """
        if not isinstance(rows, list | tuple) and (not isinstance(rows, dict) or is_columns(rows, self._names)):
            for block in Records(self.schema, "packed", "rows", 1 << 20, 1 << 30).blocks(rows, None, False):
                for record in block:
                    yield from ((used, Tally().add(batch_tally)) for used, batch_tally in self.record(record.value))
            return
        at, done = 0, False
        while not done:
            self.filler.open(self.slot)
            done = self.filler.fill_rows(rows, at)
            tally = Tally().add(self.filler.take_tally())
            at += tally.trained + tally.dead + tally.filtered
            yield self.filler.close(), tally
