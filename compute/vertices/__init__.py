"""The registry of vertices: what a computation graph has beside layers. A file has HELP, LEAST and MOST (how many
values it reads), OPTIONS (compute/options.py), EXAMPLES, shape() and build().

One that says SUMS is a sum of what it reads, by factors. It is written { <its name> = "what it reads" or [ … ], and its
options }. shape() raises Mismatch where what it reads does not fit (compute/shape.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from streamtrain.compute.options import Option
from streamtrain.registry import Registry

Examples = Sequence[tuple[list[int], dict[str, Any]]]   # widths of values to try a vertex with, and options


REGISTRY = Registry(__name__, "vertex")
names: Callable[[], list[str]] = REGISTRY.names
describe: Callable[[], dict[str, str]] = REGISTRY.describe
get = REGISTRY.get


def options(name: str) -> dict[str, Option]:
    """Returns the settings of a vertex kind, without what it reads."""
    declared: dict[str, Option] = get(name).OPTIONS
    return declared
