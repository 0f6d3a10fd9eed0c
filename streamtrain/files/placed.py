"""Records of one file with their places, each time the same ones: which rows share a record hangs on the file, the
columns and the format alone, wherever reading begins."""

from __future__ import annotations

from collections.abc import Iterator

from streamtrain.columns.formats import Format
from streamtrain.columns.records import Record, Records
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from streamtrain.files.blocks import Size
from streamtrain.files.reading import read_blocks
from streamtrain.files.records import BLOCK_ROWS, PACK_ROWS, RECORD_BYTES
from streamtrain.files.wanted import Wanted


def placed_records(path: str, schema: Schema, format: Format, begin: int = 0) -> Iterator[tuple[int, Record]]:
    """(number of its first row, record), from the one that begins with row `begin` on; in a format without a frame.

    UserMistake where none begins there, and naming file and row for what is no row.
    """
    bare = schema.without_message()
    records = Records(bare, format, path, PACK_ROWS, RECORD_BYTES)
    for block in read_blocks([path], Wanted(bare), Size(BLOCK_ROWS, PACK_ROWS)):
        at = block.first
        if at + block.row_count <= begin:
            continue
        for made in records.blocks(block, key=None, own_keys=False):
            for record in made:
                if at < begin < at + record.rows:
                    raise UserMistake(
                        f"{path}: expected a record that begins with row {begin}, got one of rows {at} to "
                        f"{at + record.rows}; has records.format changed since? Put it back"
                    )
                if at >= begin:
                    yield at, record
                at += record.rows
