"""The number of the range that a number lies in."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from streamtrain.columns.transforms.transform import NUMBER, Result, Transform, Use
from streamtrain.compute.options import ColumnName, Number, Several

HELP = "how many of the edges are at most x: a category with a bucket for each range"
OPTIONS = {
    "bins": ColumnName(help="the column to read"),
    "edges": Several(of=Number(least=-1e300, most=1e300, help=""), least=1, most=65_535, help="in ascending order"),
}
EXAMPLES: list[dict[str, Any]] = [
    {"columns": {"x": {}}, "table": {"bins": "x", "edges": [0, 15, 60.5], "embed": 2},
     "cells": [[-1], [0], [14.9], [15], [60.5], [1e30]]},
    {"columns": {"x": {"role": "input"}}, "table": {"bins": "x", "edges": [1], "kind": "number", "missing": 7},
     "cells": [[1], [None], [0.5]]},
    {"columns": {"x": {"role": "input"}}, "table": {"bins": "x", "edges": [1, 2, 3, 4, 5], "missing": 5},
     "cells": [[1], [None], [3.5], [4.5], [9]]},
]  # fmt: skip


class Bins(Transform):
    def problems(self, use: Use) -> Iterator[str]:
        yield from super().problems(use)
        edges = use.given["edges"]
        if any(one >= other for one, other in pairwise(edges)):
            yield f"edges: expected numbers that ascend, got {list(edges)}"

    def results(self, use: Use) -> list[Result]:
        return [Result(NUMBER, buckets=len(use.given["edges"]) + 1)]

    def native_options(self, use: Use) -> dict[str, Any]:
        return {"edges": list(use.given["edges"])}

TRANSFORM = Bins()
