"""Records of every format by their slow oracles, each a module of this folder with the format's name.

An oracle has EXAMPLES, encode(schema, columns), encode_rows(schema, rows) and parse(record) -> Parsed. All three take
the format's options as keywords; EXAMPLE_OPTIONS are those of the examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from streamtrain.columns.formats import Format, options
from streamtrain.compute.options import read
from streamtrain.topics.named_schemas import HEADER
from tests.oracles.parsed import Parsed


def oracle(name: str) -> ModuleType:
    return import_module(f"tests.oracles.{name}")


def parse(format: Format, record: bytes, headers: Iterable[tuple[str, bytes | None]] = ()) -> Parsed:
    """A record's values. Where a frame names its schema its message's headers may be the frame."""
    module, given = _of(format)
    if given.get("frame") == "registry":
        given = {**given, "header": named_in(headers)}
    parsed: Parsed = module.parse(record, **given)
    return parsed


def encode_rows(format: Format, schema: Any, rows: Sequence[Any]) -> bytes:
    """Rows of a Schema as they are, one record."""
    module, given = _of(format)
    record: bytes = module.encode_rows(schema, rows, **given)
    return record


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
