"""Rows as programs hold them: a dict, many dicts, a dict of arrays, a frame. Which it is, and its columns as arrays.

Only the job's columns decide, and only they can be a mistake: what the job ignores is never looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamtrain import _native
from streamtrain.columns.arrow_cells import of_arrow
from streamtrain.columns.rejected import Unreadable
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake

Array = NDArray[Any]
Column = Array | list[Any]  # 1-dimensional: numbers, booleans or times; or Python values
_AS_THEY_ARE = frozenset(np.dtype(code) for code in ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"))
_PLAIN = frozenset((int, float, str, bool, type(None)))


class Columns(NamedTuple):
    """Columns of one length."""

    named: dict[str, Column]
    rows: int

    def part(self, first: int, end: int) -> Columns:
        """Rows [first, end), without a copy of arrays."""
        if first == 0 and end >= self.rows:
            return self
        return Columns({name: cells[first:end] for name, cells in self.named.items()}, min(end, self.rows) - first)


class CsvText(NamedTuple):
    """Lines of CSV, each a row. `order`: of each cell the number of its column, below 0 of none, and what texts are:
    see _native.RecordEncoder.read_csv()."""

    text: bytes
    rows: int
    order: tuple[tuple[int, _native.CsvCell], ...]
    delimiter: str
    quote: str
    skip_space: bool  # spaces before a cell are none of it

    def bytes_before(self, row: int) -> int:
        return _native.csv_lines(self.text, row, True, self.delimiter, self.quote, self.skip_space)[1] if row else 0

    def part(self, first: int, end: int) -> CsvText:
        """Rows [first, end)."""
        begin = self.bytes_before(first)
        until = self.bytes_before(end) if end < self.rows else len(self.text)
        return self._replace(text=self.text[begin:until], rows=end - first)


Block = list[Any] | CsvText | Columns  # of a list each a dict, or an Unreadable


def count_of(block: Block) -> int:
    return len(block) if isinstance(block, list) else block.rows


def part_of(block: Block, first: int, end: int) -> Block:
    """Rows [first, end)."""
    if first == 0 and end == count_of(block):
        return block
    return block[first:end] if isinstance(block, list) else block.part(first, end)


class FileRows(NamedTuple):
    """Rows out of a file: `first` is the first one's number in it, from 0. `lines`: each one's line where it is known,
    of CSV that of the first."""

    rows: Block
    name: str
    first: int
    lines: tuple[int, ...] = ()

    @property
    def row_count(self) -> int:
        return count_of(self.rows)

    def behind(self, count: int) -> FileRows:
        """Returns the rows after the first `count`, which is smaller than the number of rows."""
        first, rows = self.first + count, self.rows
        if isinstance(rows, CsvText):
            line = self.lines[0] + self._breaks_before(rows, count)
            return FileRows(rows.part(count, rows.rows), self.name, first, (line,))
        return FileRows(part_of(rows, count, count_of(rows)), self.name, first, self.lines[count:])

    @staticmethod
    def _breaks_before(rows: CsvText, row: int) -> int:
        return rows.text.count(b"\n", 0, rows.bytes_before(row))

    def where(self, row: int) -> str:
        """Returns the name of a row for error messages."""
        if isinstance(self.rows, CsvText):
            return f"{self.name}:{self.lines[0] + self._breaks_before(self.rows, row)}"
        return f"{self.name}:{self.lines[row]}" if self.lines else f"{self.name} row {self.first + row}"


def is_array(value: Any) -> bool:
    """Returns True if a value is a whole column rather than one cell."""
    kind = type(value)
    if kind in _PLAIN:
        return False
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, list | tuple | range) or (hasattr(value, "__array__") and hasattr(value, "__len__"))


class Names(NamedTuple):
    """The names of a job's columns."""

    columns: Collection[str]
    heads: Collection[str] = ()  # keys that their paths begin with
    lists: Mapping[str, int] = {}  # those whose cells are lists, and how deep

    @classmethod
    def of(cls, schema: Schema) -> Names:
        """Returns the names of the columns that decoders read."""
        return cls(schema.decoded_names, schema.heads, schema.lists)


def shows_columns(
    items: Iterable[tuple[Any, Any]], names: Names, is_array: Callable[[Any], bool] = is_array
) -> bool | None:
    """Returns True if a map holds columns, by the decoders' rule.

    The first key that the job knows must be a column's name and hold an array. Returns None if the job knows only list
    columns in the map, because those do not decide it.
    """
    for name, value in items:
        if name in names.columns and name not in names.lists:
            return is_array(value)
        if name in names.heads:
            return False
    return None


def is_columns(row: Mapping[str, Any], names: Names) -> bool:
    """Returns True if a program's dict holds columns.

    If the job knows only list columns in it, one that is nested deeper than its cells decides.
    """
    is_columnar = shows_columns(row.items(), names)
    if is_columnar is not None:
        return is_columnar
    return any(_depth(row[name]) > deep for name, deep in names.lists.items() if name in row)


def _depth(value: Any) -> int:
    """Returns how many lists lie within each other."""
    if isinstance(value, np.ndarray):
        return value.ndim
    if isinstance(value, Mapping):
        return 2
    return 1 + (_depth(value[0]) if len(value) else 0) if is_array(value) else 0


def is_row(value: Any, names: Names) -> bool:
    """Returns whether an iterator that gives this first gives rows, and not many at a time.

    A dict with an array and a single value is a row, a cell of which is an array.
    """
    if not isinstance(value, Mapping):
        return not any(hasattr(value, name) for name in ("collect_schema", "columns", "column_names"))
    cells = (cell for name, cell in value.items() if name in names.columns and name not in names.lists)
    return not is_columns(value, names) or not all(map(is_array, cells))


