"""Record formats: each file is one, named by its stem; its native half is native/decode/formats/<stem>.h.

A format module has HELP, encode(schema, columns) -> bytes, encode_rows(schema, rows) -> bytes, parse(record) -> Parsed
(slow, the meaning) and EXAMPLES.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from functools import cache
from types import ModuleType

from streamtrain.errors import UserMistake


@cache
def format_names() -> list[str]:
    """The formats there are, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


@cache
def record_format(name: str) -> ModuleType:
    """The format's module. Raises UserMistake naming the ones there are."""
    if name not in format_names():
        near = difflib.get_close_matches(name, format_names(), 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UserMistake(f"records.format: expected one of {', '.join(format_names())}, got {name!r}{hint}")
    return importlib.import_module(f"streamtrain.columns.formats.{name}")
