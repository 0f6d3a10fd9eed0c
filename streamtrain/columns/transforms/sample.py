"""A share of keys, always the same."""

from __future__ import annotations

from typing import Any

from streamtrain.columns.kinds.category import hash_seed
from streamtrain.columns.transforms.transform import NUMBER, TEXT, Transform, Use
from streamtrain.compute.options import ColumnName, Number

HELP = "1 for a share of the keys, by their hash and so always the same, else 0: for where, or a weight"
OPTIONS = {"sample": ColumnName(help="the column of keys"), "share": Number(above=0, most=1, help="share that gets 1")}
EXAMPLES: list[dict[str, Any]] = [
    {"columns": {"x": {"role": "input", "kind": "category"}}, "table": {"sample": "x", "share": share, "missing": 0.5},
     "cells": [["a"], ["b"], ["c"], [None], [17], ["\u00e9"], ["d"], ["e"]]}
    for share in (0.3, 0.5, 1)
] + [
    {"columns": {"x": {"role": "input"}}, "table": {"sample": "x", "share": 0.5, "missing": 3},
     "cells": [[i] for i in range(8)] + [[0.5], [None]]},
]  # fmt: skip


class Sample(Transform):
    takes = frozenset({TEXT, NUMBER})

    def native_options(self, use: Use) -> dict[str, Any]:
        return {"seed": hash_seed(use.name), "below": round(use.given["share"] * 2**32)}

TRANSFORM = Sample()
