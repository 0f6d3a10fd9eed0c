"""Activations against PyTorch's, at the ends of the numbers, and as a vertex; other elementary functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain import _native
from streamtrain.compute import ops
from streamtrain.compute.ops.uniform import philox

ENDS = [0.0, -0.0, 1e-45, -1e-45, 1e-39, -1e-39, 5e-324, -5e-324, 88.8, -88.8, -104.5, 710.0, -746.0, 1e19, -1e19,
        1e30, -1e30, 3e38, -3e38]  # fmt: skip
TANH_FORM = {"approximate": "tanh"}   # of gelu, which PyTorch has in two


def run(name: str, x: Any, isa: str = "") -> tuple[Any, Any]:
    """y, and dy/dx."""
    types = "float" if x.dtype == np.float32 else "double"
    y, dx = np.zeros_like(x), np.zeros_like(x)
    _native.call_kernel(f"{name}_forward", types, [len(x), y, x], isa)
    _native.call_kernel(f"{name}_gradient", types, [len(x), dx, np.ones_like(x), x, y], isa)
    return y, dx


@over("name", ops.activations())
@over(("dtype", "close"), [(np.float32, 2e-6), (np.float64, 1e-12)])
def test_against_pytorch(name: str, dtype: Any, close: float) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
    known = torch.nn.functional
    theirs = getattr(known, name, None) or getattr(known, name.replace("_", ""))
    given = np.random.default_rng(1).normal(0, 4, 5000).astype(dtype)
    x = torch.tensor(given, dtype=torch.float64, requires_grad=True)
    expected = theirs(x, **(TANH_FORM if name == "gelu" else {}))
    expected.sum().backward()
    y, dx = run(name, given)
    far = abs(given) > 18 if name == "softplus" else np.zeros(len(given), bool)   # where PyTorch's is a line
    np.testing.assert_allclose(y[~far], expected.detach().numpy()[~far], rtol=close, atol=close)
    close = max(close, 1e-8)   # PyTorch's 1 / 6 is a float's
    np.testing.assert_allclose(dx[~far], x.grad.numpy()[~far], rtol=close, atol=close)


@over("name", ops.activations())
@over("dtype", [np.float32, np.float64])
def test_at_the_ends_of_the_numbers(name: str, dtype: Any) -> None:
    """As the reference says, and the same on every instruction set; what is no number stays none."""
    with np.errstate(over="ignore", under="ignore"):
        x = np.array(ENDS, dtype)
    forward, gradient = (ops.get(f"{name}_{which}") for which in ("forward", "gradient"))
    expected, slope = np.zeros_like(x), np.zeros_like(x)
    with np.errstate(all="ignore"):
        forward.reference(len(x), expected, x)
        gradient.reference(len(x), slope, np.ones_like(x), x, expected)
    bits = set()
    for isa in _native.supported_isas():
        y, dx = run(name, x, isa)
        assert np.isfinite(y).all() and np.isfinite(dx).all()
        np.testing.assert_allclose(y, expected, rtol=2e-6, atol=1e-35)
        np.testing.assert_allclose(dx, slope, rtol=2e-6, atol=1e-7 if dtype == np.float32 else 1e-15)
        odd = np.array([np.nan, np.inf, -np.inf], dtype)
        values, _ = run(name, odd, isa)
        assert np.isnan(values[0])
        bits.add((y.tobytes(), dx.tobytes(), values[1:].tobytes()))
    assert len(bits) == 1


@over("name", ops.activations())
def test_a_vertex_is_what_a_layer_has_built_in(rig: Any, spec: Any, name: str) -> None:
    inside = [{"name": "a", "dense": 7, "activation": name, "init": "he_uniform", "of": "input"}]
    apart = [{"name": "a", "dense": 7, "init": "he_uniform", "of": "input"},
             {"name": "b", "activation": "a", "function": name}]  # fmt: skip
    states = []
    for vertices in (inside, apart):
        rigged = rig(spec(graph=vertices))
        rigged.train()
        states.append(rigged.state.tobytes())
    assert states[0] == states[1]


@over(("types", "dtype", "ulps"), [("float", np.float32, 2.5), ("double", np.float64, 4.0)])
@over(("kernel", "exact"), [("sigmoid_forward", lambda x: 1 / (1 + np.exp(-x))), ("tanh_forward", np.tanh)])
def test_our_own_exponential_is_within_a_few_ulp(types: str, dtype: type, ulps: float, kernel: str, exact: Any) -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(0, s, 20000) for s in (1e-3, 0.3, 3, 30)]).astype(dtype)
    x = x[abs(x) < 87]   # beyond, float's sigmoid is 0 where it could be subnormal
    y = np.zeros_like(x)
    _native.call_kernel(kernel, types, [len(x), y, x])
    expected = exact(x.astype(np.longdouble))
    error = np.abs(y - expected) / np.spacing(np.maximum(np.abs(expected), np.finfo(dtype).tiny).astype(dtype))
    assert error.max() <= ulps
    with np.errstate(all="ignore"):
        edges = np.array([*ENDS, 1e-30, 87.4, -87.4, np.inf, -np.inf, np.nan], dtype)
    y = np.zeros_like(edges)
    _native.call_kernel(kernel, types, [len(edges), y, edges])
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(y, exact(edges), rtol=1e-6, atol=1e-37)


def test_philox_known_answers() -> None:
    """Random123's kat_vectors for philox4x32-10, through the reference; the kernel is compared with the reference."""
    assert [hex(w) for w in philox(0, np.array([0]), 0)[0]] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]
    ones = 0xFFFFFFFFFFFFFFFF
    found = philox(ones, np.array([ones], np.uint64), ones)[0]
    assert [hex(w) for w in found] == ["0x408f276d", "0x41c83b0e", "0xa20bc7c6", "0x6d5451fd"]


@over(("fields", "width"), [(2, 1), (26, 16), (5, 100)])
def test_pairs_of_fields_to_the_bit_on_all_and_without_cancellation(fields: int, width: int) -> None:
    """Fields far from 0: half of (sum)^2 - sum of squares in float32 would lose what is left."""
    rng = np.random.default_rng(fields)
    x = rng.normal(0, 1, (40, fields, width)).astype(np.float32)
    x[:, 0] += 1000
    wide = x.astype(np.float64)
    exact = ((wide.sum(1) ** 2 - (wide**2).sum(1)) / 2).sum(1)
    bits = set()
    for isa in _native.supported_isas():
        y = np.zeros(40, np.float32)
        _native.call_kernel("factorization_forward", "", [40, fields, width, x, y], isa)
        assert abs(y - exact).max() <= 1e-5 * abs(wide[:, 0]).max() * fields * np.sqrt(width)
        bits.add(y.tobytes())
    assert len(bits) == 1
    with np.errstate(all="ignore"):
        plain = ((x.sum(1) ** 2 - (x**2).sum(1)) / 2).sum(1)
    assert abs(y - exact).max() < abs(plain - exact).max() / 2
