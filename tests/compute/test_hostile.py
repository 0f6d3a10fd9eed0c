"""The registry of ops under values, weights and indexes of hostile records: no crash, the same bits from every
instruction set, and the meaning in float64 where a float can hold it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain import _native
from streamtrain.compute import ops
from streamtrain.compute.spec import Array, Op
from tests.compute.hostile import KINDS, OVERFLOWS, WEIGHTS, arrays_of, bits, fill_outputs, put_into, widened
from tests.compute.test_ops import STEP_FIELDS, arguments, copy_of_step

SIZES = (0, 1, 33, 1000)
CASES = [(op, types) for op in ops.load().values() for types in op.types]
MOVED = 4   # times that the arguments are moved by a rounding
OFTEN = 8   # how much further than that a float may lie


def given(op: Op, types: str, n: int, kind: str = "") -> list[Any] | None:
    """Fresh arguments, None where the op has no place for the kind."""
    named = dict(zip([arg.name for arg in op.args], arguments(op, types, n), strict=True))
    found = put_into(op, kind, named) if kind else True
    fill_outputs(op, named)
    return list(named.values()) if found else None


def meaning(op: Op, values: list[Any] | None, wide: bool = True, seed: int = 0) -> list[Any]:
    assert values is not None
    values = [copy_of_step(value) if isinstance(value, _native.StepBlock) else value for value in values]
    values = widened(op, values, seed) if wide else values
    with np.errstate(all="ignore"):
        op.reference(*values)
    return values


def outcomes(op: Op, values: list[Any]) -> Iterator[tuple[str, Any]]:
    for arg, value in zip(op.args, values, strict=True):
        if arg.role in ("out", "part", "changed") and value is not None:
            yield from ((arg.name, one) for one in arrays_of(value))


def assert_near(kind: str, name: str, found: Array, expected: Array, limit: Array) -> None:
    """As far from the meaning as the limit at most, where a float can hold it. What overflowed on the way may be
    infinite or NaN, but not a wrong number; what is no number in the meaning is none here, gradients aside."""
    with np.errstate(all="ignore"):
        held = np.isfinite(expected.astype(found.dtype))
        far = held & ~(abs(found.astype(np.float64) - expected) <= limit)
    if kind in OVERFLOWS:
        far &= np.isfinite(found)
    if kind == "nan" and name.startswith(("d", "da", "db")):
        return   # of two branches that a NaN does not choose between
    assert not far.any(), (name, found[far][:3], expected[far][:3], limit[far][:3])
    if kind == "nan":
        assert not (np.isnan(expected) & np.isfinite(found)).any(), f"{name}: a NaN became a number"


def compare(op: Op, types: str, n: int, kind: str, found: list[Any], usual: list[Any]) -> None:
    """With the meaning. `usual`: what the op gives without the kind."""
    exact, narrow = meaning(op, given(op, types, n, kind)), meaning(op, given(op, types, n, kind), wide=False)
    near = [meaning(op, given(op, types, n, kind), seed=1 + turn) for turn in range(MOVED)]
    step = next((value for value in found if isinstance(value, _native.StepBlock)), None)
    if kind in OVERFLOWS and step is not None and step.not_finite:
        return   # the batch is left out
    columns = [[value for _, value in outcomes(op, values)] for values in (exact, narrow, usual, *near)]
    for (name, value), its, plain, before, *moved in zip(outcomes(op, found), *columns, strict=True):
        if isinstance(value, _native.StepBlock):
            for field in STEP_FIELDS:
                assert getattr(value, field) == pytest.approx(getattr(its, field), rel=1e-5, nan_ok=True), (kind, field)
        elif value.dtype.kind != "f":
            if kind not in OVERFLOWS:
                np.testing.assert_array_equal(value, plain, f"{kind}: {name}")
        elif value.size:
            with np.errstate(all="ignore"):
                spread = np.max([abs(other.astype(np.float64) - its) for other in moved], 0)
            largest = max(1.0, float(abs(before[np.isfinite(before)]).max(initial=0)))
            tolerance = op.tolerance if value.dtype == np.float32 else min(op.tolerance, 1e-12)
            limit = OFTEN * spread + tolerance * (abs(its.astype(np.float64)) + largest)
            assert_near(kind, name, value, its.astype(np.float64), limit)


@over(("op", "types"), CASES, lambda case: f"{case[0].name}-{case[1]}", sampled=True)
def test_hostile_records(op: Op, types: str) -> None:
    for n in SIZES:
        usual = meaning(op, given(op, types, n))
        for kind in KINDS:
            if given(op, types, n, kind) is None:
                continue
            found, seen = [], set()
            for isa in _native.supported_isas():
                found = given(op, types, n, kind) or []
                _native.call_kernel(op.name, types, found, isa)
                seen.add(tuple(bits(value, STEP_FIELDS) for _, value in outcomes(op, found)))
            assert len(seen) == 1, f"{kind}: bits differ between instruction sets"
            compare(op, types, n, kind, found, usual)


OF_SCORES = {("given", "z"), ("out", "loss")}
LOSSES = [op.name for op in ops.load().values() if {(arg.role, arg.name) for arg in op.args} >= OF_SCORES]


@over("name", LOSSES)
def test_the_loss_of_a_score_that_is_no_number_is_none(name: str) -> None:
    """So that the batch is left out, and not trained as one that was predicted right."""
    op = ops.get(name)
    values = arguments(op, "", 4)
    named = dict(zip([arg.name for arg in op.args], values, strict=True))
    named["z"][:], named["weight"][:] = np.nan, 1
    _native.call_kernel(name, "", values)
    assert np.isnan(named["loss"]).all()


def test_every_kind_has_ops_to_be_put_into() -> None:
    reached = {kind: [op.name for op in ops.load().values() if given(op, op.types[0], 33, kind)] for kind in KINDS}
    assert all(len(names) > 5 for names in reached.values()), reached
    assert all("score_binary" in reached[kind] for kind in WEIGHTS)
