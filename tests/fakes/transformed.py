"""The examples of every transform: schemas of one, and all of them together as the columns and transforms of a job."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from streamtrain.columns import transforms
from streamtrain.columns.schema import Schema
from streamtrain.compute.options import ColumnName

LATE: dict[str, Any] = {"role": "label"}
Example = dict[str, Any]
Rows = list[dict[str, Any]]


def examples() -> list[tuple[str, int, Example]]:
    """(transform, number, example)."""
    named = [(name, transforms.REGISTRY.get(name).EXAMPLES) for name in transforms.names()]
    return [(name, number, example) for name, found in named for number, example in enumerate(found)]


def ids() -> list[str]:
    return [f"{name}-{number}" for name, number, _ in examples()]


def schema_of(example: Example) -> Schema:
    columns = {"plain": {}, **example["columns"], "late": LATE}
    return Schema.from_columns(columns, "binary_cross_entropy", {"made": example["table"]})


def rows_of(example: Example, times: int = 1) -> Rows:
    """The rows of its cells, again and again."""
    names = list(example["columns"])
    cells = example["cells"] * times
    return [{"plain": i / 4, **dict(zip(names, each, strict=True)), "late": i % 2} for i, each in enumerate(cells)]


def together(seed: int, count: int) -> tuple[dict[str, Any], dict[str, Any], Rows]:
    """Columns, transforms and rows of a job that has every example: each under names of its own, cells at random.

    What stands around records, and when a row happened, is one job's once: such examples are left out.
    """
    columns: dict[str, Any] = {"plain": {"standardize": True}}
    tables: dict[str, Any] = {}
    cells: dict[str, list[Any]] = {}
    random = np.random.default_rng(seed)
    for name, number, example in examples():
        if any("from" in each or each.get("role") == "event_time" for each in example["columns"].values()):
            continue
        renamed = {each: f"{name}_{number}_{each}" for each in example["columns"]}
        columns |= {renamed[each]: column for each, column in example["columns"].items()}
        tables[f"made_{name}_{number}"] = _renamed(name, example["table"], renamed)
        usual = [cell for cell in example["cells"] if not any(map(_is_large, cell))] or example["cells"]
        picked = random.integers(0, len(usual), count) * (random.random(count) < 0.2)  # the first mostly
        for at, each in enumerate(example["columns"]):
            cells[renamed[each]] = [usual[i][at] for i in picked]
    plain = random.normal(size=count)
    rows = [
        {"plain": float(plain[i]), **{name: column[i] for name, column in cells.items()}, "late": int(plain[i] > 0)}
        for i in range(count)
    ]
    return {**columns, "late": LATE}, tables, rows


def _is_large(cell: Any) -> bool:
    """Returns True for a cell that lets training diverge."""
    return isinstance(cell, int | float) and abs(cell) > 100


def _renamed(transform: str, table: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    options = transforms.options(transform)

    def of(setting: str, value: Any) -> Any:
        if isinstance(value, list):
            return [of(setting, each) for each in value]
        option = options.get(setting)
        is_column = isinstance(getattr(option, "of", option), ColumnName)
        if is_column and isinstance(value, str):
            return names[value]
        if setting == "expr":
            return re.sub(r"'[^']*'|\b[a-z]\b", lambda found: names.get(found[0], found[0]), value)
        return value

    return {setting: of(setting, value) for setting, value in table.items()}
