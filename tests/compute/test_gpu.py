"""On a real GPU: every op against its reference, the model against the CPU, host time. Skipped where there is none."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain.compute import ops
from streamtrain.compute.backends import cuda
from streamtrain.compute.backends._device import Device
from streamtrain.compute.model import Model
from streamtrain.compute.spec import Op
from tests.compute.on_device import run_on
from tests.compute.test_ops import arguments, outcomes
from tests.train.arena_run import SPEC, two_rounds

pytestmark = pytest.mark.gpu
DEVICE_OPS = [op for op in ops.load().values() if not op.host_only]
RELU = {"dense": 64, "activation": "relu"}


@over(
    ("op", "types", "n"),
    lambda: ((op, types, n) for op in DEVICE_OPS for types in op.types for n in (0, 1, 31, 1000, 5000)),
    ids=lambda case: f"{case[0].name}-{case[1]}-{case[2]}",
)
def test_every_op_agrees_with_its_reference(device: Device, op: Op, types: str, n: int) -> None:
    found = arguments(op, types, n)
    run_on(device, op, types, found)
    expected = arguments(op, types, n)
    with np.errstate(all="ignore"):
        op.reference(*expected)
    for one, value in zip(outcomes(op, found), outcomes(op, expected), strict=True):
        if isinstance(value, np.ndarray):
            scale = max(1.0, float(np.nanmax(np.abs(value), initial=0)))
            limit = op.tolerance if value.dtype == np.float32 else min(op.tolerance, 1e-11)
            np.testing.assert_allclose(one, value, rtol=limit, atol=limit * scale)


@over("shape", [
    {"layers": [RELU, RELU], "numbers": 28, "standardize": True},
    {"layers": [RELU], "categories": 2, "loss": "softmax_cross_entropy"},
    {"loss": "mean_squared_error", "standardize_label": True, "optimizer": "sgd"},
])
def test_the_model_agrees_with_the_cpu(device: Device, rig: Any, spec: Any, shape: dict[str, Any]) -> None:
    one, other = rig(spec(**shape), 250, 256), rig(spec(**shape), 250, 256)
    cpu, gpu = one.plan("cpu"), other.plan("cuda")
    one.statistics(cpu)
    other.statistics(gpu)
    gpu.begin_round()
    for _ in range(20):
        one.fill()
        other.fill()
        assert one.step(cpu) == pytest.approx(other.step(gpu), rel=1e-3)
    gpu.end_round()
    learned = one.model.learned_bytes
    a, b = (r.state[:learned].view(np.float32) for r in (one, other))
    np.testing.assert_allclose(a, b, rtol=1e-2, atol=1e-2)


def test_two_runs_give_the_same_bits(device: Device, rig: Any, spec: Any) -> None:
    bits = set()
    for _ in range(2):
        rigged = rig(spec(layers=[RELU, RELU], numbers=28), 250, 256)
        plan = rigged.plan("cuda")
        plan.begin_round()
        for _ in range(20):
            rigged.step(plan)
        plan.end_round()
        bits.add(rigged.state.tobytes())
    assert len(bits) == 1


@over("bad", [(), (5,)])
def test_rounds_run_ahead_to_the_same_bits(
    device: Device, monkeypatch: pytest.MonkeyPatch, bad: tuple[int, ...]
) -> None:
    states = set()
    for steps_ahead in (1, 3, 64, 64):
        monkeypatch.setattr(cuda, "STEPS_AHEAD", steps_ahead)
        states.add(two_rounds("cuda", bad).tobytes())
    assert len(states) == 1
    learned = Model(SPEC).learned_bytes
    one, other = np.frombuffer(states.pop(), np.float32, learned // 4), two_rounds("cpu", bad)[:learned]
    np.testing.assert_allclose(one, other.view(np.float32), rtol=1e-2, atol=1e-2)


def test_host_time_per_step(device: Device, rig: Any, spec: Any) -> None:
    """The bar is 30 us; enqueueing only, the device works on meanwhile."""
    rigged = rig(spec(layers=[RELU, RELU], numbers=28), 250, 256)
    plan, best = rigged.plan("cuda"), 1e9
    plan.begin_round()
    for _ in range(50):
        start = time.perf_counter()
        for _ in range(32):
            plan.enqueue(rigged.address)
        best = min(best, (time.perf_counter() - start) / 32)
        plan.collect()
    assert best < 30e-6, f"{best * 1e6:.1f} us"
