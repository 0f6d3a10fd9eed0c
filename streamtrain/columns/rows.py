"""The rows of a record as they were given, by the decoder's own rule of what a row is: to show them, or to send again.

Slow; no process of training or prediction uses it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from streamtrain import _native
from streamtrain.columns.formats import Format, is_lines, parse
from streamtrain.columns.formats.parsed import MISSING_ENTRY, Pairs, Unusable
from streamtrain.columns.forms import Names, shows_columns
from streamtrain.columns.kinds.cell import Symbol
from streamtrain.columns.line_rows import LineRows
from streamtrain.columns.paths import nested
from streamtrain.columns.plan import native_plan
from streamtrain.columns.schema import Schema

_SCRATCH_ROWS = 1024


@dataclass(frozen=True)
class RecordRows:
    """Row k of the record is `rows[k]`: a dict, a list, or what is no row. `broken`: why no more can be read."""

    rows: list[Any]
    broken: str | None = None


@dataclass
class Fates:
    """The rows of a record that do not train: where a dead one cannot be used, which ones are left out."""

    dead: dict[int, str] = field(default_factory=dict)
    filtered: set[int] = field(default_factory=set)


def row_counter(schema: Schema, format_name: Format) -> _native.BatchFiller:
    """The decoder, for its count()."""
    layout = _native.SlotLayout.make(_SCRATCH_ROWS, 1, schema.block_specs())
    return _native.BatchFiller(format_name, native_plan(schema, layout))


def row_fates(schema: Schema, format_name: Format, record: bytes, around: _native.RecordAround) -> Fates:
    """Returns what happens to a record's rows in such a message, from the decoder.

    The rest of a record that cannot be decoded is one dead row. Adjacent dead rows with the same reason have the first
    one's path.
    """
    tally = row_counter(schema, format_name).count([record], around=[around])
    fates = Fates()
    for row_from, row_to, path, *_ in tally.dead_rows:
        fates.dead |= dict.fromkeys(range(row_from, row_to), path)
    for row_from, row_to, _ in tally.filtered_rows:
        fates.filtered |= set(range(row_from, row_to))
    return fates


class RowReader:
    """Reads the rows of one job's records. One thread at a time."""

    def __init__(self, schema: Schema, format_name: Format) -> None:
        self._schema, self._format = schema, format_name
        self._lines = LineRows(format_name, schema) if is_lines(format_name) else None

    def rows(self, record: bytes, headers: Iterable[tuple[str, bytes | None]] = ()) -> RecordRows:
        """Returns what record_rows() does."""
        if self._lines is not None:
            return RecordRows(*self._lines.read(record))
        parsed = parse(self._format, record, headers)
        if parsed.columns is not None:
            return _turned(self._schema, parsed.columns, parsed.broken)
        first = parsed.rows[0] if parsed.maps_of_arrays and parsed.rows and not parsed.many else None
        if isinstance(first, Pairs) and holds_columns(self._schema, first):
            return _turned(self._schema, first, parsed.broken)
        return RecordRows([_plain(row) for row in parsed.rows], parsed.broken)


def record_rows(
    schema: Schema, format_name: Format, record: bytes, headers: Iterable[tuple[str, bytes | None]] = ()
) -> RecordRows:
    """Returns the rows of a record, in a message with these headers. A value that no column can take is an Unusable in
    its row.

    A map is one row, unless its first key that the job knows is a column's name and holds an array: then it is columns.
    """
    return RowReader(schema, format_name).rows(record, headers)


def holds_columns(schema: Schema, row: Pairs) -> bool:
    """Returns True if a record's map holds columns. Columns whose cells are lists do not decide it."""
    names = Names(schema.record_names, schema.heads, schema.lists)
    texts = (item for item in row if isinstance(item[0], str))
    return bool(shows_columns(texts, names, lambda value: type(value) is list))


def _turned(schema: Schema, columns: Pairs, broken: str | None) -> RecordRows:
    """Columns as rows, nested by their paths; one that the job ignores is in them where it has a cell for each row."""
    used = schema.record_names
    last = {str(name): values for name, values in columns}  # of a column given twice
    lists = {name: values for name, values in last.items() if values is not None}
    lengths = {len(values) if type(values) is list else -1 for name, values in lists.items() if name in used}
    if len(lengths) > 1 or -1 in lengths:
        return RecordRows([], broken or "columns of different lengths")
    count = next(iter(lengths), 0)
    whole = {name: values for name, values in lists.items() if type(values) is list and len(values) == count}
    rows = ({name: _plain(values[row]) for name, values in whole.items()} for row in range(count))
    return RecordRows([nested(row, schema.paths) for row in rows], broken)


def _plain(value: Any) -> Any:
    """A parsed value as plain Python: a map as a dict, the last of doubled keys."""
    if isinstance(value, Pairs):
        return {name if isinstance(name, str) else str(name): _plain(inner) for name, inner in value}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, Symbol) and value.name:
        return value.name
    return None if value is MISSING_ENTRY else value


def unusable_path(row: Any, path: str = "$") -> str | None:
    """Returns the path of the first value in a row that no column can take, and why; None if there is none.

    The row is one of `record_rows`.
    """
    if isinstance(row, Unusable):
        return f"{path} ({row.reason})"
    inner = row.items() if isinstance(row, dict) else enumerate(row) if isinstance(row, list) else ()
    for name, value in inner:
        found = unusable_path(value, f"{path}.{name}" if isinstance(row, dict) else f"{path}[{name}]")
        if found is not None:
            return found
    return None
