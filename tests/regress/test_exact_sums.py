"""Sums in float32 that stay as good as float64: Adam at a beta2 near 1, gradients over a million rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamtrain import _native
from streamtrain.compute.ops._batch import step
from streamtrain.compute.ops.embedding import places_of

BETAS, EPSILON, RATE, STEPS, COUNT = (0.9, 0.99999), 1e-8, 1e-3, 20_000, 64


def reference(gradients: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
    """Parameters and moments after all gradients, in float64."""
    p, m, v = np.zeros(COUNT), np.zeros(COUNT), np.zeros(COUNT)
    for t, g in enumerate(gradients.astype(np.float64), 1):
        m, v = BETAS[0] * m + (1 - BETAS[0]) * g, BETAS[1] * v + (1 - BETAS[1]) * g * g
        p = p - RATE * (m / (1 - BETAS[0] ** t)) / (np.sqrt(v / (1 - BETAS[1] ** t)) + EPSILON)
    return p, m, v


@pytest.mark.parametrize("isa", _native.supported_isas())
def test_adam_agrees_with_float64(isa: str) -> None:
    """1 - beta as a float32 difference was off by 1.4e-3 in the second moment at 0.99999."""
    gradients = np.random.default_rng(3).normal(0.3, 1, (STEPS, COUNT)).astype(np.float32)
    p, m, v = (np.zeros(COUNT, np.float32) for _ in range(3))
    settings = np.array([[COUNT, 1.0, 0, 0, 0, 0, *BETAS, EPSILON]])
    for t, g in enumerate(gradients, 1):
        block = step(learning_rate=RATE, number=t)
        _native.call_kernel("adam", "", [COUNT, 1, block, settings, None, g, p, m, v, None], isa)
        if t == 1:  # nothing but 1 - beta itself
            np.testing.assert_allclose(v, (1 - BETAS[1]) * g.astype(np.float64) ** 2, rtol=3e-7)
    expected = reference(gradients)
    np.testing.assert_allclose(v, expected[2], rtol=1e-5)
    np.testing.assert_allclose(m, expected[1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(p, expected[0], rtol=1e-5)


ROWS, INPUTS = 1_000_000, 3


@pytest.fixture(scope="module")
def batch() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """x of mean 1 and a gradient of mean 0.1: what a chain adds becomes small beside what it holds."""
    rng = np.random.default_rng(11)
    return rng.normal(1, 1, (ROWS, INPUTS)).astype(np.float32), rng.normal(0.1, 0.3, (ROWS, 9)).astype(np.float32)


def off(found: np.ndarray[Any, Any], exact: np.ndarray[Any, Any]) -> float:
    """The largest error, as a share of the largest sum."""
    return float(abs(found - exact).max() / abs(exact).max())


@pytest.mark.parametrize("isa", _native.supported_isas())
@pytest.mark.parametrize("outputs", [1, 2, 9])
def test_gradient_sums_of_a_dense_layer(batch: Any, outputs: int, isa: str) -> None:
    x, dy = batch[0], np.ascontiguousarray(batch[1][:, :outputs])
    dw, db = np.empty((INPUTS, outputs), np.float32), np.empty(outputs, np.float32)
    values = [ROWS, INPUTS, outputs, x, dy, dw, db, np.empty((INPUTS, 64))]
    _native.call_kernel("dense_grad_weight", "", values, isa)
    assert off(dw, x.astype(np.float64).T @ dy) < 2e-6
    assert off(db, dy.sum(0, dtype=np.float64)) < 2e-6


@pytest.mark.parametrize("isa", _native.supported_isas())
def test_gradient_sums_of_a_table_row(batch: Any, isa: str) -> None:
    """All rows of the batch have the same category."""
    dx, lead, gradient = batch[0], np.zeros((1, ROWS), np.int32), np.zeros((ROWS, INPUTS))
    places = np.array(places_of([(0, 1, INPUTS)], at=0))
    _native.call_kernel("embedding_gradient", "", [ROWS, 1, INPUTS, INPUTS, 0, places, dx, lead, gradient], isa)
    assert off(gradient[0], dx.sum(0, dtype=np.float64)) < 1e-12
