"""Several categories as one: a bucket for what they are together."""

from __future__ import annotations

from typing import Any

from streamtrain.columns.kinds.category import hash_seed
from streamtrain.columns.transforms.transform import (
    HASH,
    NUMBER,
    TEXT,
    Result,
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

TRANSFORM = Cross()
