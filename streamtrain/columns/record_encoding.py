"""Rows of any form → records in the job's format: those of one key together, by the pack, none larger than allowed."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, NamedTuple, overload

import numpy as np

from streamtrain import _native
from streamtrain.columns.around import HEADERS, KEY
from streamtrain.columns.formats import Format
from streamtrain.columns.forms import (
    Block,
    Columns,
    CsvText,
    FileRows,
    Names,
    count_of,
    dicts,
    dicts_or_unreadable,
    is_row,
    part_of,
    read,
)
from streamtrain.columns.kinds.key import key_bytes
from streamtrain.columns.paths import cell_at, place
from streamtrain.columns.rejected import Rejected, Rejecting, Unreadable
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake

_HEADER_BYTES = 32  # of a message beside name and value
BLOCK_ROWS = 65_536  # read at once: a mistake in one leaves none of them written
_IS_TIME = '; a time takes role = "event_time", or role = "input" with kind = "time"'
_IS_SPAN = "; a duration or a time of day takes a column of numbers, in seconds"
_IS_LIST = '; lists take list = true or kind = "vector"'
_HINTS = {
    **dict.fromkeys(("numpy.datetime64", "datetime.datetime", "datetime.date", "Timestamp"), _IS_TIME),
    **dict.fromkeys(("numpy.timedelta64", "datetime.timedelta", "datetime.time", "Timedelta"), _IS_SPAN),
    **dict.fromkeys(("list", "tuple", "numpy.ndarray"), _IS_LIST),
    "dict": "; path names one of its fields",
}  # by the type that a column cannot take


def header_bytes(headers: Iterable[tuple[str, bytes | str | None]]) -> int:
    """Returns the most bytes that the headers take in a message."""
    return sum(len(name) + len(value or b"") + _HEADER_BYTES for name, value in headers)


class Own(NamedTuple):
    """The message metadata of a row, outside its record. Rows with the same metadata may share a record."""

    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()

    @property
    def bytes(self) -> int:
        return len(self.key or b"") + header_bytes(self.headers)


class Record(NamedTuple):
    """One message's key, headers of its rows and bytes, and how many rows they are."""

    own: Own
    value: bytes
    rows: int


def rows_of(given: Record | Rejected) -> int:
    return given.rows if isinstance(given, Record) else 1


class _Call(NamedTuple):
    """The arguments of a call of blocks(). `source`: the file that its rows are of; `alone`: they are one dict."""

    key: bytes | None = None
    own_keys: bool = False
    spare_bytes: int = 0
    reject: bool = False
    source: FileRows | None = None
    alone: bool = False
    by_name: bool = False  # cells stand at their columns' names, not at their paths

    def where(self, row: int) -> str:
        """Returns the place of a row for messages, by its number in the call."""
        if self.source is not None:
            return self.source.where(row)
        return "row" if self.alone and not self.by_name else f"row {row}"


