"""The properties librdkafka knows, asked of the library in the confluent-kafka wheel: their names, sides, ranges, and
whether a value is one. Reads no more than the library's own tables; makes no client.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_ERROR_BYTES = 512
_CONF_INVALID = -1


@dataclass(frozen=True)
class Property:
    """`side`: "*" both, "C" consumer, "P" producer. `takes`: a range or a type, in words."""

    name: str
    side: str
    takes: str
    settable: bool  # False: a callback or another pointer, which no file can hold


@cache
def _library() -> ctypes.CDLL | None:
    """The wheel's librdkafka; None where confluent-kafka was built otherwise, and nothing is checked."""
    spec = find_spec("confluent_kafka")
    if spec is None or spec.origin is None:
        return None
    found = sorted((Path(spec.origin).parent.parent / "confluent_kafka.libs").glob("librdkafka*.so*"))
    return ctypes.CDLL(str(found[0])) if found else None


def _list_properties(library: ctypes.CDLL) -> str:
    """Returns what `rd_kafka_conf_properties_show` prints: a Markdown table a side."""
    libc = ctypes.CDLL(None)
    libc.open_memstream.restype = ctypes.c_void_p
    libc.fclose.argtypes = [ctypes.c_void_p]
    libc.free.argtypes = [ctypes.c_void_p]
    library.rd_kafka_conf_properties_show.argtypes = [ctypes.c_void_p]
    text, size = ctypes.c_void_p(), ctypes.c_size_t()
    stream = libc.open_memstream(ctypes.byref(text), ctypes.byref(size))
    library.rd_kafka_conf_properties_show(stream)
    libc.fclose(stream)
    try:
        return ctypes.string_at(text.value or 0, size.value).decode()
    finally:
        libc.free(text)


@cache
def properties() -> dict[str, Property]:
    """Every property by name; empty where the library was not found."""
    library = _library()
    found: dict[str, Property] = {}
    for line in _list_properties(library).splitlines() if library is not None else ():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) < 6 or cells[1] not in ("*", "C", "P"):
            continue
        kind = cells[-1].rpartition("*Type: ")[2].rstrip("*")
        takes = f"{kind} {cells[2]}".strip().replace(" .. ", " to ")
        found.setdefault(
            cells[0], Property(cells[0], cells[1], takes, not kind.startswith(("pointer", "see dedicated")))
        )
    return found


def accepts(name: str, value: str) -> bool:
    """Returns whether librdkafka takes this value of a property it knows."""
    library = _library()
    if library is None:
        return True
    library.rd_kafka_conf_new.restype = ctypes.c_void_p
    library.rd_kafka_conf_destroy.argtypes = [ctypes.c_void_p]
    library.rd_kafka_conf_set.argtypes = [ctypes.c_void_p, *[ctypes.c_char_p] * 3, ctypes.c_size_t]
    conf = library.rd_kafka_conf_new()
    try:
        reason = ctypes.create_string_buffer(_ERROR_BYTES)
        result = library.rd_kafka_conf_set(conf, name.encode(), value.encode(), reason, _ERROR_BYTES)
        return int(result) != _CONF_INVALID
    finally:
        library.rd_kafka_conf_destroy(conf)
