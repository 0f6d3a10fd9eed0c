"""The arrays that a job's columns and transforms make of records or of a program's rows, by column, as in the model.

The decoders do the work, a batch at a time. They decide what a row is and report what is wrong with it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamtrain import _native
from streamtrain.columns.formats import Format, is_lines, options
from streamtrain.columns.kinds.kind import Block
from streamtrain.columns.record_encoding import Records, RowRecords
from streamtrain.columns.rejected import Rejected, Rejecting
from streamtrain.columns.schema import Schema
from streamtrain.compute.model import aligned
from streamtrain.compute.spec import DTYPES
from streamtrain.compute.stateful_inputs import BLOCKS
from streamtrain.errors import RecordError, UserMistake

Array = NDArray[Any]
Around = _native.RecordAround
BATCH_ROWS = 4096
_ROW = re.compile(r"(?<=^\$)\[\d+\]|\[\d+\]$")
_QUICK = "msgpack"
_PACK_ROWS, _RECORD_BYTES = 1024, 1 << 20  # of a program's rows, on their way to the decoder


class Lists(NamedTuple):
    """A column whose cells are lists: row r has `values[offsets[r] : offsets[r + 1]]`."""

    offsets: Array  # int64 [rows + 1]
    values: Array


Cells = Array | Lists


class LeftOut(NamedTuple):
    """Rows that cannot be used: of the `record` given so far, from 0, its rows [row_from, row_to)."""

    record: int
    row_from: int
    row_to: int
    path: str
    reason: str


class Rows(dict[str, Cells]):
    """Columns by name: float32 of numbers (float64 where one of them is standardised) and labels [rows], of vectors
    [rows, size]; int32 buckets of categories and class labels; Lists. Of a sparse column its numbers too, as
    `name.scale`. Of a transform with state what the state is asked for: a row of its table."""

    def __init__(self, columns: dict[str, Cells], count: int, left_out: list[LeftOut], filtered: int) -> None:
        super().__init__(columns)
        self.count, self.left_out, self.filtered = count, left_out, filtered

    def kept(self) -> Rows:
        """The same in arrays of its own."""
        columns = {name: _copied(cells) for name, cells in self.items()}
        return Rows(columns, self.count, self.left_out, self.filtered)


class Part(NamedTuple):
    """A column's place in a slot: elements [first, first + width) of a row of the block."""

    name: str
    block: _native.Block
    first: int
    width: int
    holds: np.dtype[Any] | None = None  # where its cells are made anew: what they are then

    @property
    def dtype(self) -> np.dtype[Any]:
        if self.holds is not None:
            return self.holds
        return np.dtype(DTYPES[self.block.dtype])


class RowPlan:
    """One job's decoder and transforms. One thread at a time."""

    def __init__(self, schema: Schema, format: Format, bare: Format, batch_rows: int = BATCH_ROWS) -> None:
        """`format` is that of records from a topic, `bare` that of records that never meet a registry."""
        self._schemas = schema, schema.without_message()
        self.bare = quick(bare)
        self._formats = format, self.bare
        self.layout = _native.SlotLayout.make(batch_rows, 1, schema.block_specs())
        self.slot = aligned(self.layout.slot_bytes)  # the newest batch, while it has not been copied
        self.parts = list(_parts(schema, self.layout))
        self._records: Records | None = None

    def decode(self, records: Sequence[bytes], errors: Literal["raise", "leave_out"] = "raise") -> Rows:
        """The rows of records in the job's format. RecordError for one that cannot be used, unless it is left out."""
        return self.joined(self.batches(records), errors)

    def transform(self, rows: Any, errors: Literal["raise", "leave_out"] = "raise") -> Rows:
        """The same of a program's rows: a dict, many dicts, a dict of arrays, a frame. An entry of `left_out` has the
        numbers of rows among them, and record 0. UserMistake for what is none."""
        rejecting = _LeavingOut()
        records = self.records(rows, rejecting)
        found = self.joined(self.batches(records, bare=True), "leave_out")
        left_out = [
            LeftOut(0, records.number(each.record, each.row_from), records.number(each.record, each.row_to - 1) + 1,
                    cell_path(each.path), each.reason)
            for each in found.left_out
        ]  # fmt: skip
        found.left_out = sorted([*left_out, *rejecting.left_out], key=lambda each: each.row_from)
        if found.left_out and _errors(errors) == "raise":
            first = found.left_out[0]
            raise RecordError(f"row {first.row_from} at {first.path}: {first.reason}")
        return found

    def records(self, rows: Any, rejecting: Rejecting | None = None) -> RowRecords:
        """A program's rows as records."""
        if self._records is None:
            self._records = Records(self._schemas[1], self._formats[1], "rows", _PACK_ROWS, _RECORD_BYTES, False)
        return RowRecords(self._records, rows, rejecting)

    def batches(
        self, records: Iterable[bytes | tuple[bytes, Around]], bare: bool = False, copy: bool = True
    ) -> Iterator[Rows]:
        """A batch at a time, each as soon as it is full; what is left out is told with the batch it is found at.
        Without `copy` a batch's arrays hold until the next one."""
        filler = _native.BatchFiller(self._formats[bare], self._schemas[bare].native_plan(self.layout))
        filler.open(self.slot)
        left_out: list[LeftOut] = []
        filtered = 0
        for number, record in enumerate(records):
            done = filler.fill(record) if isinstance(record, bytes) else filler.fill(record[0], around=record[1])
            while True:
                tally = filler.take_tally()
                left_out += [LeftOut(number, *dead_row[:4]) for dead_row in tally.dead_rows]
                filtered += tally.filtered
                if done:
                    break
                yield self._batch(filler.close(), left_out, filtered, copy)
                left_out, filtered = [], 0
                filler.open(self.slot)
                done = filler.more()
        yield self._batch(filler.close(), left_out, filtered, copy)

    def _batch(self, rows: int, left_out: list[LeftOut], filtered: int, copy: bool) -> Rows:
        found = Rows({part.name: self._cells(part, rows) for part in self.parts}, rows, left_out, filtered)
        return found.kept() if copy else found

    def _cells(self, part: Part, rows: int) -> Cells:
        block = part.block
        if block.ragged:
            ends = np.frombuffer(self.slot, np.uint32, rows + 1, block.offset)
            return Lists(ends.astype(np.int64), np.frombuffer(self.slot, part.dtype, int(ends[-1]), block.values))
        table = np.frombuffer(self.slot, part.dtype, rows * block.width, block.offset).reshape(rows, block.width)
        return table[:, part.first] if part.width == 1 else table[:, part.first : part.first + part.width]

    def joined(self, batches: Iterator[Rows], errors: str = "raise") -> Rows:
        """Batches one behind the other, with `errors` as decode()."""
        found: list[Rows] = []
        for batch in batches:
            if batch.left_out and _errors(errors) == "raise":
                raise RecordError(format_left_out(batch.left_out[0]))
            found.append(batch)
        columns = {part.name: joined([batch[part.name] for batch in found]) for part in self.parts}
        left_out = [each for batch in found for each in batch.left_out]
        return Rows(columns, sum(batch.count for batch in found), left_out, sum(batch.filtered for batch in found))