class Records:
    """Makes the records of one topic. One thread at a time.

    Every mistake is a UserMistake that names the row, counted from the first of its call, and the column.
    """

    def __init__(
        self, schema: Schema, format: Format, topic: str, pack: int, most_bytes: int, are_messages: bool = True
    ) -> None:
        keys = [name for name, column in schema.columns if column.role == "key"]
        keys += [name for name, column in schema.columns if column.around == KEY]
        self.key_column = keys[0] if keys else None
        around = {name: column.around or "" for name, column in schema.columns}
        self._headers = {name: each.removeprefix(HEADERS) for name, each in around.items() if each.startswith(HEADERS)}
        self.has_own = bool(keys or self._headers)
        self._topic = topic
        self._most_bytes = most_bytes
        self._most_row_bytes = most_bytes if are_messages else 1 << 62  # of a record of one row
        self._columns, self._paths = dict(schema.columns), schema.paths
        heads = frozenset(str(path[0]) for path in self._paths.values())
        self._names = Names(self._columns, heads, schema.lists)
        columns = [(column.entry, column) for _, column in schema.columns]

        def plain(value: Any, number: int) -> Any:
            kind, column = columns[number]
            return kind.plain(column, value)

        self._encoder = _native.RecordEncoder(format, schema.native_columns(), plain)
        self._pack = min(pack, self._encoder.most_rows)
        self.encode = self._encoder.encode_row  # of_dict() without its checks

    def of_dict(self, row: dict[str, Any], spare_bytes: int = 0) -> bytes | None:
        """The record of one row; None where the dict may be columns: blocks() tells."""
        try:
            value = self._encoder.encode_row(row)
        except ValueError as error:
            raise UserMistake(str(self._rejected(error, 0, _Call(alone=True)))) from None
        if value is not None and len(value) + spare_bytes > self._most_row_bytes:
            raise UserMistake(f"{self._topic}: {self._too_large('row', len(value))}")
        return value

    @overload
    def blocks(
        self, rows: Any, key: bytes | None, own_keys: bool, spare_bytes: int = 0
    ) -> Iterator[list[Record]]: ...
    @overload
    def blocks(
        self, rows: Any, key: bytes | None, own_keys: bool, spare_bytes: int = 0, *, reject: bool
    ) -> Iterator[list[Record | Rejected]]: ...
    def blocks(
        self, rows: Any, key: bytes | None, own_keys: bool, spare_bytes: int = 0, *, reject: bool = False
    ) -> Iterator[Any]:
        """The records of at most BLOCK_ROWS rows at a time. With `own_keys` the key column gives the keys, else `key`;
        columns from headers give those. A record and `spare_bytes` are no larger than a message may be.

        A row that no record can hold is a UserMistake. With `reject` it is a Rejected in its place: no record goes on
        behind it, so that records and rejected rows are in the order of the rows, where all have the same key.
        """
        source = rows if isinstance(rows, FileRows) else None
        given = rows if source is None else source.rows
        call = _Call(key, own_keys, spare_bytes, reject, source, isinstance(given, dict))
        for first, block in _blocks(given, self._names, call):
            yield list(self._read_block(first, block, call._replace(by_name=not isinstance(block, list))))

    def _read_block(self, first: int, block: Block, call: _Call) -> Iterator[Record | Rejected]:
        """Reads a block. Where a row is refused, the rows before it and those behind it are read apart."""
        left = list(self._pieces(first, block, call))[::-1]
        while left:
            piece = left.pop()
            if isinstance(piece, Rejected):
                yield piece
                continue
            start, end = piece
            part = part_of(block, start, end)
            try:
                yield from list(self._records_of(part, first + start, call))
            except ValueError as error:
                found = self._rejected(error, first + start, call)
                row = start + error.args[0]
                if not call.reject or self._is_structure(error, block, row):
                    raise UserMistake(str(found)) from None
                middle = row + 1 + (end - row - 1) // 2  # a table of all rows behind each bad one would take too long
                left += [piece for piece in ((middle, end), (row + 1, middle)) if piece[0] < piece[1]]
                left += [found, (start, row)] if start < row else [found]
            finally:
                self._encoder.clear()

    @staticmethod
    def _pieces(first: int, block: Block, call: _Call) -> Iterator[tuple[int, int] | Rejected]:
        """The rows that a reader could make something of, and between them those that it could not."""
        start, end = 0, count_of(block)
        for row, each in enumerate(block) if isinstance(block, list) else ():
            if type(each) is not Unreadable:
                continue
            found = Rejected(call.where(first + row), each.reason)
            if not call.reject:
                raise UserMistake(str(found))
            if start < row:
                yield start, row
            yield found
            start = row + 1
        if start < end:
            yield start, end

    @staticmethod
    def _is_structure(error: ValueError, block: Block, row: int) -> bool:
        """Returns whether a mistake is of a text's lines, not of a cell: an open quote may hold many rows."""
        if not isinstance(block, CsvText):
            return False
        return not error.args[1] or block.text.count(b"\n", block.bytes_before(row), block.bytes_before(row + 1)) > 1

    def _records_of(self, block: Block, first: int, call: _Call) -> Iterator[Record | Rejected]:
        if isinstance(block, CsvText):
            self._encoder.read_csv(block.text, block.order, block.rows, block.delimiter, block.quote, block.skip_space)
        elif isinstance(block, Columns):
            named = {name: self._cells(name, cells) for name, cells in block.named.items()}
            self._encoder.read_columns(named, block.rows)
        else:
            self._encoder.read_rows(block)
        count = count_of(block)
        groups: Iterable[tuple[Own, list[int] | None]] = [(Own(call.key), None)]
        if self.has_own and not isinstance(block, CsvText):
            groups = self._groups(block, count, call.key, call.own_keys)
        for own, chosen in groups:
            yield from self._packed(own, range(count) if chosen is None else chosen, first, call)

    def _cells(self, name: str, cells: Any) -> Any:
        """Times as integers where the column holds times, durations as seconds where it holds numbers; elsewhere as
        objects, which are refused by name."""
        if isinstance(cells, list) or cells.dtype.kind not in "mM":
            return cells
        column = self._columns.get(name)
        return list(cells) if column is None else column.entry.plain_times(column, cells)

    def own_of(self, row: Mapping[str, Any], key: bytes | None, own_keys: bool, by_name: bool = False) -> Own:
        """Returns the message metadata of a row's record. `by_name`: the row is of columns, not nested."""
        name = self.key_column or ""
        path = None if by_name else self._paths.get(name)
        cell = row.get(name) if path is None else cell_at(row, path)
        found = key_bytes(cell) if own_keys else key
        headers = ((header, key_bytes(row.get(name))) for name, header in self._headers.items())
        return Own(found, tuple((header, value) for header, value in headers if value is not None))

    def _groups(
        self, block: Columns | list[Any], count: int, key: bytes | None, own_keys: bool
    ) -> Iterable[tuple[Own, list[int] | None]]:
        """(what is around them, numbers of the rows that may share a record), in order of first sight; None: all."""
        by_name = isinstance(block, Columns)
        rows: Iterable[Mapping[str, Any]] = self._own_cells(block, count) if isinstance(block, Columns) else block
        groups: dict[Own, list[int]] = {}
        for number, row in enumerate(rows):
            groups.setdefault(self.own_of(row, key, own_keys, by_name), []).append(number)
        if len(groups) == 1:
            return [(own, None) for own in groups]
        return groups.items()

    def _own_cells(self, block: Columns, count: int) -> Iterator[dict[str, Any]]:
        """Returns, row by row, the cells of columns that go into the message metadata."""
        cells = {name: block.named[name] for name in (self.key_column, *self._headers) if name in block.named}
        listed = {name: each.tolist() if isinstance(each, np.ndarray) else each for name, each in cells.items()}
        return ({str(name): column[number] for name, column in listed.items()} for number in range(count))

    def _packed(self, own: Own, chosen: range | list[int], first: int, call: _Call) -> Iterator[Record | Rejected]:
        for start in range(0, len(chosen), self._pack):
            yield from self._fitting(own, chosen[start : start + self._pack], first, call)

    def _fitting(self, own: Own, chosen: range | list[int], first: int, call: _Call) -> Iterator[Record | Rejected]:
        """One record, or two halves of it where it would be larger than a message may be, or holds a row that no record
        can."""
        try:
            value = self._encoded(chosen)
        except ValueError as error:
            if not call.reject:
                raise
            if len(chosen) == 1:
                yield self._rejected(error, first, call)
                return
        else:
            size = len(value) + call.spare_bytes + own.bytes
            if size <= (self._most_bytes if len(chosen) > 1 else self._most_row_bytes):
                yield Record(own, value, len(chosen))
                return
            if len(chosen) == 1:
                found = self._too_large(call.where(first + chosen[0]), len(value))
                if not call.reject:
                    raise UserMistake(f"{self._topic}: {found}")
                yield found
                return
        middle = len(chosen) // 2
        yield from self._fitting(own, chosen[:middle], first, call)
        yield from self._fitting(own, chosen[middle:], first, call)

    def _encoded(self, chosen: range | list[int]) -> bytes:
        if isinstance(chosen, range):
            return self._encoder.encode(chosen.start, len(chosen))
        return self._encoder.encode_chosen(chosen)

    def _rejected(self, error: ValueError, first: int, call: _Call) -> Rejected:
        """Returns the rejection of a cell that the encoder refuses.

        In columns its place is the column's name, in a row its path.
        """
        if len(error.args) != 4:
            raise error
        row, name, expected, got = error.args
        reason = f"expected {expected}, got {got}{_HINTS.get(got, '')}"
        if name:
            path = None if call.by_name else self._paths.get(name)
            reason = f"${f'.{name}' if path is None else place(path)}: {reason}"
        return Rejected(call.where(first + row), reason)

    def _too_large(self, where: str, size: int) -> Rejected:
        return Rejected(
            where,
            f"expected a row of at most {self._most_bytes:,} bytes with its key and headers, got {size:,}; raise "
            "message.max.bytes in [kafka.producer] and the topic's max.message.bytes, or make it smaller",
        )


