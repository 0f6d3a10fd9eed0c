"""Packed records: columns as they lie in memory; native/decode/packed_column.h has the wire. The fastest there is.

A missing cell is a null bit: None, a masked entry, NaT, or empty text; NaN is one too.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamtrain import _native
from streamtrain.columns.column import Column
from streamtrain.columns.formats._packed_cells import read_cells, read_lists
from streamtrain.columns.formats.parsed import MISSING_ENTRY, Unusable
from streamtrain.columns.kinds.parsed import DECIMAL_COMMA
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake

HELP = "packed columns of many rows: float32, integers, text; the fastest"
CELLS = ("value", "list")

MAGIC, VERSION = b"STPK", 2
_HEADER = struct.Struct("<4sHHII")  # magic, version, columns, rows, bytes of the directory
_ENTRY = struct.Struct("<IIIBBHI")  # data offset, data bytes, nulls offset, type, of a list, name bytes, of the type
_NUMBERS = ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "bool"]
TYPES = [*_NUMBERS, "text", "words", "fixed", "hash32", "hash64", "floats", "bytes", "list"]  # from 1 on
MOST_DIRECTORY_BYTES = 16 << 20
_NO_CELLS = ("list", "floats")  # of lists
Array = NDArray[Any]


class PackedColumn(NamedTuple):
    """One column."""

    type: str
    data: bytes
    nulls: bytes = b""  # their bits; none: nothing is missing
    more: int = 0  # what the type adds
    of: str = ""  # type of a list's cells


def record_of(columns: Mapping[str, PackedColumn], rows: int) -> bytes:
    """Columns that are made, each of so many rows."""
    named_columns = [(name.encode(), each) for name, each in columns.items()]
    directory_bytes = sum(_padded(_ENTRY.size + len(name), 4) for name, _ in named_columns)
    pieces = [_HEADER.pack(MAGIC, VERSION, len(named_columns), rows, directory_bytes)]
    data: list[bytes] = []
    at = _padded(_HEADER.size + directory_bytes, 64)
    gap = at - _HEADER.size - directory_bytes
    for name, each in named_columns:
        nulls_at = at + _padded(len(each.data), 64) if each.nulls else 0
        types = TYPES.index(each.type) + 1, TYPES.index(each.of) + 1 if each.of else 0
        entry = _ENTRY.pack(at, len(each.data), nulls_at, *types, len(name), each.more) + name
        pieces.append(entry.ljust(_padded(len(entry), 4), b"\0"))
        for piece in (each.data, each.nulls):
            data.append(piece.ljust(_padded(len(piece), 64), b"\0"))
            at += len(data[-1])
    return b"".join([*pieces, bytes(gap), *data])


def _padded(size: int, to: int) -> int:
    return -(-size // to) * to


def column_of(schema: Schema, name: str, column: Column, values: Any, hashed: bool = True) -> PackedColumn:
    """A column as an entry of the directory and its bytes. `hashed`: a category's texts become their hashes."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        values = column.entry.plain_times(column, values)
    hashing = schema.hashing(name, column)
    if column.entry.cells(column) == "list":
        if column.entry.is_float(column):
            return _floats(name, column, values)
        return _lists(name, column, values, hashing if hashed else None)
    if column.entry.takes_bytes(column) and any(isinstance(cell, bytes) for cell in values):
        return _binaries(name, values)
    mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    array = np.ma.getdata(values) if mask is not None else values
    if not isinstance(array, np.ndarray) or array.dtype.kind in "OSU":
        array, absent = _plain(name, column, array)
        mask = absent if mask is None else mask | absent
    if hashed and hashing is not None:
        return _hashes(name, column, array, mask, *hashing)
    if array.dtype.kind == "U":
        return _texts(array, mask)
    array = _narrowed(name, column, array, name in schema.exact)
    kind = "bool" if array.dtype.kind == "b" else array.dtype.str[1:]
    return PackedColumn(kind, array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes(), _bits(mask))


def _binaries(name: str, values: Any) -> PackedColumn:
    """Bytes as they are."""
    if not all(cell is None or isinstance(cell, bytes) for cell in values):
        raise UserMistake(f"packed: {name}: expected bytes, got others beside them")
    gone = np.array([not cell for cell in values], bool)
    return PackedColumn("bytes", _ends([cell or b"" for cell in values]), _bits(gone))


def _floats(name: str, column: Column, values: Any) -> PackedColumn:
    """Returns a packed column of lists of numbers, all of the same length."""
    absent = np.array([cell is None for cell in values], bool)
    present = [cell for cell in values if cell is not None]
    try:
        table = np.asarray(present, np.float64).reshape(len(present), -1 if present else 0).astype("<f4")
    except (ValueError, TypeError):
        raise UserMistake(f"packed: {name}: expected lists of as many numbers each, got others") from None
    filled = np.zeros((len(absent), table.shape[1]), "<f4")
    filled[~absent] = table
    return PackedColumn("floats", filled.tobytes(), _bits(absent), table.shape[1])


