"""Record formats: each file that has a HELP is one; its native half is native/decode/formats/<stem>.h.

A format module has HELP, encode(schema, columns) -> bytes, encode_rows(schema, rows) -> bytes, parse(record) -> Parsed
(slow, the meaning) and EXAMPLES.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "records.format")
format_names: Callable[[], list[str]] = REGISTRY.names
record_format: Callable[[str], ModuleType] = REGISTRY.get
