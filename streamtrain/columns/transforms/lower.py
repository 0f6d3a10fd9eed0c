"""A text in small letters."""

from __future__ import annotations

from typing import Any

from streamtrain.columns.characters import capitals
from streamtrain.columns.transforms.transform import TEXT, Result, Transform, Use
from streamtrain.compute.options import ColumnName

HELP = "a text in small letters, letter by letter (Unicode's simple mapping)"
OPTIONS = {"lower": ColumnName(help="the column to read")}
EXAMPLES: list[dict[str, Any]] = [
    {"columns": {"x": {"kind": "category", "buckets": 3, "missing": ""}},
     "table": {"lower": "x", "buckets": 5000},
     "cells": [["AbC"], ["Z\u00dcRICH \u0130 \u03a3\u03a3"], [None], ["\U0001f6eb A \U00010400"], ["X" * 300]]},
    {"columns": {"x": {"role": "input", "kind": "category"}},
     "table": {"lower": "x", "buckets": 5000, "missing": "none"}, "cells": [["\u0416"], [None], [12]]},
]  # fmt: skip


class Lower(Transform):
    takes = frozenset({TEXT})

    def results(self, use: Use) -> list[Result]:
        return [Result(TEXT)]

    def native_options(self, use: Use) -> dict[str, Any]:
        return {"pairs": list(capitals())}

TRANSFORM = Lower()
