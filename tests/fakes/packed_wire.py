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
    more: int = 0  # what the directory says of the type: a hash's seed, a fixed text's bytes, a list's floats
    of: str = ""  # of a list, whose values are lists: what their cells are

    def bytes(self) -> bytes:
        if self.type == "list":
            return list_ends(self.values) + self.cells([each for cell in self.values for each in cell])
        if self.type in ("text", "bytes"):
            return texts(self.values)
        if self.type == "words":
            words = list(dict.fromkeys(self.values))
            codes = [words.index(word) for word in self.values]
            return struct.pack(f"<{len(codes)}II", *codes, len(words)) + texts(words)
        if self.type == "fixed":
            return b"".join(value.encode() for value in self.values)
        if self.type.startswith("hash"):
            return np.array(self.values, f"<u{int(self.type[4:]) // 8}").tobytes()
        if self.type == "floats":
            return np.array(self.values).astype("<f4").tobytes()
        return np.array(self.values).astype("u1" if self.type == "bool" else "<" + self.type).tobytes()

    def cells(self, values: list[Any]) -> bytes:
        """The bytes of the cells of lists."""
        return Cells(self.of, values, [], self.more).bytes()

    def nulls(self) -> bytes:
        """A bit a row, none where no cell is missing."""
        return np.packbits(self.missing, bitorder="little").tobytes() if True in self.missing else b""

    def alone(self) -> list[tuple[bytes, bytes]]:
        """Bytes and nulls of each cell in a record of its own."""
        bodies: list[bytes]
        if self.type == "list":
            bodies = [list_ends([value]) + self.cells(value) for value in self.values]
        elif self.type in ("text", "words", "bytes"):
            code = struct.pack("<2I", 0, 1) if self.type == "words" else b""
            letters = [value.encode() for value in self.values]
            bodies = [code + struct.pack("<I", len(each)) + each for each in letters]
        else:
            body = self.bytes()
            size = len(body) // len(self.values)
            bodies = [body[at : at + size] for at in range(0, len(body), size)]
        return [(body, b"\1" if missing else b"") for body, missing in zip(bodies, self.missing, strict=True)]


def list_ends(values: list[list[Any]]) -> bytes:
    return np.cumsum([len(each) for each in values], dtype="<u4").tobytes()


def texts(values: list[str]) -> bytes:
    letters = [value.encode() for value in values]
    return np.cumsum([len(each) for each in letters], dtype="<u4").tobytes() + b"".join(letters)


@np.errstate(over="ignore")
def packed(columns: dict[str, Cells]) -> bytes:
    """The record, without the padding that only makes it faster."""
    rows = len(next(iter(columns.values())).values)
    types = {name: (cells.type, cells.of, cells.more) for name, cells in columns.items()}
    contents = [(cells.bytes(), cells.nulls()) for cells in columns.values()]
    head = _head(types, rows, tuple((len(body), len(nulls)) for body, nulls in contents))
    return head + b"".join(body + nulls for body, nulls in contents)


@np.errstate(over="ignore")
def packed_alone(columns: dict[str, Cells]) -> list[bytes]:
    """Each row as a record of its own."""
    types = {name: (cells.type, cells.of, cells.more) for name, cells in columns.items()}
    heads: dict[tuple[tuple[int, int], ...], bytes] = {}
    records = []
    for contents in zip(*(cells.alone() for cells in columns.values()), strict=True):
        sizes = tuple((len(body), len(nulls)) for body, nulls in contents)
        head = heads.get(sizes) or heads.setdefault(sizes, _head(types, 1, sizes))
        records.append(head + b"".join([part for cell in contents for part in cell]))
    return records


def _head(types: dict[str, tuple[str, str, int]], rows: int, sizes: tuple[tuple[int, int], ...]) -> bytes:
    """The head and directory before the columns, each of so many bytes and bytes of nulls."""
    at = 16 + sum(20 + (len(name) + 3) // 4 * 4 for name in types)
    directory = b""
    for (name, (type_name, of, more)), (body, nulls) in zip(types.items(), sizes, strict=True):
        nulls_at = at + body if nulls else 0
        numbers = TYPES.index(type_name) + 1, TYPES.index(of) + 1 if of else 0
        directory += struct.pack("<IIIBBHI", at, body, nulls_at, *numbers, len(name), more)
        directory += name.encode().ljust((len(name) + 3) // 4 * 4, b"\0")
        at += body + nulls
    return struct.pack("<4sHHII", MAGIC, VERSION, len(types), rows, len(directory)) + directory
