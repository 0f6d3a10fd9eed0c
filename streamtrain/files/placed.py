"""Records of one file with their places, each time the same ones: which rows share a record hangs on the file, the
columns and the format alone, wherever reading begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streamtrain import _native
from streamtrain.columns.formats import Format
from streamtrain.columns.records import Own, Record, Records
from streamtrain.columns.rejected import Rejected
from streamtrain.columns.rows import row_counter
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from streamtrain.files.blocks import Size
from streamtrain.files.column_selection import ColumnSelection
from streamtrain.files.reading import read_blocks
from streamtrain.files.records import BLOCK_ROWS, PACK_ROWS, RECORD_BYTES

_NO_ROW = (b"\xff", b"", b"\0", b"\xff" * 16)  # in one format or another no record


def placed_records(
    path: str,
    schema: Schema,
    format: Format,
    begin: int = 0,
    on_rejected: Callable[[Rejected], None] = lambda row: None,
) -> Iterator[tuple[int, Record]]:
    """(number of its first row, record), from the one that begins with row `begin` on; in a format without a frame. In
    the place of a row that no record can hold is one that decoders refuse: it becomes a dead letter, and `on_rejected`
    gets its reason.

    UserMistake where none begins there, and naming file and row for a line that is none.
    """
    bare = schema.without_message()
    records, counter = Records(bare, format, path, PACK_ROWS, RECORD_BYTES), row_counter(bare, format)
    for block in read_blocks([path], ColumnSelection(bare), Size(BLOCK_ROWS, PACK_ROWS)):
        at = block.first
        if at + block.row_count <= begin:
            continue
        for chunk in records.blocks(block, key=None, own_keys=False, reject=True):
            for each in chunk:
                record = _dead(counter, each) if isinstance(each, Rejected) else each
                if at < begin < at + record.rows:
                    raise UserMistake(
                        f"{path}: expected a record that begins with row {begin}, got one of rows {at} to "
                        f"{at + record.rows}; has records.format changed since? Put it back"
                    )
                if at >= begin:
                    if isinstance(each, Rejected):
                        on_rejected(each)
                    yield at, record
                at += record.rows


def _dead(counter: _native.BatchFiller, row: Rejected) -> Record:
    """A record that is one dead row to decoders: the reason as text, unless that could be read as a row."""
    for value in (row.reason.encode(errors="replace"), *_NO_ROW):
        tally = counter.count([value])
        if (tally.trained, tally.dead, tally.filtered) == (0, 1, 0):
            return Record(Own(), value, 1)
    raise UserMistake(f"{row}; no record of this format can stand for such a row: mend it")
