"""The two kernels of all activations: <name>_forward(n, y, x) and <name>_gradient(n, dx, dy, x, y).

A file of ops that has an ACTIVATION is one by its own name, for every layer that takes an activation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from streamtrain.compute.spec import Op, given, out, size


def he(inputs: int, outputs: int) -> float:
    """For an activation that shuts half of its inputs (He et al., 2015)."""
    return math.sqrt(6 / inputs)


def lecun(inputs: int, outputs: int) -> float:
    """For one that keeps a variance of 1 (LeCun et al., 1998)."""
    return math.sqrt(3 / inputs)


def glorot(inputs: int, outputs: int) -> float:
    """For one that passes them all (Glorot and Bengio, 2010)."""
    return math.sqrt(6 / (inputs + outputs))


@dataclass(frozen=True)
class Activation:
    """The facts that a layer must know of an activation. The weights below it start uniform in [-start(inputs,
    outputs), start(…))."""

    start: Callable[[int, int], float]


def activation(name: str) -> tuple[Op, Op]:
    vector = ("T", "n")
    return (
        Op(f"{name}_forward", (size("n"), out("y", *vector), given("x", *vector)), each=("n",), tiles="rows",
           types=("float", "double")),
        Op(f"{name}_gradient",
           (size("n"), out("dx", *vector), given("dy", *vector), given("x", *vector), given("y", *vector)),
           each=("n",), tiles="rows", types=("float", "double")),
    )
