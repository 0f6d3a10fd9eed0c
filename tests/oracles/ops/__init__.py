"""The meaning of every op in NumPy, and arguments to try it with. A function is the oracle of the op of its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

Example = Callable[[np.random.Generator, int], dict[str, Any]]
Reference = Callable[..., None]


@dataclass(frozen=True)
class Oracle:
    """`reference` takes the kernel's arguments in order, arrays as NumPy views it writes into. `example(rng, n)` gives
    argument values by name for about n elements; outputs may be left out."""

    reference: Reference
    example: Example
    tolerance: float = 2e-6   # of a backend against the reference, relative to the largest magnitude; double: 1e-12


_oracles: dict[str, Oracle] = {}


def enter(name: str, oracle: Oracle) -> None:
    """Makes an oracle that of the op of this name, which has no other."""
    assert name not in _oracles, name
    _oracles[name] = oracle


def oracle(example: Example, tolerance: float = Oracle.tolerance) -> Callable[[Reference], Reference]:
    """Makes the decorated function the oracle of the op of its name."""

    def add(reference: Reference) -> Reference:
        enter(reference.__name__, Oracle(reference, example, tolerance))
        return reference

    return add


def of(name: str) -> Oracle:
    """Returns the oracle of an op."""
    _import_all()
    return _oracles[name]


@cache
def _import_all() -> None:
    for path in Path(__path__[0]).glob("[!_]*.py"):
        import_module(f"{__name__}.{path.stem}")
