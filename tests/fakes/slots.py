"""Slots of a test's own, filled from records and Python rows by the product's decoders; what became of the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamtrain import _native
from streamtrain.columns.formats import record_format
from streamtrain.columns.plan import native_plan
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake

CONVENIENCE_ROWS = 1024  # rows a slot of our own holds, where nobody else says
_DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "u8": np.uint8}


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
    """What became of the rows passed."""

    trained: int = 0
    dead: int = 0
    filtered: int = 0
    newest_event_time_ms: int = -1
    dead_rows: list[DeadRows] = field(default_factory=list)
    filtered_rows: list[tuple[int, int, int]] = field(default_factory=list)  # from, to, column that is missing

    def add(self, filled: _native._Filled) -> None:
        """Adds what one native call passed."""
        _, _, trained, dead, filtered, newest_event_time_ms, dead_rows, filtered_rows = filled
        self.trained += trained
        self.dead += dead
        self.filtered += filtered
        self.newest_event_time_ms = max(self.newest_event_time_ms, newest_event_time_ms)
        self.dead_rows += [DeadRows(*each) for each in dead_rows]
        self.filtered_rows += filtered_rows


def slot_views(layout: _native.SlotLayout, slot: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
    """The blocks of a slot as arrays [row_capacity, width], without a copy."""
    views = {}
    for block in layout.blocks:
        dtype = np.dtype(_DTYPES[block.dtype])
        size = layout.row_capacity * block.width * dtype.itemsize
        view = slot[block.offset : block.offset + size].view(dtype)
        views[block.name] = view.reshape(layout.row_capacity, block.width)
    return views


def aligned_bytes(size: int) -> NDArray[np.uint8]:
    """`size` zero bytes that begin at a multiple of 64, as slots must."""
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size]


def decode_rows(
    format_name: str, schema: Schema, record: bytes, from_row: int = 0
) -> tuple[dict[str, NDArray[Any]], Tally]:
    """All rows of one record from `from_row` on, by block, and their fates. Never raises for what the bytes hold."""
    record_format(format_name)
    filler = RowSlot(schema, CONVENIENCE_ROWS)
    decoder = _native.Decoder(format_name, filler.plan)
    decoder.begin(record, from_row)
    tally = Tally()
    parts: list[dict[str, NDArray[Any]]] = []
    done = False
    while not done:
        filled = decoder.next(filler.slot, 0, CONVENIENCE_ROWS)
        done, rows = filled[:2]
        tally.add(filled)
        parts.append({name: view[:rows].copy() for name, view in filler.views.items()})
    return {name: np.concatenate([part[name] for part in parts]) for name in filler.views}, tally


class RowSlot:
    """A slot of its own, filled from Python rows."""

    def __init__(self, schema: Schema, row_capacity: int, range_capacity: int = 1) -> None:
        self.schema = schema
        self.layout = _native.SlotLayout.make(row_capacity, range_capacity, schema.block_specs())
        self.plan = native_plan(schema, self.layout)
        self.slot = aligned_bytes(self.layout.slot_bytes)
        self.views = slot_views(self.layout, self.slot)
        self._rows = _native.RowFiller(self.plan)
        self._packed = _native.Decoder("packed", self.plan)

    def fill_row(self, row: Mapping[str, Any]) -> DeadRows | None:
        """Writes one dict as the slot's only row; gives why it cannot be used, or None. One call, no array made."""
        dead_rows = self._rows.fill(row, self.slot, 0, 1, 0)[6]
        return DeadRows(*dead_rows[0]) if dead_rows else None

    def batches(self, rows: Any) -> Iterator[tuple[int, Tally]]:
        """Fills the slot until all rows have been in it; each time gives how many rows it holds, and their tally.

        `rows`: a dict, a list of dicts (or of lists in column order), a dict of arrays, or a frame (pandas,
        pyarrow, polars).
        """
        columns = columns_of(rows)
        if columns is not None:
            yield from self._batches_of_columns(columns)
            return
        if isinstance(rows, Mapping) and not isinstance(rows, dict):
            rows = dict(rows)
        if not isinstance(rows, dict | list | tuple):
            raise UserMistake(
                f"rows: expected a dict, a list of dicts, a dict of arrays or a frame, got {type(rows).__name__}"
            )
        at, done = 0, False
        while not done:
            tally = Tally()
            filled = self._rows.fill(rows, self.slot, 0, self.layout.row_capacity, at)
            done, used = filled[:2]
            tally.add(filled)
            at += tally.trained + tally.dead + tally.filtered
            self.plan.clear_behind(self.slot, used)
            yield used, tally

    def _batches_of_columns(self, columns: Mapping[str, Any]) -> Iterator[tuple[int, Tally]]:
        self._packed.begin(record_format("packed").encode(self.schema, columns), 0)
        done = False
        while not done:
            tally = Tally()
            filled = self._packed.next(self.slot, 0, self.layout.row_capacity)
            done, used = filled[:2]
            tally.add(filled)
            self.plan.clear_behind(self.slot, used)
            yield used, tally


def columns_of(rows: Any) -> Mapping[str, Any] | None:
    """A dict of arrays or a frame as columns by name (a frame's NaN and NA are missing); None if `rows` is neither."""
    if isinstance(rows, Mapping):
        return rows if any(isinstance(value, np.ndarray | list | tuple) for value in rows.values()) else None
    if hasattr(rows, "to_pydict"):  # pyarrow
        return dict(rows.to_pydict())
    if not (hasattr(rows, "columns") and hasattr(rows, "__getitem__")):
        return None
    return {str(name): _series(rows[name]) for name in rows.columns}


def _series(series: Any) -> Any:
    if hasattr(series, "isna"):  # pandas
        missing = np.asarray(series.isna())
        if not missing.any():
            return series.to_numpy()
        values = series.to_numpy()
        if values.dtype.kind in "fiub":
            return np.ma.MaskedArray(np.where(missing, 0, values), missing)
        return np.where(missing, None, values.astype(object)) if values.dtype.kind != "M" else values
    return series.to_list() if hasattr(series, "to_list") else series
