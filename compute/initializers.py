"""The registry of initializers: what weights and tables start from.

A table has its rows for inputs, and the numbers of one for outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from streamtrain.compute.activations import glorot, he, lecun
from streamtrain.compute.initial_values import ZERO, Start
from streamtrain.compute.options import Option, Word
from streamtrain.registry import ModuleRegistry

AUTO = "auto"


@dataclass(frozen=True)
class Initializer:
    """An entry: `start(inputs, outputs)` is what the weights start from."""

    start: Callable[[int, int], Start]
    help: str


REGISTRY = ModuleRegistry(__name__, "initializer", Initializer)
names: Callable[[], list[str]] = REGISTRY.names
describe: Callable[[], dict[str, str]] = REGISTRY.describe
get = REGISTRY.get


@REGISTRY.entry("normal, of variance 2 / (inputs + outputs)")
def glorot_normal(inputs: int, outputs: int) -> Start:
    """Glorot, Bengio: Understanding the difficulty of training deep feedforward neural networks, 2010."""
    return Start.normal(math.sqrt(2 / (inputs + outputs)))


@REGISTRY.entry("uniform, of variance 2 / (inputs + outputs)")
def glorot_uniform(inputs: int, outputs: int) -> Start:
    """Glorot, Bengio: Understanding the difficulty of training deep feedforward neural networks, 2010."""
    return Start.uniform(glorot(inputs, outputs))


@REGISTRY.entry("normal, of variance 2 / inputs")
def he_normal(inputs: int, outputs: int) -> Start:
    """He, Zhang, Ren, Sun: Delving deep into rectifiers, 2015."""
    return Start.normal(math.sqrt(2 / inputs))


@REGISTRY.entry("uniform, of variance 2 / inputs")
def he_uniform(inputs: int, outputs: int) -> Start:
    """He, Zhang, Ren, Sun: Delving deep into rectifiers, 2015."""
    return Start.uniform(he(inputs, outputs))


@REGISTRY.entry("normal, of variance 1 / inputs")
def lecun_normal(inputs: int, outputs: int) -> Start:
    """LeCun, Bottou, Orr, Müller: Efficient backprop, 1998."""
    return Start.normal(math.sqrt(1 / inputs))


@REGISTRY.entry("uniform, of variance 1 / inputs")
def lecun_uniform(inputs: int, outputs: int) -> Start:
    """LeCun, Bottou, Orr, Müller: Efficient backprop, 1998."""
    return Start.uniform(lecun(inputs, outputs))


@REGISTRY.entry("all 0")
def zeros(inputs: int, outputs: int) -> Start:
    """Zeros, for a layer whose sums are the outputs."""
    return ZERO


def words() -> list[str]:
    """Returns the values that `init` may have."""
    return [AUTO, *names()]


def to_dict(name: str) -> dict[str, str]:
    """Returns what a model spec holds for a table's initializer."""
    return {} if name == AUTO else {"init": name}


def option(auto: str) -> Option:
    """The setting of a layer; `auto` says what that is."""
    return Word(of=words, default=AUTO, help=f"what weights start from; auto: {auto}")


def begin(name: str, auto: Start, inputs: int, outputs: int) -> Start:
    """The start of weights by the initializer's name; `auto` is what stands for "auto"."""
    return auto if name == AUTO else get(name).start(inputs, outputs)
