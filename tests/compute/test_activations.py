"""Activations against PyTorch's, at the ends of the numbers, and as a vertex."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain import _native
from streamtrain.compute import ops

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
        plan = rigged.plan()
        for _ in range(3):
            rigged.step(plan)
        states.append(rigged.state.tobytes())
    assert states[0] == states[1]
