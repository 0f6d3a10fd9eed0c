"""CSV records, slowly: what the native decoder and encoder are tested against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamtrain.columns.column import Column
from streamtrain.columns.formats.parsed import BrokenRecord, Pairs, Unusable
from streamtrain.columns.kinds.parsed import DECIMAL_COMMA
from streamtrain.columns.paths import cell_at
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from tests.oracles.kinds._numbers import whole
from tests.oracles.parsed import Parsed, registry_frame

EXAMPLES = [
    b"1.5,-2e3,AA,1\n",
    "0.25,3,Z\u00fcrich \U0001f6eb,0\r\n1,2,\"a,\"\"b\"\"\r\n\",1\r\n\r\n,,,\r\nn/a,1,x,1\n1,2\n7,1,x,1".encode(),
    b'"1.5",2,"",1\n1, 2.5 ,"AA"x,0\n\xef\xbb\xbf,1,"b\xff",0\n3,+4,.5,1e0\n',
    b'\xef\xbb\xbf1,k,2,AA,5,3,JFK,walk,1\n2,k,-0,7,2.5e3,,,2,0.5\n-1,"k\nk",3,B6,7,1,,true,\n',
    b"1,k,2,AA,5,3,JFK\n1,k,2,AA,5,3,\n",
    b"1.5,2,2026-11-22T02:10:00Z,1,2\n2.5,,1790000000000,0,\n12.5,3,,1,0\n",
    b"1,2,3,1\r4,5,6,0\r7,8,9,2\r",
    b'1,2,"never closed,1\n2,3,AA,1\n',
    b"\n\r\n",
]


_BREAKS = b"\r\n"


def encode_rows(schema: Schema, rows: Sequence[Any], delimiter: str = ",", header: bool = False,
                quote: str = '"') -> bytes:  # fmt: skip
    """Rows as one record: each a dict, or a list of cells in its own order."""
    named = [(name, column) for name, column in schema.columns if column.around is None]
    lines = [[name for name, _ in named]] if header else []
    for row in rows:
        lines.append(
            [_text(name, column, cell_at(row, schema.paths.get(name, (name,)))) for name, column in named]
            if isinstance(row, Mapping)
            else [_plain_text(cell) for cell in row]
        )
    return b"".join(_line_of(cells, delimiter, quote) for cells in lines)


def _text(name: str, column: Column, cell: Any) -> str:
    """A cell as it is written for its column. UserMistake for a fraction where only whole numbers are texts."""
    kind = column.entry
    if isinstance(cell, bool) and kind.decoded and kind.is_float(column):
        return str(int(cell))
    if isinstance(cell, float) and kind.decoded and kind.is_text(column) and cell == cell:
        found = whole(cell)
        if found is None:
            raise UserMistake(f"csv: {name}: expected text or a whole number, got {cell!r}")
        return str(found)
    if isinstance(cell, float) and cell == cell and column.parse == DECIMAL_COMMA:
        return str(cell).replace(".", ",")
    return _plain_text(cell)


def _plain_text(cell: Any) -> str:
    if cell is None or cell != cell:
        return ""
    return ("true" if cell else "false") if isinstance(cell, bool) else str(cell)


def _line_of(cells: list[str], delimiter: str, quote: str) -> bytes:
    quoted = [
        quote + cell.replace(quote, quote * 2) + quote
        if any(letter in cell for letter in (delimiter, quote, "\r", "\n")) or cell.startswith(("\0", "\ufeff"))
        else cell
        for cell in cells
    ]
    return (delimiter.join(quoted) or quote * 2).encode() + b"\n"


def parse(record: bytes, delimiter: str = ",", header: bool = False, quote: str = '"') -> Parsed:
    """The record's values, slowly."""
    parsed = Parsed(broken=registry_frame(record), written=True)
    if parsed.broken is not None:
        return parsed
    reader = _Reader(record, delimiter.encode(), quote.encode())
    try:
        names = reader.line() if header else None
        parsed.many = True
        while reader.at < len(record):
            cells = reader.line()
            if names is None:
                parsed.rows.append(cells)
            elif len(cells) == len(names):
                parsed.rows.append(Pairs(zip(names, cells, strict=True)))
            else:
                parsed.rows.append(Unusable(f"expected {len(names)} cells, got {len(cells)}"))
    except BrokenRecord as broken:
        parsed.broken = str(broken)
    return parsed


class _Reader:
    """Lines of a record one after the other; `at` is where the next one begins."""

    def __init__(self, record: bytes, delimiter: bytes, quote: bytes) -> None:
        self._record, self._delimiter, self._quote = record, delimiter, quote
        self.at = 3 if record.startswith(b"\xef\xbb\xbf") else 0
        self._pass_breaks()

    def line(self) -> list[Any]:
        cells = [self._cell()]
        while self._next() == self._delimiter:
            self.at += 1
            cells.append(self._cell())
        self._pass_breaks()
        return cells

    def _next(self) -> bytes:
        return self._record[self.at : self.at + 1]

    def _pass_breaks(self) -> None:
        while self._next() and self._next() in _BREAKS:
            self.at += 1

    def _cell(self) -> Any:
        if self._next() != self._quote:
            return _decoded(self._unquoted())
        start, self.at, letters = self.at, self.at + 1, b""
        while True:
            found = self._record.find(self._quote, self.at)
            if found < 0:
                raise BrokenRecord(f"the quote at byte {start} is never closed")
            letters += self._record[self.at : found]
            self.at = found + 1
            if self._next() != self._quote:
                break
            letters += self._quote
            self.at += 1
        return Unusable("text behind a closing quote") if self._unquoted() else _decoded(letters)

    def _unquoted(self) -> bytes:
        start = self.at
        while (letter := self._next()) and letter not in _BREAKS and letter != self._delimiter:
            self.at += 1
        return self._record[start : self.at]


def _decoded(raw: bytes) -> Any:
    try:
        return raw.decode() or None
    except UnicodeDecodeError:
        return Unusable("text that is not UTF-8")