def _lists(name: str, column: Column, values: Any, hashing: tuple[int, int] | None) -> PackedColumn:
    """Returns a packed column of lists of any number of texts, or of their hashes. Missing texts are left out."""
    absent = np.array([cell is None for cell in values], bool)
    if not all(cell is None or isinstance(cell, list | tuple | np.ndarray) for cell in values):
        raise UserMistake(f"packed: {name}: expected lists, got others")
    cells = [_plain(name, column, [] if cell is None else list(cell)) for cell in values]
    present = [[_text(name, column, each) for each in array[~gone].tolist()] for array, gone in cells]
    ends = np.cumsum([len(row) for row in present], dtype="<u4").tobytes()
    texts = [text.encode() for row in present for text in row]
    if hashing is None:
        return PackedColumn("list", ends + _ends(texts), _bits(absent), of="text")
    bits, seed = hashing
    hashes = np.array([_native.murmur3(text, seed, bits) for text in texts], f"<u{bits // 8}")
    return PackedColumn("list", ends + hashes.tobytes(), _bits(absent), seed, f"hash{bits}")


def lists_of(ends: Array, numbers: Array) -> PackedColumn:
    """Lists side by side, each from the end of that before up to its own."""
    kind = numbers.dtype.str[1:]
    return PackedColumn("list", ends.astype("<u4").tobytes() + numbers.astype("<" + kind).tobytes(), of=kind)


def _bits(mask: Array | None) -> bytes:
    return b"" if mask is None or not mask.any() else np.packbits(mask, bitorder="little").tobytes()


def _narrowed(name: str, column: Column, array: Array, is_exact: bool) -> Array:
    """Numbers as float32, which they become anyway; of exact ones where that changes none. Bytes stay bytes."""
    if array.dtype.kind not in "fiub" or array.ndim != 1 or array.dtype.itemsize > 8:
        raise UserMistake(
            f"packed: {name}: expected one number, text or boolean a row, got {array.dtype} {array.shape}"
        )
    if not column.entry.is_float(column):
        return array.astype(np.float32) if array.dtype == np.float16 else array
    if array.dtype.kind == "b":
        return array.astype(np.uint8)
    if array.dtype.itemsize == 1 or array.dtype == np.float32:
        return array
    with np.errstate(over="ignore", under="ignore"):  # becomes infinite, which the decoder answers
        wide = array.astype(np.float64, copy=False)
        narrow = wide.astype(np.float32)
    if is_exact:
        is_whole = array.dtype.kind in "iu" and (array <= 1 << 62).all()
        return narrow if (narrow == wide).all() else array.astype(np.int64) if is_whole else wide
    return array if ((narrow == 0) != (array == 0)).any() else narrow  # a small one below 0 may be no weight


def _plain(name: str, column: Column, values: Any) -> tuple[Array, Array]:
    """Lists, object and text arrays as a number, boolean or text array, and which cells are missing."""
    array = np.asarray(values, dtype=None if isinstance(values, np.ndarray) else object)
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    if array.dtype.kind == "U":
        return array, np.zeros(len(array), bool)
    absent = np.array([cell is None or (isinstance(cell, str) and cell == "") for cell in array], bool)
    present = [cell.item() if isinstance(cell, np.generic) else cell for cell in array[~absent]]
    filled: Array
    if column.entry.is_text(column) or any(isinstance(cell, str) for cell in present):
        filled = np.zeros(len(array), dtype=object)
        filled[:] = ""
        filled[~absent] = [_text(name, column, cell) for cell in present]
        return filled.astype(str) if len(filled) else np.zeros(0, "U1"), absent
    try:
        typed = np.array(present) if present else np.zeros(0, np.float32)
        if typed.dtype == object:  # integers beyond 64 bits
            typed = typed.astype(np.float64)
    except (ValueError, TypeError):
        raise UserMistake(f"packed: {name}: expected one number, text or boolean a row") from None
    filled = np.zeros(len(array), typed.dtype)
    if typed.ndim == 1:
        filled[~absent] = typed
        return filled, absent
    raise UserMistake(f"packed: {name}: expected one number, text or boolean a row, got arrays")


def _text(name: str, column: Column, cell: Any) -> str:
    if column.entry.takes_text(column):
        if isinstance(cell, str):
            return cell
        if isinstance(cell, bool):
            return "true" if cell else "false"
        if isinstance(cell, int) or (isinstance(cell, float) and cell.is_integer()):
            return str(int(cell))
        if isinstance(cell, float) and column.entry.is_float(column):
            return f"{cell:.17g}".replace(".", "," if column.parse == DECIMAL_COMMA else ".")
    expected = "text, integers or booleans" if column.entry.is_text(column) else "numbers"
    raise UserMistake(f"packed: {name}: expected {expected}, got {cell!r}")


