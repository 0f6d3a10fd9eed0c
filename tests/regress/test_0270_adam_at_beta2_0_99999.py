"""1 - beta was a float32 difference: at 0.99999 the second moment was off by 1.4e-3, the step by 6.8e-4."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamtrain import _native
from streamtrain.compute.ops._batch import step

BETAS, EPSILON, RATE, STEPS, COUNT = (0.9, 0.99999), 1e-8, 1e-3, 20_000, 64


def reference(gradients: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], ...]:
    """Parameters and moments after all gradients, in float64."""
    p, m, v = np.zeros(COUNT), np.zeros(COUNT), np.zeros(COUNT)
    for t, g in enumerate(gradients.astype(np.float64), 1):
        m, v = BETAS[0] * m + (1 - BETAS[0]) * g, BETAS[1] * v + (1 - BETAS[1]) * g * g
        p = p - RATE * (m / (1 - BETAS[0]**t)) / (np.sqrt(v / (1 - BETAS[1]**t)) + EPSILON)
    return p, m, v


@pytest.mark.parametrize("isa", _native.supported_isas())
def test_adam_agrees_with_float64(isa: str) -> None:
    gradients = np.random.default_rng(3).normal(0.3, 1, (STEPS, COUNT)).astype(np.float32)
    p, m, v = (np.zeros(COUNT, np.float32) for _ in range(3))
    settings = np.array([[COUNT, 1.0, 0, 0, 0, 0, *BETAS, EPSILON]])
    for t, g in enumerate(gradients, 1):
        block = step(learning_rate=RATE, number=t)
        _native.call_kernel("adam", "", [COUNT, 1, block, settings, None, g, p, m, v, None], isa)
        if t == 1:   # nothing but 1 - beta itself
            np.testing.assert_allclose(v, (1 - BETAS[1]) * g.astype(np.float64) ** 2, rtol=3e-7)
    expected = reference(gradients)
    np.testing.assert_allclose(v, expected[2], rtol=1e-5)
    np.testing.assert_allclose(m, expected[1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(p, expected[0], rtol=1e-5)