def collected(rows: Any) -> Any:
    """A frame that is still to be computed, as polars' LazyFrame, as the frame that it gives; all else as it is."""
    return rows.collect() if hasattr(rows, "collect") and hasattr(rows, "collect_schema") else rows


def read(
    rows: Any, names: Names, others: bool = False
) -> dict[str, Any] | list[dict[str, Any]] | Columns:
    """One row, many rows, or columns: those of `names`, and with `others` arrays of plain values beside them.

    Raises UserMistake for what is none of the forms, and for columns of differing lengths.
    """
    rows = collected(rows)
    if isinstance(rows, Mapping):
        given = rows if type(rows) is dict else dict(rows)
        return columns_of(given, names, others) if is_columns(given, names) else given
    if hasattr(rows, "to_pydict") and hasattr(rows, "column_names"):  # a pyarrow table or batch
        arrow = {name: _arrow_column(name, rows.column(name), name in names.columns)
                 for name in rows.column_names if others or name in names.columns}  # fmt: skip
        return columns_of(arrow, names, others, len(rows))
    if hasattr(rows, "columns") and hasattr(rows, "__getitem__"):  # a frame
        frame = {str(name): rows[name] for name in rows.columns if others or str(name) in names.columns}
        return columns_of(frame, names, others, len(rows))
    if isinstance(rows, Iterable) and not isinstance(rows, str | bytes | np.ndarray):
        return dicts(rows)
    raise UserMistake(
        f"rows: expected a dict, a list of dicts, a dict of arrays or a frame, got {type(rows).__name__}"
    )


def dicts(rows: Iterable[Any], first: int = 0) -> list[dict[str, Any]]:
    """Rows as dicts; UserMistake for the first that is none, counted from `first`."""
    listed = rows if type(rows) is list else list(rows)
    if all(type(row) is dict for row in listed):
        return listed
    for number, row in enumerate(listed, first):
        if not isinstance(row, Mapping):
            raise UserMistake(f"rows[{number}]: expected a dict, got {type(row).__name__}")
    return [dict(row) for row in listed]


def dicts_or_unreadable(rows: list[Any] | tuple[Any, ...]) -> list[dict[str, Any] | Unreadable]:
    """Rows as dicts; what is no row is an Unreadable in its place."""
    if type(rows) is list and all(type(row) is dict for row in rows):
        return rows
    bad = ((row, Unreadable(f"expected a dict, got {type(row).__name__}")) for row in rows)
    return [dict(row) if isinstance(row, Mapping) else unreadable for row, unreadable in bad]


def columns_of(given: Mapping[str, Any], names: Names, others: bool = False, rows: int = 0) -> Columns:
    """The columns, checked; `rows` is how many rows there are where none is named."""
    named: dict[str, Column] = {}
    for name, values in given.items():
        if name in names.columns:
            if not is_array(values):
                first = next(other for other in given if other in names.columns)
                raise UserMistake(
                    f"rows: expected all arrays or all single values, got an array in {first!r}, none in {name!r}"
                )
            named[name] = column(name, values, name in names.lists)
    lengths = {name: len(values) for name, values in named.items()}
    if len(set(lengths.values())) > 1:
        raise UserMistake(f"rows: expected columns of one length, got {lengths}")
    rows = next(iter(lengths.values()), rows)
    if others:
        beside = ((str(name), _other(values, rows)) for name, values in given.items() if name not in names.columns)
        named |= {name: cells for name, cells in beside if cells is not None}
    return Columns(named, rows)


def _other(values: Any, rows: int) -> Column | None:
    """A column that the job does not name; None where it cannot go along."""
    if not is_array(values):
        return None
    try:
        cells = column("", values)
    except (UserMistake, TypeError, ValueError):
        return None
    is_time = not isinstance(cells, list) and cells.dtype.kind in "mM"
    return None if is_time or len(cells) != rows else cells


def column(name: str, values: Any, of_lists: bool = False) -> Column:
    """An array of numbers, booleans or times in this machine's byte order, else a list; masked cells are None.
    `of_lists`: a cell is a list, so that an array may have two dimensions."""
    if type(values) is list:
        return values
    if not hasattr(values, "__array__"):
        return list(values)
    array = _as_array(name, values)
    if of_lists and array.ndim != 2:
        return list(array)
    if array.ndim != (2 if of_lists else 1):
        raise UserMistake(f"rows: column {name!r}: expected one value a row, got an array of shape {array.shape}")
    if isinstance(array, np.ma.MaskedArray):
        return list(array.tolist())
    kind, size = array.dtype.kind, array.dtype.itemsize
    if array.dtype in _AS_THEY_ARE:
        return array
    if kind in "fiub":
        dtype = np.dtype(np.float32 if kind == "f" and size == 2 else np.float64 if size > 8 else array.dtype)
        return array.astype(dtype.newbyteorder("="), copy=False)
    return array if kind in "mM" else list(array.tolist())


def _arrow_column(name: str, values: Any, is_known: bool) -> Any:
    """A pyarrow column as an array or a list; None of one that cannot be read and the job does not name."""
    try:
        return of_arrow(values)
    except UserMistake as mistake:
        if is_known:
            raise UserMistake(f"rows: column {name!r}: {mistake}") from None
        return None


def _as_array(name: str, values: Any) -> Array:
    """UserMistake for a tensor that NumPy cannot read: of bfloat16, on a device, one that asks for a gradient."""
    if isinstance(values, np.ndarray):
        return values
    try:
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        kind = type(values).__name__
        raise UserMistake(f"rows: column {name!r}: expected what NumPy can read, got a {kind}: {error}") from None
