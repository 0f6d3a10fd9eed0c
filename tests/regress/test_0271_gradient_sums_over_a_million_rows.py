"""Gradient sums over rows were one float32 chain each: 2.8e-3 off at 10^6 rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamtrain import _native
from streamtrain.compute.ops.embedding import places_of

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
def test_of_a_dense_layer(batch: Any, outputs: int, isa: str) -> None:
    x, dy = batch[0], np.ascontiguousarray(batch[1][:, :outputs])
    dw, db = np.empty((INPUTS, outputs), np.float32), np.empty(outputs, np.float32)
    values = [ROWS, INPUTS, outputs, x, dy, dw, db, np.empty((INPUTS, 64))]
    _native.call_kernel("dense_grad_weight", "", values, isa)
    assert off(dw, x.astype(np.float64).T @ dy) < 2e-6
    assert off(db, dy.sum(0, dtype=np.float64)) < 2e-6


@pytest.mark.parametrize("isa", _native.supported_isas())
def test_of_a_table_row(batch: Any, isa: str) -> None:
    """All rows of the batch have the same category."""
    dx, lead, gradient = batch[0], np.zeros((1, ROWS), np.int32), np.zeros((ROWS, INPUTS))
    places = np.array(places_of([(0, 1, INPUTS)], at=0))
    _native.call_kernel("embedding_gradient", "", [ROWS, 1, INPUTS, INPUTS, 0, places, dx, lead, gradient], isa)
    assert off(gradient[0], dx.sum(0, dtype=np.float64)) < 1e-12