def _hashes(name: str, column: Column, array: Array, mask: Array | None, bits: int, seed: int) -> PackedColumn:
    gone = np.zeros(len(array), bool) if mask is None else mask.copy()
    hashes = np.zeros(len(array), f"<u{bits // 8}")
    for row, cell in enumerate(array.tolist()):
        gone[row] |= cell == ""
        if not gone[row]:
            hashes[row] = _native.murmur3(_text(name, column, cell).encode(), seed, bits)
    return PackedColumn(f"hash{bits}", hashes.tobytes(), _bits(gone), seed)


def _texts(array: Array, mask: Array | None) -> PackedColumn:
    """Words and codes where words repeat, else one text a row, side by side where all have one length."""
    words, codes = np.unique(array, return_inverse=True)
    if 2 * len(words) <= len(array):
        table = [str(word).encode() for word in words]
        return PackedColumn(
            "words", codes.astype("<u4").tobytes() + struct.pack("<I", len(table)) + _ends(table), _bits(mask)
        )
    texts = [str(text).encode() for text in array]
    sizes = {len(text) for text in texts if text}
    if len(sizes) != 1:
        return PackedColumn("text", _ends(texts), _bits(mask))
    (size,) = sizes
    gone = np.array([not text for text in texts], bool)
    gone = gone if mask is None else gone | mask
    return PackedColumn("fixed", b"".join(text.ljust(size, b"\0") for text in texts), _bits(gone), size)


def _ends(texts: list[bytes]) -> bytes:
    return np.cumsum([len(text) for text in texts], dtype="<u4").tobytes() + b"".join(texts)


def record_bytes(begin: bytes) -> int | None:
    """Returns the length of a record with this beginning; None if that is not known yet.

    Bytes that are no record count at the length they have."""
    if len(begin) < _HEADER.size:
        return None
    magic, _, count, rows, directory_bytes = _HEADER.unpack_from(begin)
    end = _HEADER.size + directory_bytes
    if magic != MAGIC or end > MOST_DIRECTORY_BYTES:
        return len(begin)
    if len(begin) < end:
        return None
    at, size = _HEADER.size, _padded(end, 64)
    for _ in range(count):
        if at + _ENTRY.size > end:
            break
        data_at, data_bytes, nulls_at, *_, name_bytes, _ = _ENTRY.unpack_from(begin, at)
        size = max(size, data_at + _padded(data_bytes, 64), nulls_at + _padded((rows + 7) // 8, 64) if nulls_at else 0)
        at += _padded(_ENTRY.size + name_bytes, 4)
    return size


class Read(NamedTuple):
    """The columns of a record by name, a column that cannot be read an Unusable; and why the rest cannot be read."""

    columns: list[tuple[str, Any]]
    rows: int
    broken: str | None = None


def read(record: bytes) -> Read:
    """A record's columns as lists, for files; a missing cell is a MISSING_ENTRY."""
    if len(record) < _HEADER.size or record[:4] != MAGIC:
        return Read([], 0, "no packed record")
    _, version, count, rows, directory_bytes = _HEADER.unpack_from(record)
    end = _HEADER.size + directory_bytes
    if version != VERSION or rows > len(record) or end > len(record):
        return Read([], 0, "a header this build cannot read")
    at, columns = _HEADER.size, list[tuple[str, Any]]()
    for _ in range(count):
        if at + _ENTRY.size > end:
            return Read(columns, rows, "the directory is cut short")
        *where, type_number, of_number, name_bytes, more = _ENTRY.unpack_from(record, at)
        name = record[at + _ENTRY.size : at + _ENTRY.size + name_bytes].decode(errors="replace")
        at += _padded(_ENTRY.size + name_bytes, 4)
        if at > end:
            return Read(columns, rows, "the directory is cut short")
        columns.append((name, _read_column(record, rows, (type_number, of_number), more, *where)))
    return Read(columns, rows)


def _read_column(record: bytes, rows: int, types: tuple[int, int], more: int, at: int, size: int, nulls: int) -> Any:
    type_name, of = (TYPES[number - 1] if 1 <= number <= len(TYPES) else "" for number in types)
    if not type_name or (type_name == "list" and (not of or of in _NO_CELLS)):
        return Unusable("an unknown type")
    if at + size > len(record) or (nulls and nulls + (rows + 7) // 8 > len(record)):
        return Unusable("offsets behind the record")
    data = record[at : at + size]
    try:
        values = read_lists(data, rows, of, more) if type_name == "list" else read_cells(data, rows, type_name, more)
    except (ValueError, struct.error):
        return Unusable("fewer bytes than rows need")
    if isinstance(values, Unusable):
        return values
    null = record[nulls:] if nulls else b""
    return [MISSING_ENTRY if nulls and null[row >> 3] >> (row & 7) & 1 else value for row, value in enumerate(values)]
