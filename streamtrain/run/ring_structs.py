"""The structs that ingest writes to the arena's ring of dead letters (native/ring/dead_letters.h)."""

from __future__ import annotations

import struct
from collections import namedtuple
from typing import Any

import numpy as np

from streamtrain import _native

_CODES = {np.dtype(code): code for code in "qQiI"}


class RingStruct:
    """One of them, read by the names of its fields."""

    def __init__(self, name: str, layout: Any) -> None:
        fields = np.dtype(layout).fields or {}
        self._struct = struct.Struct("<" + "".join(_CODES[dtype] for dtype, *_ in fields.values()))
        self._fields: Any = namedtuple(name, fields)  # type: ignore[misc]
        self.size = self._struct.size

    def read(self, raw: bytes, at: int) -> Any:
        """The one that begins at byte `at`."""
        return self._fields._make(self._struct.unpack_from(raw, at))


HEAD = RingStruct("Head", _native.DEAD_LETTER_HEAD)
ROWS = RingStruct("Rows", _native.DEAD_LETTER_ROWS)
HEADER_SIZES = RingStruct("HeaderSizes", _native.DEAD_LETTER_HEADER_SIZES)
