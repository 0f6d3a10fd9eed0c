"""Records of one file with their places, each time the same ones: which rows share a record hangs on the file, the
columns and the format alone, wherever reading begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streamtrain import _native
from streamtrain.columns.formats import Format
from streamtrain.columns.forms import FileRows
from streamtrain.columns.record_encoding import Own, Record, Records
from streamtrain.columns.rejected import Rejected, Unreadable
from streamtrain.columns.rows import row_counter
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from streamtrain.files.blocks import Size
from streamtrain.files.column_selection import ColumnSelection
from streamtrain.files.file_records import BLOCK_ROWS, PACK_ROWS, RECORD_BYTES
from streamtrain.files.reading import read_blocks

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
    gets its reason. That is the row's line, where lines of the file are records of the format.

    UserMistake where none begins there, and naming file and row for a line that is none.
    """
    bare = schema.without_message()
    records = Records(bare, format, path, PACK_ROWS, RECORD_BYTES, are_messages=False)
    counter = row_counter(bare, format)
    for block in read_blocks([path], ColumnSelection(bare), Size(BLOCK_ROWS, PACK_ROWS)):
        at = block.first
        if at + block.row_count <= begin:
            continue
        for chunk in records.blocks(block, key=None, own_keys=False, reject=True):
            for each in chunk:
                record = _dead(counter, each, _own(block, at, format)) if isinstance(each, Rejected) else each
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


def _own(block: FileRows, at: int, format: Format) -> bytes | None:
    """Returns the record that row `at` of the file is by itself; None where it is none."""
    row = block.rows[at - block.first] if isinstance(block.rows, list) else None
    name = format if isinstance(format, str) else str(format["name"])
    return row.record if isinstance(row, Unreadable) and row.format == name else None


def _dead(counter: _native.BatchFiller, row: Rejected, own: bytes | None) -> Record:
    """A record that is one dead row to decoders: the row's own, or the reason as text, unless that could be read as a
    row."""
    for value in (*([] if own is None else [own]), row.reason.encode(errors="replace"), *_NO_ROW):
        tally = counter.count([value])
        if (tally.trained, tally.dead, tally.filtered) == (0, 1, 0):
            return Record(Own(), value, 1)
    raise UserMistake(f"{row}; no record of this format can stand for such a row: mend it")
