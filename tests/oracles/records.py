"""Records of every format by their slow oracles, each a module of this folder with the format's name.

An oracle has EXAMPLES, parse(record) -> Parsed, and of encode(schema, columns) and encode_rows(schema, rows) what its
records hold, or both. All take the format's options as keywords; EXAMPLE_OPTIONS are those of the examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from streamtrain.columns.formats import Format, options
from streamtrain.columns.paths import cell_at, nested
from streamtrain.compute.options import read
from streamtrain.topics.named_schemas import HEADER
from tests.oracles.parsed import Parsed
from tests.oracles.plain_cells import plain_columns


def oracle(name: str) -> ModuleType:
    return import_module(f"tests.oracles.{name}")


def parse(format: Format, record: bytes, headers: Iterable[tuple[str, bytes | None]] = ()) -> Parsed:
    """A record's values. Where a frame names its schema its message's headers may be the frame."""
    module, given = _of(format)
    if given.get("frame") == "registry":
        given = {**given, "header": named_in(headers)}
    parsed: Parsed = module.parse(record, **given)
    return parsed


def encode(format: Format, schema: Any, columns: Mapping[str, Any]) -> bytes:
    """Returns one record with all rows of `columns`: arrays or lists of one length, by name; None is missing."""
    module, given = _of(format)
    if hasattr(module, "encode"):
        return bytes(module.encode(schema, columns, **given))
    cells = plain_columns(columns)
    count = len(next(iter(cells.values()), []))
    rows = [nested({name: cells[name][i] for name in cells}, schema.paths) for i in range(count)]
    return bytes(module.encode_rows(schema, rows, **given))


def encode_rows(format: Format, schema: Any, rows: Sequence[Any]) -> bytes:
    """Rows of a Schema as they are, one record."""
    module, given = _of(format)
    if hasattr(module, "encode_rows"):
        return bytes(module.encode_rows(schema, rows, **given))
    columns = {name: [cell_at(row, schema.paths.get(name, (name,))) for row in rows] for name, _ in schema.columns}
    return bytes(module.encode(schema, columns, **given))


def encode_records(format: Format, schema: Any, rows: Sequence[Any]) -> list[bytes]:
    """The same in as few records as may be: an oracle's holds_many(**options) says whether one may hold many rows."""
    module, given = _of(format)
    holds_many: Callable[..., bool] = getattr(module, "holds_many", lambda **_: True)
    return [encode_rows(format, schema, part) for part in ([rows] if holds_many(**given) else ([row] for row in rows))]


def _of(format: Format) -> tuple[ModuleType, dict[str, Any]]:
    if isinstance(format, str):
        return oracle(format), read({}, options(format))
    return oracle(format["name"]), {name: value for name, value in format.items() if name != "name"}


def named_in(headers: Iterable[tuple[str, bytes | None]]) -> bytes | None:
    """Returns the schema that a message's headers name for its value, of two the last. None if that is left to the
    value."""
    return {name: value for name, value in headers if name == HEADER}.get(HEADER) or None