class RowRecords:
    """A program's rows as records, read once and in order. `rows`: how many were read so far; `where` and `number` find
    a record's row among them."""

    def __init__(self, records: Records, given: Any, rejecting: Rejecting | None = None) -> None:
        """`rejecting`: counts and leaves out the rows that no record can hold, which are mistakes without it."""
        self._records, self._given, self._rejecting = records, given, rejecting
        self.rows = 0
        self._firsts = array("q")  # rows before each record

    def __iter__(self) -> Iterator[bytes]:
        return (record.value for record in self.records())

    def records(self) -> Iterator[Record]:
        """Yields the records of all rows. Raises UserMistake for a row that cannot stand in a record: for the first, or
        with `rejecting` where it counts too many."""
        rejecting = self._rejecting
        for each in chain.from_iterable(self._blocks()):
            first, self.rows = self.rows, self.rows + rows_of(each)
            if isinstance(each, Rejected):
                assert rejecting is not None
                rejecting.leave_out(each)
                continue
            if rejecting is not None:
                rejecting.take(each.rows)
            self._firsts.append(first)
            yield each
        if rejecting is not None:
            rejecting.end()

    def _blocks(self) -> Iterator[Iterable[Record | Rejected]]:
        return self._of(self._given)

    def _of(self, rows: Any) -> Iterator[Iterable[Record | Rejected]]:
        return self._records.blocks(rows, key=None, own_keys=False, reject=self._rejecting is not None)

    @property
    def left_out(self) -> int:
        """Returns how many rows no record could hold so far."""
        return 0 if self._rejecting is None else self._rejecting.found.rows

    def where(self, record: int, row: int) -> str:
        """Names a record's row, both from 0, as people do."""
        return f"row {self.number(record, row)}"

    def number(self, record: int, row: int) -> int:
        """The same row's number among all rows, from 0."""
        return self._firsts[record] + row


