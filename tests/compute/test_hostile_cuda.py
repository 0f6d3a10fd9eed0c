"""The values of hostile records in every op as CUDA gets it: on a GPU, and on the stand-in for CuPy, where the kernels
are the host's.
"""

from __future__ import annotations

from typing import Any

import pytest
from looped import over

from streamtrain import _native
from streamtrain.compute import ops
from streamtrain.compute.backends._device import Device
from streamtrain.compute.spec import Op
from tests.compute.hostile import KINDS, bits
from tests.compute.on_device import run_on
from tests.compute.test_hostile import SIZES, compare, given, meaning, outcomes
from tests.compute.test_ops import STEP_FIELDS

CASES = [(op, types) for op in ops.load().values() if not op.host_only for types in op.types]


def bits_of(op: Op, values: list[Any]) -> tuple[Any, ...]:
    return tuple(bits(value, STEP_FIELDS) for _, value in outcomes(op, values))


@over(("op", "types"), CASES, lambda case: f"{case[0].name}-{case[1]}", sampled=True)
def test_on_the_stand_in(fake_cupy: Any, op: Op, types: str) -> None:
    device = Device(0)
    device.load({(op.name, types)})
    for n in SIZES[:3]:
        for kind in KINDS:
            if (found := given(op, types, n, kind)) is not None:
                run_on(device, op, types, found)
                host = given(op, types, n, kind) or []
                _native.call_kernel(op.name, types, host)
                assert bits_of(op, found) == bits_of(op, host), kind


@pytest.mark.gpu
@over(("op", "types"), CASES, ids=lambda case: f"{case[0].name}-{case[1]}")
def test_on_a_gpu(device: Device, op: Op, types: str) -> None:
    """Its meaning in float64, as on the CPU; of plain values too."""
    for n in (*SIZES, 5000):
        usual = meaning(op, given(op, types, n))
        for kind in ("", *KINDS):
            if (found := given(op, types, n, kind)) is not None:
                run_on(device, op, types, found)
                compare(op, types, n, kind, found, usual)
