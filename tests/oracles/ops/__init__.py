"""The meaning of every op in NumPy, and arguments to try it with: a file for each of compute/ops, by the same name, and
one for all activations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Oracle:
    """`reference` takes the kernel's arguments in order, arrays as NumPy views it writes into. `example(rng, n)` gives
    argument values by name for about n elements; outputs may be left out."""

    reference: Callable[..., None]
    example: Callable[[np.random.Generator, int], dict[str, Any]]
    tolerance: float = 2e-6   # of a backend against the reference, relative to the largest magnitude; double: 1e-12


@cache
def _oracles() -> dict[str, Oracle]:
    found: dict[str, Oracle] = {}
    for path in Path(__path__[0]).glob("[!_]*.py"):
        found |= import_module(f"{__name__}.{path.stem}").ORACLES
    return found


def of(name: str) -> Oracle:
    """Returns the oracle of an op."""
    return _oracles()[name]
