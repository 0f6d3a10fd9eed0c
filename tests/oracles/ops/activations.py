"""The common oracles of activations: an elementwise y = forward(x) with dx = dy * slope(x, y), in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle, enter


def activation(forward: Callable[[Array], Array], slope: Callable[[Array, Array], Array]) -> None:
    def reference(n: int, y: Array, x: Array) -> None:
        y[:] = forward(x.astype(np.float64))

    def reference_gradient(n: int, dx: Array, dy: Array, x: Array, y: Array) -> None:
        dx[:] = dy * slope(x.astype(np.float64), y.astype(np.float64))

    def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
        x = rng.normal(0, 4, n)
        return {"n": n, "x": x, "y": forward(x), "dy": rng.normal(size=n)}

    enter(f"{forward.__name__}_forward", Oracle(reference, example))
    enter(f"{forward.__name__}_gradient", Oracle(reference_gradient, example))


def elu(x: Array) -> Array:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def elu_slope(x: Array, y: Array) -> Array:
    return np.where(y > 0, 1.0, y + 1)


_GELU_SLOPE, _GELU_CUBIC = np.sqrt(8 / np.pi), 0.044715


def _share(x: Array) -> Array:
    return np.asarray(np.exp(-np.logaddexp(0, -_GELU_SLOPE * (x + _GELU_CUBIC * x**3))))


def gelu(x: Array) -> Array:
    return np.asarray(x * _share(x))


def gelu_slope(x: Array, y: Array) -> Array:
    clipped_x = np.clip(x, -20, 20)   # outside of it 0 or 1
    s = _share(clipped_x)
    return np.asarray(s + clipped_x * s * (1 - s) * _GELU_SLOPE * (1 + 3 * _GELU_CUBIC * clipped_x**2))


def hard_sigmoid(x: Array) -> Array:
    return np.clip((x + 3) / 6, 0, 1)


def hard_sigmoid_slope(x: Array, y: Array) -> Array:
    return np.where((x > -3) & (x < 3), 1 / 6, 0.0)


def hard_swish(x: Array) -> Array:
    clipped_x = np.clip(x, -3, 3)
    return np.where(x > 3, x, clipped_x * (clipped_x + 3) / 6)


def hard_swish_slope(x: Array, y: Array) -> Array:
    return np.where(x <= -3, 0.0, np.where(x >= 3, 1.0, (2 * x + 3) / 6))


def hard_tanh(x: Array) -> Array:
    return np.clip(x, -1, 1)


def hard_tanh_slope(x: Array, y: Array) -> Array:
    return np.where((x > -1) & (x < 1), 1.0, 0.0)


def leaky_relu(x: Array) -> Array:
    return np.where(x < 0, 0.01 * x, x)


def leaky_relu_slope(x: Array, y: Array) -> Array:
    return np.where(y > 0, 1.0, 0.01)


def mish(x: Array) -> Array:
    return np.asarray(x * np.tanh(np.logaddexp(0, x)))


def mish_slope(x: Array, y: Array) -> Array:
    w = np.tanh(np.logaddexp(0, x))
    return np.asarray(w + x * (1 - w * w) / (1 + np.exp(-x)))


def relu(x: Array) -> Array:
    return np.where(x < 0, 0, x)


def relu_slope(x: Array, y: Array) -> Array:
    return np.where(y > 0, 1.0, 0.0)


def relu6(x: Array) -> Array:
    return np.clip(x, 0, 6)


def relu6_slope(x: Array, y: Array) -> Array:
    return np.where((y > 0) & (y < 6), 1.0, 0.0)


_SELU_SCALE, _SELU_FLOOR = 1.0507009873554804934193349852946, 1.7580993408473768599402175208123


def selu(x: Array) -> Array:
    return np.where(x > 0, _SELU_SCALE * x, _SELU_FLOOR * np.expm1(np.minimum(x, 0)))


def selu_slope(x: Array, y: Array) -> Array:
    return np.where(y > 0, _SELU_SCALE, y + _SELU_FLOOR)


def sigmoid(x: Array) -> Array:
    return np.asarray(np.exp(-np.logaddexp(0, -x)))


def sigmoid_slope(x: Array, y: Array) -> Array:
    return np.asarray(y * (1 - y))


def silu(x: Array) -> Array:
    return np.asarray(x * sigmoid(x))


def silu_slope(x: Array, y: Array) -> Array:
    clipped_x = np.clip(x, -1000, 1000)   # outside of it 0 or 1
    s = sigmoid(clipped_x)
    return np.asarray(s * (1 + clipped_x * (1 - s)))


def softplus(x: Array) -> Array:
    return np.asarray(np.logaddexp(0, x))


def softplus_slope(x: Array, y: Array) -> Array:
    return sigmoid(x)


def softsign(x: Array) -> Array:
    return np.asarray(x / (1 + abs(x)))


def softsign_slope(x: Array, y: Array) -> Array:
    return np.asarray((1 + abs(x)) ** -2.0)


def tanh(x: Array) -> Array:
    return np.asarray(np.tanh(x))


def tanh_slope(x: Array, y: Array) -> Array:
    return np.asarray(1 - y * y)


activation(elu, elu_slope)
activation(gelu, gelu_slope)
activation(hard_sigmoid, hard_sigmoid_slope)
activation(hard_swish, hard_swish_slope)
activation(hard_tanh, hard_tanh_slope)
activation(leaky_relu, leaky_relu_slope)
activation(mish, mish_slope)
activation(relu, relu_slope)
activation(relu6, relu6_slope)
activation(selu, selu_slope)
activation(sigmoid, sigmoid_slope)
activation(silu, silu_slope)
activation(softplus, softplus_slope)
activation(softsign, softsign_slope)
activation(tanh, tanh_slope)
