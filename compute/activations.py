"""The registry of activations: y = f(x) element by element, for every layer that takes one.

An entry is start(inputs, outputs): the weights below the activation start uniform in [-start, start). Its kernels,
<name>_forward(n, y, x) and <name>_gradient(n, dx, dy, x, y), are those of native/kernels/<name>.h.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from streamtrain.compute.spec import Op, given, out, size
from streamtrain.registry import ModuleRegistry


@dataclass(frozen=True)
class Activation:
    """The facts that a layer must know of an activation."""

    start: Callable[[int, int], float]
    help: str


REGISTRY = ModuleRegistry(__name__, "activation", Activation)
names: Callable[[], list[str]] = REGISTRY.names
get = REGISTRY.get


def he(inputs: int, outputs: int) -> float:
    """For an activation that shuts half of its inputs (He et al., 2015)."""
    return math.sqrt(6 / inputs)


def lecun(inputs: int, outputs: int) -> float:
    """For one that keeps a variance of 1 (LeCun et al., 1998)."""
    return math.sqrt(3 / inputs)


def glorot(inputs: int, outputs: int) -> float:
    """For one that passes them all (Glorot and Bengio, 2010)."""
    return math.sqrt(6 / (inputs + outputs))


def ops_of(name: str) -> tuple[Op, Op]:
    vector = ("T", "n")
    return (
        Op(f"{name}_forward", (size("n"), out("y", *vector), given("x", *vector)), each=("n",), tiles="rows",
           types=("float", "double")),
        Op(f"{name}_gradient",
           (size("n"), out("dx", *vector), given("dy", *vector), given("x", *vector), given("y", *vector)),
           each=("n",), tiles="rows", types=("float", "double")),
    )


@REGISTRY.entry("x above 0, e^x - 1 below")
def elu(inputs: int, outputs: int) -> float:
    """The exponential linear unit (Clevert, Unterthiner, Hochreiter, 2015)."""
    return he(inputs, outputs)


@REGISTRY.entry("x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, GELU's tanh form")
def gelu(inputs: int, outputs: int) -> float:
    """The Gaussian error linear unit in its tanh form (Hendrycks, Gimpel, 2016, section 2)."""
    return he(inputs, outputs)


@REGISTRY.entry("x / 6 + 1 / 2 cut to between 0 and 1")
def hard_sigmoid(inputs: int, outputs: int) -> float:
    """The sigmoid in three straight pieces (Howard et al., 2019)."""
    return glorot(inputs, outputs)


@REGISTRY.entry("x times hard_sigmoid(x)")
def hard_swish(inputs: int, outputs: int) -> float:
    """Swish of straight pieces and a parabola (Howard et al., 2019)."""
    return he(inputs, outputs)


@REGISTRY.entry("x cut to between -1 and 1")
def hard_tanh(inputs: int, outputs: int) -> float:
    """The hyperbolic tangent in three straight pieces (Collobert, 2004)."""
    return glorot(inputs, outputs)


@REGISTRY.entry("x above 0, x / 100 below")
def leaky_relu(inputs: int, outputs: int) -> float:
    """The leaky rectifier (Maas, Hannun, Ng, 2013)."""
    return he(inputs, outputs)


@REGISTRY.entry("x tanh(log(1 + e^x)), smooth, unbounded above")
def mish(inputs: int, outputs: int) -> float:
    """Mish: x tanh(log(1 + e^x)) (Misra, 2019). The formula lies in native/kernels/mish.h."""
    return he(inputs, outputs)


@REGISTRY.entry("max(x, 0)")
def relu(inputs: int, outputs: int) -> float:
    """The rectifier. Dense layers have it built into their kernels; these stand alone."""
    return he(inputs, outputs)


@REGISTRY.entry("x cut to between 0 and 6")
def relu6(inputs: int, outputs: int) -> float:
    """A rectifier with a lid (Krizhevsky, 2010)."""
    return he(inputs, outputs)


@REGISTRY.entry("1.0507 x above 0, 1.7581 (e^x - 1) below; keeps mean 0 and variance 1")
def selu(inputs: int, outputs: int) -> float:
    """The self-normalizing unit (Klambauer, Unterthiner, Mayr, Hochreiter, 2017)."""
    return lecun(inputs, outputs)


@REGISTRY.entry("1 / (1 + e^-x), between 0 and 1")
def sigmoid(inputs: int, outputs: int) -> float:
    """The logistic function; also what turns a binary model's output into a probability."""
    return glorot(inputs, outputs)


@REGISTRY.entry("x / (1 + e^-x), also called swish")
def silu(inputs: int, outputs: int) -> float:
    """The sigmoid linear unit, also called swish (Elfwing, Uchibe, Doya, 2017; Ramachandran, Zoph, Le, 2017)."""
    return he(inputs, outputs)


@REGISTRY.entry("log(1 + e^x), above 0")
def softplus(inputs: int, outputs: int) -> float:
    """A smooth rectifier (Dugas, Bengio, Bélisle, Nadeau, Garcia, 2000)."""
    return he(inputs, outputs)


@REGISTRY.entry("x / (1 + |x|), between -1 and 1")
def softsign(inputs: int, outputs: int) -> float:
    """A sigmoid with slow ends (Turian, Bergstra, Bengio, 2009)."""
    return glorot(inputs, outputs)


@REGISTRY.entry("tanh(x), between -1 and 1")
def tanh(inputs: int, outputs: int) -> float:
    """The hyperbolic tangent. The formula lies in native/base/math.h."""
    return glorot(inputs, outputs)
