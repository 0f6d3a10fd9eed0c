"""A column's cells once more, under a name and with settings of their own."""

from __future__ import annotations

from streamtrain.columns.transforms.transform import (
    HASH,
    NUMBER,
    TEXT,
    TIME,
    Result,
    Transform,
    Use,
)
from streamtrain.compute.options import ColumnName

HELP = "a column's cells once more, under another name and with settings of their own"
OPTIONS = {"rename": ColumnName(help="the column to read")}
EXAMPLES = [
    {"columns": {"x": {}}, "table": {"rename": "x", "standardize": True}, "cells": [[1], [0.1]]},
    {"columns": {"x": {"role": "input"}}, "table": {"rename": "x", "kind": "category", "buckets": 50, "missing": ""},
     "cells": [[1], [None], [2**40]]},
    {"columns": {"x": {"kind": "category", "buckets": 9, "missing": "none"}},
     "table": {"rename": "x", "buckets": 70, "hash_bits": 64, "missing": ""}, "cells": [["a"], [None], ["long " * 9]]},
]  # fmt: skip


class Rename(Transform):
    takes = frozenset({NUMBER, TEXT, TIME, HASH})

    def results(self, use: Use) -> list[Result]:
        return [Result(use.sources[0].holds, buckets=use.sources[0].buckets)]

TRANSFORM = Rename()
