"""Rows of any form → records in the job's format: those of one key together, by the pack, none larger than allowed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from streamtrain import _native
from streamtrain.clients.cells import key_bytes
from streamtrain.clients.forms import Columns, dicts, is_row, read
from streamtrain.columns.formats import Format
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake

BLOCK_ROWS = 65_536  # read at once: a mistake in one leaves none of them written


class Record(NamedTuple):
    """One message's key and bytes, and how many rows they are."""

    key: bytes | None
    value: bytes
    rows: int


class Records:
    """Makes the records of one topic. One thread at a time.

    Every mistake is a UserMistake that names the row, counted from the first of its call, and the column.
    """

    def __init__(self, schema: Schema, format: Format, topic: str, pack: int, most_bytes: int) -> None:
        self.key_column = next((name for name, column in schema.columns if column.role == "key"), None)
        self._topic = topic
        self._pack = pack
        self._most_bytes = most_bytes
        self._columns = dict(schema.columns)
        columns = [(column.entry, column) for _, column in schema.columns]

        def plain(value: Any, number: int) -> Any:
            kind, column = columns[number]
            return kind.plain(column, value)

        self._encoder = _native.RecordEncoder(format, schema.native_columns(), plain)
        self.encode = self._encoder.encode_row  # of_dict() without its checks

    def of_dict(self, row: dict[str, Any], spare_bytes: int = 0) -> bytes | None:
        """The record of one row; None where the dict is no row but columns."""
        try:
            value = self._encoder.encode_row(row)
        except ValueError as error:
            raise _mistake(error, 0, alone=True) from None
        if value is not None and len(value) + spare_bytes > self._most_bytes:
            raise self._too_large("row", len(value))
        return value

    def blocks(self, rows: Any, key: bytes | None, own_keys: bool, spare_bytes: int = 0) -> Iterator[list[Record]]:
        """The records of at most BLOCK_ROWS rows at a time. With `own_keys` the key column gives the keys, else `key`.

        A record and `spare_bytes` are no larger than a message may be.
        """
        for first, block in _blocks(rows, self._columns):
            try:
                if isinstance(block, Columns):
                    named = {name: self._cells(name, cells) for name, cells in block.named.items()}
                    self._encoder.read_columns(named, block.rows)
                    count = block.rows
                else:
                    self._encoder.read_rows(block)
                    count = len(block)
                groups = self._groups(block) if own_keys else [(key, None)]
                yield [
                    record
                    for own, chosen in groups
                    for record in self._packed(own, range(count) if chosen is None else chosen, first, spare_bytes)
                ]
            except ValueError as error:
                raise _mistake(error, first, alone=isinstance(rows, dict) and not isinstance(block, Columns)) from None
            finally:
                self._encoder.clear()

    def _cells(self, name: str, cells: Any) -> Any:
        """Times as integers where the column holds times; elsewhere as objects, which are refused by name."""
        if isinstance(cells, list) or cells.dtype.kind != "M":
            return cells
        column = self._columns.get(name)
        return list(cells) if column is None else column.entry.plain_times(column, cells)

    def _groups(self, block: Columns | list[dict[str, Any]]) -> Iterable[tuple[bytes | None, list[int] | None]]:
        """(key, numbers of the rows that may share a record), by key in order of first sight; None: all rows."""
        assert self.key_column is not None
        if isinstance(block, Columns):
            cells = block.named.get(self.key_column)
            if cells is None:
                return [(None, None)]
            listed: Sequence[Any] = cells.tolist() if isinstance(cells, np.ndarray) else cells
        else:
            listed = [row.get(self.key_column) for row in block]
        groups: dict[bytes | None, list[int]] = {}
        for number, cell in enumerate(listed):
            groups.setdefault(key_bytes(cell), []).append(number)
        return groups.items()

    def _packed(
        self, key: bytes | None, chosen: range | list[int], first: int, spare_bytes: int
    ) -> Iterator[Record]:
        for start in range(0, len(chosen), self._pack):
            yield from self._fitting(key, chosen[start : start + self._pack], first, spare_bytes + len(key or b""))

    def _fitting(
        self, key: bytes | None, chosen: range | list[int], first: int, spare_bytes: int
    ) -> Iterator[Record]:
        """One record, or two halves of it where it would be larger than a message may be."""
        if isinstance(chosen, range):
            value = self._encoder.encode(chosen.start, len(chosen))
        else:
            value = self._encoder.encode_chosen(chosen)
        if len(value) + spare_bytes <= self._most_bytes:
            yield Record(key, value, len(chosen))
        elif len(chosen) == 1:
            raise self._too_large(f"row {first + chosen[0]}", len(value))
        else:
            middle = len(chosen) // 2
            yield from self._fitting(key, chosen[:middle], first, spare_bytes)
            yield from self._fitting(key, chosen[middle:], first, spare_bytes)

    def _too_large(self, where: str, size: int) -> UserMistake:
        return UserMistake(
            f"{self._topic}: {where}: expected a row of at most {self._most_bytes:,} bytes with its key and headers, "
            f"got {size:,}; raise message.max.bytes in [kafka.producer] and the topic's max.message.bytes, or make it "
            "smaller"
        )


def _blocks(rows: Any, names: dict[str, Any]) -> Iterator[tuple[int, Columns | list[dict[str, Any]]]]:
    """(number of the first row, rows), at most BLOCK_ROWS at a time; an iterator is never held as a whole."""
    if not isinstance(rows, Iterator):
        yield from _parts(read(rows, names, others=True), 0)
        return
    first, head = 0, list(islice(rows, 1))
    frames = bool(head) and not is_row(head[0], names)  # or dicts of arrays
    rows = chain(_taken(head), rows)
    if frames:
        for given in rows:
            for number, part in _parts(read(given, names, others=True), first):
                yield number, part
                first = number + (part.rows if isinstance(part, Columns) else len(part))
    while block := list(islice(rows, BLOCK_ROWS)):
        yield first, dicts(block, first)
        first += len(block)


def _taken(items: list[Any]) -> Iterator[Any]:
    """What is in a list, which keeps none of it: it may be large."""
    while items:
        yield items.pop(0)


def _parts(
    given: dict[str, Any] | list[dict[str, Any]] | Columns, before: int
) -> Iterator[tuple[int, Columns | list[dict[str, Any]]]]:
    if isinstance(given, dict):
        given = [given]
    count = given.rows if isinstance(given, Columns) else len(given)
    for first in range(0, count, BLOCK_ROWS):
        end = first + BLOCK_ROWS
        yield before + first, given.part(first, end) if isinstance(given, Columns) else given[first:end]


def _mistake(error: ValueError, first: int, alone: bool) -> UserMistake:
    if len(error.args) != 4:
        raise error
    row, name, expected, got = error.args
    where = "row" if alone else f"row {first + row}"
    return UserMistake(f"{where} at $.{name}: expected {expected}, got {got}")
