"""x ** exponent."""

from __future__ import annotations

from streamtrain.columns.transforms.transform import Transform
from streamtrain.compute.options import ColumnName, Number

HELP = "x ** exponent; missing where that is no real number"
OPTIONS = {
    "power": ColumnName(help="the column to read"),
    "exponent": Number(least=-1000, most=1000, help="2, 0.5, -1 and so on"),
}
EXAMPLES = [
    {"columns": {"x": {}}, "table": {"power": "x", "exponent": exponent, "missing": -9},
     "cells": [[2], [0], [1.5], [-3], [1e10], [0.001]]}
    for exponent in (0.5, 2, 3, -1, -2, 0, 0.3, -1.7)
]  # fmt: skip
TRANSFORM = Transform()
