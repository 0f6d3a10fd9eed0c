"""The contract of every op: each instruction set agrees with the reference, and with the others to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain import _native
from streamtrain.compute import ops
from streamtrain.compute.spec import DTYPES, TEMPLATE_TYPES, Arg, Op
from streamtrain.errors import StreamtrainError

SIZES = (0, 1, 2, 31, 32, 33, 256, 1000)
CASES = [(op, types, n) for op in ops.load().values() for types in op.types for n in SIZES]
ACTIVATION_GRADIENTS = [f"{name}_gradient" for name in ops.activations()]
STEP_FIELDS = ("loss_sum", "weight_sum", "not_finite", "learning_rate", "active_rows", "gradient_norm")


def dtype_of(arg: Arg, types: str) -> type:
    return DTYPES[TEMPLATE_TYPES[types] if arg.dtype == "T" else arg.dtype]


def copy_of_step(step: _native.StepBlock) -> _native.StepBlock:
    copy = _native.StepBlock()
    for name in (*STEP_FIELDS, "number", "random"):
        setattr(copy, name, getattr(step, name))
    return copy


def arguments(op: Op, types: str, n: int) -> list[Any]:
    """A fresh set of arguments, the same at every call."""
    given, sizes, values = op.example(np.random.default_rng(7), n), {}, []
    for arg in op.args:
        if arg.role == "size":
            sizes[arg.name] = int(given[arg.name])
    for arg in op.args:
        if arg.dtype == "step":
            values.append(copy_of_step(given[arg.name]))
        elif arg.role in ("size", "value"):
            values.append(given[arg.name])
        elif arg.optional and given.get(arg.name) is None:
            values.append(None)
        elif arg.of:
            arrays = [np.array(content, dtype_of(arg, types), order="C") for content in given[arg.name]]
            assert len(arrays) == sizes[arg.of]
            values.append(arrays)
        else:
            shape = tuple(dim if isinstance(dim, int) else sizes[dim] for dim in arg.shape)
            content = given.get(arg.name, np.zeros(shape))
            values.append(np.ascontiguousarray(np.broadcast_to(content, shape), dtype_of(arg, types)).copy())
    return values


def those_of(op: Op, values: list[Any], *roles: str) -> list[Any]:
    """Returns the values of these roles; of several arrays one by one."""
    mine = [value for arg, value in zip(op.args, values, strict=True) if arg.role in roles]
    return [one for value in mine for one in (value if isinstance(value, list) else [value])]


def outcomes(op: Op, values: list[Any]) -> list[Any]:
    return those_of(op, values, "out", "part", "changed")


def assert_close(found: Any, expected: Any, tolerance: float) -> None:
    if isinstance(found, _native.StepBlock):
        for name in STEP_FIELDS:
            assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=tolerance), name
    elif found is not None and found.size:
        if found.dtype.kind in "iu":
            np.testing.assert_array_equal(found, expected)
        else:
            scale = max(1.0, float(np.abs(expected[np.isfinite(expected)]).max(initial=0)))
            limit = tolerance if found.dtype == np.float32 else min(tolerance, 1e-12)
            np.testing.assert_allclose(found, expected, rtol=limit, atol=limit * scale)


@over(("op", "types", "n"), CASES, ids=lambda case: f"{case[0].name}-{case[1]}-{case[2]}")
def test_every_instruction_set_agrees_with_the_reference(op: Op, types: str, n: int) -> None:
    expected = arguments(op, types, n)
    with np.errstate(all="ignore"):
        op.reference(*expected)
    bits = set()
    for isa in _native.supported_isas():
        found = arguments(op, types, n)
        _native.call_kernel(op.name, types, found, isa)
        for one, other in zip(outcomes(op, found), outcomes(op, expected), strict=True):
            assert_close(one, other, op.tolerance)
        for one, other in zip(*(those_of(op, each, "given") for each in (found, arguments(op, types, n))), strict=True):
            if isinstance(one, np.ndarray):
                np.testing.assert_array_equal(one, other)
        results = [v for v in outcomes(op, found) if v is not None]
        bits.add(tuple(
            tuple(getattr(v, name) for name in STEP_FIELDS) if isinstance(v, _native.StepBlock) else v.tobytes()
            for v in results
        ))
    assert len(bits) == 1, "bits differ between instruction sets"


def test_a_declaration_that_differs_from_the_kernel_is_refused() -> None:
    op = ops.get("sgd")
    changed = Op(op.name, op.args[:-1], op.reference, op.example, op.each)
    with pytest.raises(StreamtrainError, match=r"compute/ops/sgd.py: kernel sgd<> for .*: expected \(i64, i64, step\*"):
        ops.check(changed, "compute/ops/sgd.py")


def test_every_kernel_built_has_an_op() -> None:
    assert {kernel[0] for kernel in _native.kernels()} == set(ops.load())


@over("name", ACTIVATION_GRADIENTS)
def test_activation_gradients_agree_with_differences(name: str) -> None:
    x = np.random.default_rng(3).normal(0, 3, 1000)
    x = x[abs(x) > 1e-3]   # a relu has no slope at 0
    forward, h = name.replace("_gradient", "_forward"), 1e-6
    y, above, below, dx = (np.zeros_like(x) for _ in range(4))
    for into, at in ((y, x), (above, x + h), (below, x - h)):
        _native.call_kernel(forward, "double", [len(x), into, np.ascontiguousarray(at)])
    _native.call_kernel(name, "double", [len(x), dx, np.ones_like(x), x, y])
    np.testing.assert_allclose(dx, (above - below) / (2 * h), atol=1e-8)


@over("isa", [isa for isa in _native.supported_isas() if isa != "v2"])
def test_elementwise_kernels_are_vector_code(isa: str) -> None:
    """Half a nanosecond an element, 3 on an old and busy machine; libm would take 10 to 40 (v2 has no fma instruction).

    The best of many, beside that of a kernel which computes nothing.
    """
    import time

    def least(op: Op) -> float:
        values, best = arguments(op, "float", n), 1e9
        for _ in range(200):
            start = time.perf_counter_ns()
            _native.call_kernel(op.name, "float", values, isa)
            best = min(best, (time.perf_counter_ns() - start) / n)
        return best

    n = 4096
    bar = max(3, 6 * least(ops.get("relu_forward")))
    for op in ops.load().values():
        if op.each == ("n",) and "float" in op.types:
            assert (took := least(op)) < bar, f"{op.name}: {took:.2f} ns an element, expected less than {bar:.2f}"
