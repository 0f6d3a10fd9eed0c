"""Packed records of any types, whatever the encoder would choose; native/decode/packed_column.h has the wire."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from streamtrain.columns.formats.packed import MAGIC, TYPES, VERSION


class Cells(NamedTuple):
    """A column of the wire."""

    type: str
    values: list[Any]
    missing: list[bool]

    def at(self, rows: slice) -> Cells:
        return Cells(self.type, self.values[rows], self.missing[rows])

    def bytes(self) -> bytes:
        if self.type == "text":
            return texts(self.values)
        if self.type == "words":
            words = list(dict.fromkeys(self.values))
            codes = [words.index(word) for word in self.values]
            return struct.pack(f"<{len(codes)}II", *codes, len(words)) + texts(words)
        return np.array(self.values).astype("u1" if self.type == "bool" else "<" + self.type).tobytes()

    def nulls(self) -> bytes:
        """A bit a row, none where no cell is missing."""
        return np.packbits(self.missing, bitorder="little").tobytes() if True in self.missing else b""


def texts(values: list[str]) -> bytes:
    letters = [value.encode() for value in values]
    return np.cumsum([len(each) for each in letters], dtype="<u4").tobytes() + b"".join(letters)


@np.errstate(over="ignore")
def packed(columns: dict[str, Cells]) -> bytes:
    """The record, without the padding that only makes it faster."""
    rows = len(next(iter(columns.values())).values)
    at = 16 + sum(16 + (len(name) + 3) // 4 * 4 for name in columns)
    directory, data = b"", b""
    for name, cells in columns.items():
        body, nulls = cells.bytes(), cells.nulls()
        nulls_at = at + len(data) + len(body) if nulls else 0
        entry = struct.pack("<IIIBBH", at + len(data), len(body), nulls_at, TYPES.index(cells.type) + 1, 0, len(name))
        directory += entry + name.encode().ljust((len(name) + 3) // 4 * 4, b"\0")
        data += body + nulls
    return struct.pack("<4sHHII", MAGIC, VERSION, len(columns), rows, len(directory)) + directory + data
