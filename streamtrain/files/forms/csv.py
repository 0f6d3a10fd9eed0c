"""CSV files: names in the first line, a row in each other. All cells are text; an empty one is missing.

Cells are separated by what the first lines say: a comma, a tab, a semicolon or a bar.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from streamtrain import _native
from streamtrain.columns.forms import CsvText, FileRows
from streamtrain.columns.rejected import Unreadable
from streamtrain.errors import UserMistake
from streamtrain.files.blocks import Size, in_blocks
from streamtrain.files.column_selection import ColumnSelection, Row
from streamtrain.files.source import CONVERT, Source, is_too_long, report, too_long

HELP = "CSV with names in the first line"
SUFFIXES = (".csv", ".tsv")
TEXT = True
_DELIMITERS, _QUOTE = ",\t;|", '"'
_SNIFFED_LINES = 50
_DECLARED = "sep="  # of Excel: a first line that names the delimiter
_BLOCK_BYTES = 4 << 20
_NO_UTF8 = re.compile("[\udc80-\udcff]")  # as Python decodes it
# times with a zone that native code does not read: it knows ISO 8601 alone
_ZONES = re.compile(rb"\d(?: (?:Z|[+-]\d\d)| ?(?:UTC|GMT))", re.IGNORECASE)


class _Dialect(NamedTuple):
    """The way a file's lines write cells. `skip_space`: spaces before a cell do not belong to it."""

    delimiter: str = _DELIMITERS[0]
    skip_space: bool = False

    def reader(self, text: str) -> Any:
        """A csv.reader of lines."""
        lines = io.StringIO(text, newline="")
        return csv.reader(lines, delimiter=self.delimiter, skipinitialspace=self.skip_space)

    def lines(self, text: bytes, most: int, at_end: bool) -> tuple[int, int]:
        """Returns how many whole lines the text begins with, up to `most`, and their bytes."""
        return _native.csv_lines(text, most, at_end, self.delimiter, _QUOTE, self.skip_space)


def rows(source: Source) -> Iterator[tuple[int, Row | Unreadable]]:
    """Texts by name; None for an empty one."""
    for block, names in _texts(source, Size(4_096)):
        yield from _rows(block, names, source)


def blocks(source: Source, selection: ColumnSelection, size: Size) -> Iterator[FileRows]:
    """Lines as they are, which native code reads."""
    if selection.by_rows:
        yield from in_blocks(source.name, rows(source), selection, size)
        return
    for block, names in _texts(source, size):
        if not block.first:
            selection.check(names, source.name)
        assert isinstance(block.rows, CsvText)
        if selection.times.intersection(names) and _ZONES.search(block.rows.text):
            lines, read = zip(*_rows(block, names, source), strict=True)
            found = [row if isinstance(row, Unreadable) else selection.row(row) for row in read]
            yield FileRows(found, source.name, block.first, lines)
        else:
            yield block._replace(rows=block.rows._replace(order=tuple(selection.order(names))))


def count(source: Source) -> int:
    return sum(block.row_count for block, _ in _texts(source, Size(1 << 20)))


def _rows(block: FileRows, names: list[str], source: Source) -> Iterator[tuple[int, Row | Unreadable]]:
    """Each row with the number of its line."""
    assert isinstance(block.rows, CsvText)
    text, line = block.rows.text.decode(errors="surrogateescape"), block.lines[0]
    is_utf8 = _NO_UTF8.search(text) is None
    reader = _Dialect(block.rows.delimiter, block.rows.skip_space).reader(text)
    for cells in reader:
        if cells and len(cells) != len(names):
            raise UserMistake(f"{source.name}:{line}: expected {len(names)} cells, got {len(cells)}")
        if not is_utf8 and _NO_UTF8.search("".join(cells)):
            yield line, Unreadable(f"expected UTF-8 text, got other bytes; {CONVERT}")
        elif cells:
            yield line, {name: cell if cell != "" else None for name, cell in zip(names, cells, strict=True)}
        line = block.lines[0] + reader.line_num


def _delimiter(head: str) -> str:
    """Returns the delimiter that gives each of the first lines the same number of cells, and the most of them."""
    best, cells = _DELIMITERS[0], 1
    for each in _DELIMITERS:
        for skip_space in (False, True):  # before a quote they would make it a part of the cell
            counts = {len(row) for row in islice(_Dialect(each, skip_space).reader(head), _SNIFFED_LINES) if row}
            if len(counts) == 1 and (count := counts.pop()) > cells:
                best, cells = each, count
    return best


def _has_spaces(delimiter: str, head: str) -> bool:
    """Returns whether a space stands behind each delimiter of the first rows, be it in the line of names or not."""
    rows = [row for row in islice(_Dialect(delimiter).reader(head), 1, _SNIFFED_LINES) if len(row) > 1]
    return bool(rows) and all(cell.startswith(" ") for row in rows for cell in row[1:])


def _declared(source: Source, buffer: bytes) -> tuple[_Dialect, bytes, int]:
    """Returns the dialect, the text behind the declaration of it, and the number of the line that begins there."""
    head = buffer[:_BLOCK_BYTES]
    lines = head.decode(errors="replace")
    if len(head) == len(buffer) and "\n" in lines:
        lines = lines[: lines.rindex("\n") + 1]
    is_declared = lines[: len(_DECLARED)].lower() == _DECLARED and len(lines) > len(_DECLARED)
    found = lines[len(_DECLARED)] if is_declared else _delimiter(lines)
    if is_declared:
        lines, buffer = lines.partition("\n")[2], buffer.partition(b"\n")[2]
    elif found != _DELIMITERS[0]:
        report(f"{source.name}: cells are separated by {found!r}")
    skip_space = found != " " and _has_spaces(found, lines)
    if skip_space:
        report(f"{source.name}: a space stands behind each {found!r}; spaces before a cell are not read")
    return _Dialect(found, skip_space), buffer, 1 + is_declared


def _texts(source: Source, size: Size) -> Iterator[tuple[FileRows, list[str]]]:
    """Whole lines, at most so many, and the names of their cells."""
    names: list[str] = []
    buffer, at_end, first, line = source.begin() and source.read(), False, 0, 1
    dialect, buffer, line = _declared(source, buffer)
    while buffer or not at_end:
        most = size.rows if names else 1
        count, end = dialect.lines(buffer, most, at_end)
        enough = count == most or (count >= size.multiple and len(buffer) >= _BLOCK_BYTES)
        if not at_end and not enough and not (source.is_live and count >= size.multiple):
            if is_too_long(len(buffer)):
                raise too_long(f"{source.name}:{line}")
            piece = source.read()
            at_end, buffer = not piece, buffer + piece
            continue
        if not count:
            return
        if names and not at_end and count < most and count % size.multiple:
            count, end = dialect.lines(buffer, count - count % size.multiple, False)
        text, buffer = buffer[:end], buffer[end:]
        if names:
            yield FileRows(CsvText(text, count, (), dialect.delimiter, _QUOTE, dialect.skip_space), source.name, first,
                           (line,)), names  # fmt: skip
            first += count
            size.passed(count)
            if not size.rows:
                return
        else:
            names = next(dialect.reader(source.text(text, line)), [""])
            if len(set(names)) != len(names):
                raise UserMistake(f"{source.name}:{line}: expected column names that differ, got {', '.join(names)}")
        line += text.count(b"\n")
