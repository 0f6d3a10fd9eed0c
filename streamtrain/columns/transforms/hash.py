"""A text, or a whole number's, hashed again under another name."""

from __future__ import annotations

from typing import Any

from streamtrain.columns.kinds.category import hash_seed
from streamtrain.columns.transforms.transform import HASH, NUMBER, TEXT, Result, Transform, Use
from streamtrain.compute.options import ColumnName

HELP = "a text, or a whole number as its text, hashed into buckets of the new column's own"
OPTIONS = {"hash": ColumnName(help="the column to read")}
EXAMPLES: list[dict[str, Any]] = [
    {"columns": {"x": {"role": "input"}}, "table": {"hash": "x", "buckets": 1000, "missing": ""},
     "cells": [[7], [-3], [2.5], [None], [2**40]]},
    {"columns": {"x": {"kind": "category", "buckets": 3}}, "table": {"hash": "x", "buckets": 5000, "hash_bits": 64},
     "cells": [["AA"], ["a longer one"], ["\u00e9"]]},
]  # fmt: skip


class Hash(Transform):
    takes = frozenset({TEXT, NUMBER})

    def results(self, use: Use) -> list[Result]:
        return [Result(HASH)]

    def native_options(self, use: Use) -> dict[str, Any]:
        return {"seed": hash_seed(use.name), "bits": use.hash_bits}

TRANSFORM = Hash()
