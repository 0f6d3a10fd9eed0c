"""log(1 + x), of x above -1."""

from __future__ import annotations

from streamtrain.columns.transforms.transform import Transform
from streamtrain.compute.options import ColumnName

HELP = "log(1 + x); missing from -1 down"
OPTIONS = {"log1p": ColumnName(help="the column to read")}
EXAMPLES = [
    {"columns": {"x": {}}, "table": {"log1p": "x", "missing": -1},
     "cells": [[0], [1.5], [-0.5], [-1], [-3], [1e30], [2.5e-9], [0.1]]},
    {"columns": {"x": {"role": "input"}}, "table": {"log1p": "x", "standardize": True, "missing": "skip"},
     "cells": [[3], [None], [7], [1e300], [12.25], [-2]]},
]  # fmt: skip
TRANSFORM = Transform()
