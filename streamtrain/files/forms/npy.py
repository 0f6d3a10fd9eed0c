"""NumPy's files of rows with named columns: what numpy.load() gives as a structured array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from streamtrain.columns.forms import Columns, FileRows, column
from streamtrain.columns.row_plan import Lists, Part, Rows
from streamtrain.errors import UserMistake
from streamtrain.files.blocks import Size
from streamtrain.files.column_selection import ColumnSelection, Row
from streamtrain.files.source import Source

HELP = "NumPy's .npy, an array of rows with named columns"
SUFFIXES = (".npy",)
TEXT = False
_HEADER_BYTES = 64  # it is padded to a multiple of them
_ROW_DIGITS = 20  # room for the number of rows, which is known at the end
_BATCH_ROWS = 8_192


def rows(source: Source) -> Iterator[tuple[int, Row]]:
    number = 0
    for part in _batches(source):
        for row in part.tolist():
            number += 1
            yield number, dict(zip(part.dtype.names, row, strict=True))


def blocks(source: Source, selection: ColumnSelection, size: Size) -> Iterator[FileRows]:
    first = 0
    for part in _batches(source):
        if not first:
            selection.check(list(part.dtype.names), source.name)
        for start in range(0, len(part), max(size.rows, 1)):
            count = min(size.rows, len(part) - start)
            if not count:
                return
            span = slice(start, start + count)  # fields lie between one another, where nothing aligns them
            chosen = {n: np.ascontiguousarray(part[n][span]) for n in part.dtype.names if n in selection.columns}
            cells = {name: column(name, each, name in selection.lists) for name, each in chosen.items()}
            yield FileRows(Columns(cells, count), source.name, first)
            first += count
            size.passed(count)


def count(source: Source) -> int:
    return sum(len(part) for part in _batches(source))


def _batches(source: Source) -> Iterator[Any]:
    try:
        version = npy.read_magic(source.file)
        shape, _, dtype = npy.read_array_header_1_0(source.file) if version == (1, 0) else npy.read_array_header_2_0(
            source.file
        )
    except (ValueError, OSError) as error:
        raise UserMistake(f"{source.name}: not a .npy file: {error}") from error
    if len(shape) != 1 or not dtype.names or dtype.hasobject:
        raise UserMistake(f"{source.name}: expected an array of rows with named columns, got {dtype} {shape}")
    left = shape[0]
    while left:
        size = min(left, _BATCH_ROWS) * dtype.itemsize
        piece = source.file.read(size)
        if len(piece) != size:
            raise UserMistake(f"{source.name}: expected {shape[0]:,} rows, got {shape[0] - left:,} before its end")
        yield np.frombuffer(piece, dtype)
        left -= len(piece) // dtype.itemsize


class Writer:
    """Rows one behind the other; the header, which tells their number, last."""

    LISTS = False

    def __init__(self, file: BinaryIO, path: str, parts: list[Part]) -> None:
        fields = [(part.name, part.dtype, *([(part.width,)] if part.width > 1 else [])) for part in parts]
        self._file, self._dtype, self._rows = file, np.dtype(fields), 0
        self._size = len(self._header())
        file.write(bytes(self._size))

    def add(self, batch: Rows) -> None:
        records = np.zeros(batch.count, self._dtype)
        for name, cells in batch.items():
            assert not isinstance(cells, Lists)
            records[name] = cells
        self._file.write(records.tobytes())
        self._rows += batch.count

    def finish(self) -> None:
        self._file.seek(0)
        self._file.write(self._header())

    def close(self) -> None: ...

    def _header(self) -> bytes:
        header = f"{{'descr': {npy.dtype_to_descr(self._dtype)!r}, 'fortran_order': False, 'shape': ({self._rows},), }}"
        room = len(header) - len(str(self._rows)) + _ROW_DIGITS + 1 + 12
        text = header.ljust(-(-room // _HEADER_BYTES) * _HEADER_BYTES - 12 - 1) + "\n"
        return npy.magic(2, 0) + len(text).to_bytes(4, "little") + text.encode("latin-1")
