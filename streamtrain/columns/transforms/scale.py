"""x * by + plus."""

from __future__ import annotations

from streamtrain.columns.transforms.transform import Transform
from streamtrain.compute.options import ColumnName, Number

HELP = "x * by + plus"
OPTIONS = {
    "scale": ColumnName(help="the column to read"),
    "by": Number(default=1.0, least=-1e300, most=1e300, help="the factor"),
    "plus": Number(default=0.0, least=-1e300, most=1e300, help="the number to add after that"),
}
EXAMPLES = [
    {"columns": {"x": {}}, "table": {"scale": "x", "by": 0.1, "plus": -3}, "cells": [[0], [1], [0.3], [-7.5], [1e30]]},
    {"columns": {"x": {"role": "input"}}, "table": {"scale": "x", "by": 1e200, "missing": 4},
     "cells": [[1e-200], [None], [1e200]]},
]  # fmt: skip
TRANSFORM = Transform()
