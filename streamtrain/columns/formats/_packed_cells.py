"""A slow reader for the cells of a packed column. native/decode/packed_column.h describes the wire format."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Any

import numpy as np

from streamtrain.columns.formats.parsed import Binary, TextHash, Unusable


def read_lists(data: bytes, rows: int, of: str, more: int) -> list[list[Any]] | Unusable:
    ends = [0, *np.frombuffer(data, "<u4", rows).tolist()] if rows else [0]
    cells = data[4 * rows :]
    if sorted(ends) != ends or ends[-1] > len(cells):
        return Unusable("list ends out of order")
    values = read_cells(cells, ends[-1], of, more)
    return values if isinstance(values, Unusable) else [values[start:end] for start, end in pairwise(ends)]


def read_cells(data: bytes, rows: int, type_name: str, more: int) -> list[Any] | Unusable:
    if type_name == "text":
        return _texts(data, rows)
    if type_name == "bytes":
        return [Binary("binary", raw) for raw in read_pieces(data, rows)]
    if type_name == "words":
        codes = np.frombuffer(data, "<u4", rows)
        (count,) = struct.unpack_from("<I", data, 4 * rows)
        table = _texts(data[4 * rows + 4 :], count)
        return [table[code] if code < count else Unusable("a word there is not") for code in codes.tolist()]
    if type_name == "fixed":
        if more * rows > len(data):
            return Unusable("fewer bytes than rows need")
        return [read_text(data[more * row : more * (row + 1)]) for row in range(rows)]
    if type_name == "floats":
        if 4 * more > len(data):
            return Unusable("lists longer than its bytes")
        found: list[Any] = np.frombuffer(data, "<f4", rows * more).reshape(rows, more).tolist()
        return found
    if type_name in ("hash32", "hash64"):
        bits = int(type_name[4:])
        return [TextHash(value, bits, more) for value in np.frombuffer(data, f"<u{bits // 8}", rows).tolist()]
    if type_name == "bool":
        read = np.frombuffer(data, "u1", rows).tolist()
        return [[False, True][byte] if byte < 2 else Unusable("a boolean") for byte in read]
    found = np.frombuffer(data, "<" + type_name, rows).tolist()
    return found


def _texts(data: bytes, count: int) -> list[Any]:
    return [read_text(each) for each in read_pieces(data, count)]


def read_pieces(data: bytes, count: int) -> list[bytes]:
    ends = [0, *np.frombuffer(data, "<u4", count).tolist()] if count else [0]
    letters = data[4 * count :]
    if sorted(ends) != ends or ends[-1] > len(letters):
        raise ValueError("text ends out of order")
    return [letters[start:end] for start, end in pairwise(ends)]


def read_text(letters: bytes) -> str | Unusable:
    try:
        return letters.decode()
    except UnicodeDecodeError:
        return Unusable("text that is not UTF-8")
