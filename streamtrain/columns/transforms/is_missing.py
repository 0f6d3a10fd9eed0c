"""The transform that is 1 if the record gives no cell, otherwise 0."""

from __future__ import annotations

from streamtrain.columns.transforms.transform import HASH, NUMBER, TEXT, TIME, Transform
from streamtrain.compute.options import ColumnName

HELP = "1 where the record gives no cell, whatever stands in for it, else 0"
OPTIONS = {"is_missing": ColumnName(help="the column to read")}
EXAMPLES = [
    {"columns": {"x": {"missing": 5}}, "table": {"is_missing": "x"}, "cells": [[5], [None], [0]]},
    {"columns": {"x": {"kind": "category", "buckets": 4, "missing": ""}}, "table": {"is_missing": "x"},
     "cells": [["a"], [""], [None]]},
    {"columns": {"x": {"kind": "time"}}, "table": {"is_missing": "x"}, "cells": [[1], [None]]},
]  # fmt: skip


class IsMissing(Transform):
    takes = frozenset({NUMBER, TEXT, TIME, HASH})

TRANSFORM = IsMissing()