class _LeavingOut(Rejecting):
    """Keeps all rows that no record can hold."""

    def __init__(self) -> None:
        super().__init__(1.0, reports=False)
        self.left_out: list[LeftOut] = []

    def leave_out(self, row: Rejected) -> None:
        reason = row.reason.removeprefix(f"{row.path}: ")
        self.left_out.append(LeftOut(0, self.rows, self.rows + 1, row.path or "$", reason))
        self.rows += 1


def _errors(given: str) -> str:
    """UserMistake for what is neither."""
    if given not in ("raise", "leave_out"):
        raise UserMistake(f'plan: expected errors="raise" or errors="leave_out", got {given!r}')
    return given


def cell_path(path: str) -> str:
    """A path of a record without the row's place in it, where the row is told beside it."""
    return _ROW.sub("", path)


def quick(format: Format) -> Format:
    """In what a program's rows are handed over: where cells mean what they mean in `format`, the quickest of all."""
    name = format if isinstance(format, str) else str(format["name"])
    has_own_meaning = "schema" in options(name) or is_lines(format)
    return format if has_own_meaning else _QUICK


def format_left_out(each: LeftOut) -> str:
    """Returns the message for rows that cannot be used: where, expected, got."""
    return f"record {each.record}, row {each.row_from} at {each.path}: {each.reason}"


def joined(cells: Sequence[Cells]) -> Cells:
    """One behind the other."""
    lists = [each for each in cells if isinstance(each, Lists)]
    if not lists:
        return np.concatenate([each for each in cells if not isinstance(each, Lists)])
    before = np.cumsum([0, *(len(each.values) for each in lists)])
    ends = [each.offsets[1:] + start for each, start in zip(lists, before, strict=False)]
    return Lists(np.concatenate([[0], *ends]).astype(np.int64), np.concatenate([each.values for each in lists]))


def _copied(cells: Cells) -> Cells:
    return Lists(*(np.array(each) for each in cells)) if isinstance(cells, Lists) else np.array(cells)


def _parts(schema: Schema, layout: _native.SlotLayout) -> Iterator[Part]:
    """In the order in which decoders give out the places of a block."""
    blocks = {block.name: block for block in layout.blocks}
    used: Counter[str] = Counter()
    given = {name for name, _ in schema.columns}
    fed = {name: [Block(*BLOCKS[output.feeds], 1)] for name, output in schema.fed.items() if output.feeds is not None}
    for name, column in schema.every:
        if not (schema.is_decoded(name, column) if name in given else schema.is_used(column)):
            continue
        found = fed.get(name) or schema.labelled.blocks_of(name, column)
        for number, block in enumerate(found):
            part_name = f"{name}.{block.name.partition(':')[0]}" if number else name
            yield Part(part_name, blocks[block.name], used[block.name], block.width)
            used[block.name] += block.width
