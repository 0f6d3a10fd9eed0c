"""The content of file rows that a job reads: its columns, numbers for the texts of a numeric column, and times."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from math import floor
from typing import Any

import numpy as np

from streamtrain._native import CsvCell
from streamtrain.columns.kinds.parsed import DECIMAL_COMMA, is_connect
from streamtrain.columns.paths import cell_at, nested
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake

Row = dict[str, Any]
_ZONED = re.compile(r"(.*:\d\d(?:[.,]\d+)?) ?(UTC|GMT|Z|[+-]\d\d(?::?\d\d)?)", re.IGNORECASE | re.ASCII)


def iso_ms(value: Any) -> int | None:
    """Milliseconds since 1970 of a datetime, a date or an ISO 8601 text; None for none.

    UTC where no zone is given. A zone may also stand behind a space, and be UTC or GMT, as databases write it.
    """
    if isinstance(value, str):
        text = value.strip()
        if len(text) < 8 or text.isdecimal():
            return None
        if (zoned := _ZONED.fullmatch(text)) is not None:
            text = zoned[1] + (zoned[2] if zoned[2][0] in "+-" else "Z")
        try:
            value = datetime.fromisoformat(text)
        except ValueError:
            return None
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return floor(moment.timestamp() * 1_000)
    if isinstance(value, date):
        return iso_ms(datetime(value.year, value.month, value.day))
    if isinstance(value, np.datetime64):
        return int(value.astype("datetime64[ms]").astype(np.int64))
    return None


def number_of(cell: Any) -> Any:
    """A number for a text that is one; anything else stays: a word for a missing one, or what is a dead letter."""
    if not isinstance(cell, str):
        return cell
    text = cell.strip()
    if not text.isascii() or "_" in text:  # which Python's numbers may have
        return cell
    if text.isdecimal():
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return {"true": 1, "false": 0}.get(text.lower(), cell)
    return number if abs(number) < float("inf") else cell


class ColumnSelection:
    """The columns that one job reads. Without `label`, those of requests."""

    def __init__(self, schema: Schema, label: bool = True) -> None:
        requests = schema.for_requests().decoded_names
        columns = {
            name: column for name, column in schema.columns if label or not column.entry.decoded or name in requests
        }
        self.schema, self.columns = schema, columns
        self.numbers = {name for name, column in columns.items()
                        if column.entry.is_numeric(column) and column.parse != DECIMAL_COMMA
                        and not is_connect(column.parse)}  # fmt: skip
        self.times = {name for name, column in columns.items()
                      if column.entry.time_unit(column) == (1, 1) and not column.entry.takes_text(column)}  # fmt: skip
        self.paths, self.lists = schema.paths, schema.lists
        self.place = {name: number for number, (name, _) in enumerate(schema.columns) if name in columns}
        around = [column.around or "" for column in columns.values()]
        keyed = any(column.role == "key" for column in columns.values())
        self.by_rows = keyed or any(each == "key" or each.startswith("headers.") for each in around)
        self._known = frozenset(columns)
        self.heads = self._known | {str(path[0]) for path in self.paths.values()}  # of fields that hold them

    def order(self, names: list[str]) -> list[tuple[int, CsvCell]]:
        """Returns, for each of a table's columns, the place of the job's column, or -1, and how its texts are read."""
        return [(self.place.get(name, -1), self.texts(name)) for name in names]

    def texts(self, name: str) -> CsvCell:
        """Returns how the texts of a column are read."""
        if name in self.times:
            return CsvCell.TIME
        return CsvCell.NUMBER if name in self.numbers else CsvCell.TEXT

    def check(self, names: list[str], where: str) -> None:
        """UserMistake where a table has none of the columns: it is of another job."""
        if not self._known.intersection(names):
            raise self._other(names, where)

    def row(self, row: Row) -> Row:
        """A row with the job's columns only: a cell stands at its path, or, as in a table, at its name."""
        found = row if row.keys() <= self._known else {name: row[name] for name in self.columns if name in row}
        if self.paths:
            found = self._at_paths(row)
        texts = [name for name, cell in found.items() if type(cell) is str and name in self.numbers]
        if texts:
            found = {**found, **{name: number_of(found[name]) for name in texts}}
        for name in self.times & found.keys():
            moment = iso_ms(found[name])
            if type(found[name]) is not int and moment is not None:
                found = {**found, name: moment}
        return nested(found, self.paths) if self.paths else found

    def check_row(self, row: Row, where: str) -> None:
        """The same of a first row."""
        if not self.row(row):
            raise self._other(list(row), where)

    def _at_paths(self, row: Row) -> Row:
        paths: Mapping[str, Any] = self.paths
        found = {name: cell_at(row, paths.get(name, (name,))) for name in self.columns}
        found |= {name: row[name] for name in self.columns if found[name] is None and name in row}
        return {name: cell for name, cell in found.items() if cell is not None}

    def _other(self, names: list[str], where: str) -> UserMistake:
        expected, got = ", ".join(list(self.columns)[:12]), ", ".join(map(str, names[:12]))
        return UserMistake(f"{where}: expected some of the job's columns {expected}; got {got}")
