"""The examples of every transform with state, together as the columns, transforms and rows of a job."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.columns.transforms.with_state import DEFAULT_BUCKETS
from streamtrain.compute import stateful
from streamtrain.compute.options import ColumnName
from streamtrain.compute.stateful_inputs import stateful_spec as read

Tables = dict[str, dict[str, Any]]
WORDS = np.array(["AA", "a longer one", "B6", "\u00e9", "none", "7"])
WORDED = {"kind": "category", "hash_bits": 64, "vocabulary": {"capacity": 4, "admit": 2, "evict": "5s"}, "embed": 3}
ONCE = ("event_time",)
OFTEN = [0.5, 0.3, 0.1, 0.05, 0.04, 0.01]


def examples() -> list[tuple[str, dict[str, Any]]]:
    """(transform, example)."""
    return [(name, example) for name in stateful.names() for example in stateful.REGISTRY.get(name).EXAMPLES]


def ids() -> list[str]:
    return [f"{at}-{name}" for at, (name, _) in enumerate(examples())]


def together() -> tuple[Tables, Tables]:
    """Columns and transforms, each example's under names of its own but for the time, of which a job has one."""
    columns: Tables = {}
    tables: Tables = {}
    for number, (name, example) in enumerate(examples()):
        own = {each: each if "role" in column and column["role"] in ONCE else f"{each}_{name}_{number}"
               for each, column in example["columns"].items()}  # fmt: skip
        columns |= {own[each]: column for each, column in example["columns"].items()}
        reads = [each for each, option in stateful.options(name).items() if isinstance(option, ColumnName)]
        tables[f"made_{name}_{number}"] = {
            setting: own[value] if setting in reads else value for setting, value in example["table"].items()
        }
    return columns | {"worded": WORDED}, tables


def cells(columns: Tables, count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Cells of such columns, some of them missing where one may be; some rows' cells go with the row's own number."""
    random = np.random.default_rng(seed)
    given: dict[str, list[Any]] = {}
    for name, column in columns.items():
        if column.get("kind") == "category":
            found: list[Any] = WORDS[random.choice(len(WORDS), count, p=OFTEN)].tolist()
        elif column.get("role") in ONCE:
            found = (1_700_000_000_000 + 20 * np.arange(count) + random.integers(0, 500, count)).tolist()
        else:
            found = (10.0 ** random.normal(0, 1, count) * random.choice([-1, 1], count)).round(3).tolist()
            found = [round(each) if number % 20 else each for number, each in enumerate(found)]
        missing = random.random(count) < (0.05 if column.get("role") == "input" else 0)
        given[name] = [None if gone else cell for gone, cell in zip(missing, found, strict=True)]
    return [{name: given[name][row] for name in columns} for row in range(count)]


def from_example(name: str, example: dict[str, Any]) -> dict[str, Any]:
    """An example as a model spec has it."""
    entry, options, table = stateful.get(name), stateful.options(name), example["table"]
    settings = {setting: value for setting, value in table.items() if setting in options}
    kinds = [reads for reads, _ in entry.feeds(read("made", name, 1, 0, settings).settings)]
    buckets = table.get("buckets", DEFAULT_BUCKETS) if "bucket" in kinds else 0
    makes_indexes = entry.indexes(read("made", name, buckets, 0, settings)) > 0
    embed = table.get("embed", 3) if makes_indexes else 0
    return {"name": f"made_{name}", "transform": name, "buckets": buckets, "embed": embed, "settings": settings}
