"""Several categories as one: a bucket for what they are together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamtrain import _native
from streamtrain.columns.kinds.category import hash_seed
from streamtrain.columns.kinds.cell import whole
from streamtrain.columns.transforms.transform import (
    HASH,
    NUMBER,
    TEXT,
    Cell,
    Result,
    Source,
    Transform,
    Use,
)
from streamtrain.compute.options import ColumnName, Several

HELP = "categories together as one: the hash of their hashes; of numbers whole ones, as their text"
OPTIONS = {"cross": Several(of=ColumnName(help=""), least=2, most=16, help="the columns to combine, in order")}
_CARRIER = {"kind": "category", "buckets": 9, "missing": ""}
EXAMPLES: list[dict[str, Any]] = [
    {"columns": {"a": _CARRIER, "b": {"kind": "category", "buckets": 7, "hash_bits": 64}},
     "table": {"cross": ["a", "b"], "buckets": 1000, "embed": 3}, "cells": [["AA", "x"], ["x", "AA"], [None, "y"]]},
    {"columns": {"a": {"role": "input", "kind": "category"}, "b": {"role": "input"}},
     "table": {"cross": ["b", "a"], "buckets": 97, "hash_bits": 64, "missing": "none"},
     "cells": [["AA", 7], [12, 7], ["AA", 7.5], [None, 1], ["AA", None], ["AA", -3]]},
]  # fmt: skip


class Cross(Transform):
    takes = frozenset({TEXT, HASH, NUMBER})

    def results(self, use: Use) -> list[Result]:
        return [Result(HASH)]

    def native_options(self, use: Use) -> dict[str, Any]:
        return {
            "seed": hash_seed(use.name),
            "bits": use.hash_bits,
            "source_seeds": [hash_seed(source.name) for source in use.sources],
            "source_bits": [source.hash_bits for source in use.sources],
        }

    def meaning(self, use: Use, cells: Sequence[Cell], given: Sequence[bool]) -> list[Cell]:
        parts = [_part(source, cell) for source, cell in zip(use.sources, cells, strict=True)]
        together = [part.to_bytes(8, "little") for part in parts if part is not None]
        if len(together) < len(parts):
            return [None]
        return [_native.murmur3(b"".join(together), hash_seed(use.name), use.hash_bits)]


def _part(source: Source, cell: Cell) -> int | None:
    """The hash of one."""
    if cell is None or source.holds == HASH:
        return cell  # type: ignore[return-value]
    text = cell if isinstance(cell, str) else whole(cell)
    return None if text is None else _native.murmur3(str(text).encode(), hash_seed(source.name), source.hash_bits)


TRANSFORM = Cross()