def _blocks(rows: Any, names: Names, call: _Call) -> Iterator[tuple[int, Block]]:
    """(number of the first row, rows), at most BLOCK_ROWS at a time; an iterator is never held as a whole."""
    if isinstance(rows, CsvText):
        yield 0, rows
    elif isinstance(rows, Columns) or call.source is not None:
        yield from _parts(rows, 0)
    elif call.reject and isinstance(rows, list | tuple):
        yield from _parts(dicts_or_unreadable(rows), 0)
    elif not isinstance(rows, Iterator):
        yield from _parts(read(rows, names, True), 0)
    else:
        yield from _iterated(rows, names, call.reject)


def _iterated(rows: Iterator[Any], names: Names, reject: bool) -> Iterator[tuple[int, Block]]:
    first, head = 0, list(islice(rows, 1))
    frames = bool(head) and not is_row(head[0], names)  # or dicts of arrays
    rows = chain(_taken(head), rows)
    if frames:
        for given in rows:
            for number, part in _parts(read(given, names, True), first):
                yield number, part
                first = number + count_of(part)
    while block := list(islice(rows, BLOCK_ROWS)):
        yield first, dicts_or_unreadable(block) if reject else dicts(block, first)
        first += len(block)


def _taken(items: list[Any]) -> Iterator[Any]:
    """Yields the items of a list and removes them from it, because it may be large."""
    while items:
        yield items.pop(0)


def _parts(given: dict[str, Any] | Block, before: int) -> Iterator[tuple[int, Block]]:
    block: Block = [given] if isinstance(given, dict) else given
    for first in range(0, count_of(block), BLOCK_ROWS):
        yield before + first, part_of(block, first, min(first + BLOCK_ROWS, count_of(block)))
