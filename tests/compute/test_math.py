"""Accuracy and edges of our own elementary functions, seen through the activations that use them."""

from __future__ import annotations

import numpy as np
from looped import over

from streamtrain import _native

EDGES = [0.0, -0.0, 1e-45, -1e-45, 1e-30, 88.7, 88.8, -87.4, -104.5, 1e30, -1e30, np.inf, -np.inf]


@over(("types", "dtype", "ulps"), [("float", np.float32, 2.5), ("double", np.float64, 4.0)])
@over(("kernel", "exact"), [
    ("sigmoid_forward", lambda x: 1 / (1 + np.exp(-x))), ("tanh_forward", np.tanh),
])
def test_within_a_few_ulp(types: str, dtype: type, ulps: float, kernel: str, exact: object) -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(0, s, 20000) for s in (1e-3, 0.3, 3, 30)]).astype(dtype)
    x = x[abs(x) < 87]   # beyond, float's sigmoid is 0 where it could be subnormal
    y = np.zeros_like(x)
    _native.call_kernel(kernel, types, [len(x), y, x])
    expected = exact(x.astype(np.longdouble))   # type: ignore[operator]
    error = np.abs(y - expected) / np.spacing(np.maximum(np.abs(expected), np.finfo(dtype).tiny).astype(dtype))
    assert error.max() <= ulps


@over(("types", "dtype"), [("float", np.float32), ("double", np.float64)])
def test_edges(types: str, dtype: type) -> None:
    x = np.array(EDGES, dtype)
    for kernel, exact in (("sigmoid_forward", lambda x: 1 / (1 + np.exp(-x))), ("tanh_forward", np.tanh)):
        y = np.zeros_like(x)
        _native.call_kernel(kernel, types, [len(x), y, x])
        with np.errstate(over="ignore"):
            np.testing.assert_allclose(y, exact(x), rtol=1e-6, atol=1e-37)
        nan = np.full(1, np.nan, dtype)
        _native.call_kernel(kernel, types, [1, nan, nan.copy()])
        assert np.isnan(nan[0]), kernel


def test_philox_known_answers() -> None:
    """Random123's kat_vectors for philox4x32-10, through the reference; the kernel is compared with the reference."""
    from streamtrain.compute.ops.uniform import philox

    assert [hex(w) for w in philox(0, np.array([0]), 0)[0]] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]
    ones = 0xFFFFFFFFFFFFFFFF
    found = philox(ones, np.array([ones], np.uint64), ones)[0]
    assert [hex(w) for w in found] == ["0x408f276d", "0x41c83b0e", "0xa20bc7c6", "0x6d5451fd"]
