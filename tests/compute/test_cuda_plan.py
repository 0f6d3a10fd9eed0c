"""Tests of how the CUDA backend drives CuPy: on a GPU, and on a stand-in that runs the host's kernels."""

from __future__ import annotations

import _ctypes
import ctypes
import gc
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain import _native
from streamtrain.compute import ops
from streamtrain.compute.backends import _cublas, cuda
from streamtrain.compute.backends._device import TO_DEVICE, TO_HOST, Device
from streamtrain.compute.bound import at_address
from streamtrain.compute.builder import PREDICTING
from streamtrain.compute.model import Model, aligned
from streamtrain.compute.spec import Op
from streamtrain.errors import StreamtrainError
from tests.compute.test_ops import (
    HOSTILE_SIZES,
    KINDS,
    STEP_FIELDS,
    bits,
    compare,
    given,
    meaning,
    named_outcomes,
)
from tests.train.arena_run import SPEC, two_rounds

RELU = {"dense": 8, "activation": "relu"}
SHAPES: list[dict[str, Any]] = [
    {"layers": [RELU, {"dense": 4, "activation": "tanh"}], "standardize": True, "categories": 2},
    {"layers": [RELU, RELU], "loss": "softmax_cross_entropy"},
    {"loss": "mean_squared_error", "standardize_label": True, "optimizer": "momentum"},
    {"graph": [{"name": "a", **RELU, "of": "input"}, {"name": "b", "concat": ["a", "input", "input.first"]}]},
    {"categories": 5, "layers": [RELU], "bags": [0, 1], "optimizer": "adagrad"},
    {"graph": [
        {"name": "s", "stack": ["input"] * 3}, {"name": "h", "dense": 4, "activation": "tanh", "of": "s"},
        {"name": "a", "unstack": "h", "index": 0}, {"name": "b", "unstack": "h", "index": 2},
        {"name": "c", "concat": ["a", "b"]},
    ]},
    {"graph": [
        {"name": "a", "dense": 8, "activation": "gelu", "of": "input"}, {"name": "b", "dropout": 0.3, "of": "a"},
        {"name": "c", "multiply": ["a", "b"]}, {"name": "d", "scale": ["c"], "by": 0.5},
    ]},
    {},
]
WIDE = {"layers": [{"dense": 64, "activation": "relu"}] * 2, "numbers": 28}


@pytest.fixture(params=["stand-in", pytest.param("gpu", marks=pytest.mark.gpu)])
def further(request: pytest.FixtureRequest) -> int:
    """Tests on the stand-in and on a GPU; returns how much further off than the host's kernels it may be."""
    request.getfixturevalue("fake_cupy" if request.param == "stand-in" else "device")
    return 1 if request.param == "stand-in" else 10


@over(("shape", "in_round"), [
    *((shape, at % 2 > 0) for at, shape in enumerate(SHAPES)),
    *(({**WIDE, "standardize": True}, each) for each in (False, True)),
])  # fmt: skip
def test_steps_agree_with_the_cpu(further: int, rig: Any, spec: Any, shape: dict[str, Any], in_round: bool) -> None:
    one, other = rig(spec(**shape), 250, 256), rig(spec(**shape), 250, 256)
    cpu, gpu = one.plan("cpu"), other.plan("cuda")
    one.statistics(cpu)
    other.statistics(gpu)
    assert one.base.tobytes() == other.base.tobytes()
    if in_round:
        gpu.begin_round()
    for _ in range(5 if further == 1 else 20):   # more than there are slot buffers
        one.fill()
        other.fill()
        assert one.step(cpu) == pytest.approx(other.step(gpu), rel=1e-4 * further)
        assert gpu.step.rows == 250 and gpu.step.not_finite == 0
    if in_round:
        gpu.end_round()
    learned = one.model.learned_bytes
    limit = 1e-3 * further
    np.testing.assert_allclose(*(each.state[:learned].view(np.float32) for each in (one, other)), limit, limit)
    for name, block in one.model.scores(one.share).items():
        if name != "score.histogram" and not name.endswith(_native.DISTINCT):   # a GPU's tally is full
            np.testing.assert_allclose(other.model.scores(other.share)[name], block, rtol=limit, err_msg=name)
    cpu.predict(one.address)
    gpu.predict(other.address)
    np.testing.assert_allclose(gpu.output()[: one.rows], cpu.output()[: one.rows], rtol=limit, atol=limit / 10)


def enqueue(plan: _native.Plan, number: int, slot: Any, learning_rate: float = 0.01) -> None:
    step = plan.step
    step.learning_rate = learning_rate
    step.number = number
    plan.enqueue(int(slot.ctypes.data))


@pytest.mark.parametrize("eager", [(), ("compute",), ("upload",), ("compute", "upload")])
def test_steps_enqueued_ahead_give_their_results_in_order(
    fake_cupy: Any, rig: Any, spec: Any, eager: tuple[str, ...]
) -> None:
    one, other = rig(spec(layers=[RELU])), rig(spec(layers=[RELU]))
    cpu, gpu = one.plan("cpu"), other.plan("cuda")
    expected, slots = [], []
    for _ in range(7):   # more than there are slot buffers
        one.fill()
        slots.append(aligned(one.slot.nbytes))
        slots[-1][:] = one.slot
        expected.append(one.step(cpu))
    gpu.begin_round()
    for name in eager:
        getattr(gpu._device_plan.device, name).eager = True
    for number, slot in enumerate(slots, 1):
        enqueue(gpu, number, slot)
    first = gpu.collect()
    blocks = [_native.StepBlock.at(first + number * _native.STEP_BYTES) for number in range(7)]
    np.testing.assert_allclose([block.loss_sum / block.weight_sum for block in blocks], expected, rtol=1e-4)


def test_a_step_too_many_is_refused_and_loses_none(fake_cupy: Any, rig: Any, spec: Any) -> None:
    rigged = rig(spec())
    plan = rigged.plan("cuda")
    assert plan.steps_ahead == cuda.STEPS_AHEAD
    plan.begin_round()
    for number in range(1, plan.steps_ahead + 1):
        enqueue(plan, number, rigged.slot, number / 1024)   # by which a step is known
    with pytest.raises(StreamtrainError, match="at most 64 steps before collect"):
        enqueue(plan, 99, rigged.slot)
    first = plan.collect()
    blocks = [_native.StepBlock.at(first + number * _native.STEP_BYTES) for number in range(plan.steps_ahead)]
    assert [1024 * block.learning_rate for block in blocks] == list(range(1, plan.steps_ahead + 1))
    assert all(block.loss_sum > 0 for block in blocks)
    enqueue(plan, 65, rigged.slot, 65 / 1024)
    assert 1024 * _native.StepBlock.at(plan.collect()).learning_rate == 65


@pytest.mark.parametrize("bad", [(), (5,)])
def test_rounds_run_ahead_to_the_same_bits(further: int, monkeypatch: pytest.MonkeyPatch, bad: tuple[int, ...]) -> None:
    states = []
    for steps_ahead in (1, 3, 64, 64):
        monkeypatch.setattr(cuda, "STEPS_AHEAD", steps_ahead)
        states.append(two_rounds("cuda", bad))
    assert all(np.array_equal(states[0], state) for state in states)
    learned = Model(SPEC).learned_bytes
    one, other = (state[:learned].view(np.float32) for state in (states[0], two_rounds("cpu", bad)))
    np.testing.assert_allclose(one, other, rtol=1e-2, atol=1e-3 * further)


@pytest.mark.gpu
def test_two_runs_give_the_same_bits(device: Device, rig: Any, spec: Any) -> None:
    one, other = rig(spec(**WIDE), 250, 256), rig(spec(**WIDE), 250, 256)
    for rigged in (one, other):
        plan = rigged.plan("cuda")
        plan.begin_round()
        rigged.train(20, plan=plan)
        plan.end_round()
    assert one.state.tobytes() == other.state.tobytes()


@pytest.mark.gpu
def test_host_time_per_step(device: Device, rig: Any, spec: Any) -> None:
    """The bar is 30 us; enqueueing only, the device works on meanwhile."""
    rigged = rig(spec(**WIDE), 250, 256)
    plan, best = rigged.plan("cuda"), 1e9
    plan.begin_round()
    for _ in range(50):
        start = time.perf_counter()
        for _ in range(32):
            plan.enqueue(rigged.address)
        best = min(best, (time.perf_counter() - start) / 32)
        plan.collect()
    assert best < 30e-6, f"{best * 1e6:.1f} us"


def test_predicting_alone_needs_no_share(fake_cupy: Any, rig: Any, spec: Any) -> None:
    rigged = rig(spec(layers=[RELU], standardize=True))
    cpu, gpu = rigged.plan("cpu", phases=PREDICTING), rigged.plan("cuda", phases=PREDICTING)
    gpu.begin_round()
    for plan in (cpu, gpu):
        plan.predict(rigged.address)
    np.testing.assert_allclose(gpu.output()[:50], cpu.output()[:50], rtol=1e-4)


def test_the_end_of_a_round_that_was_not_begun_changes_nothing(fake_cupy: Any, rig: Any, spec: Any) -> None:
    rigged = rig(spec(standardize=True))
    gpu = rigged.plan("cuda")
    gpu.begin_round()
    rigged.step(gpu)
    gpu.end_round()
    assert rigged.share.any()
    rigged.share[:] = 0   # the next worker's share, of no slot
    gpu.end_round()
    assert not rigged.share.any()


def test_workers_share_the_devices(fake_cupy: Any, rig: Any, spec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_cupy.runtime, "getDeviceCount", lambda: 2)
    rigged = rig(spec(layers=[RELU], standardize=True))
    plan = rigged.model.compile("cuda", rigged.layout, rigged.state, rigged.base, rigged.share, device=5)
    assert plan._device_plan.device.handle.number == 1
    assert fake_cupy.devices_used == {1}


def test_a_plan_gives_its_cublas_handle_back(fake_cupy: Any, rig: Any, spec: Any) -> None:
    plan = rig(spec()).plan("cuda")
    assert fake_cupy.FakeCublas.handles == 1
    del plan
    gc.collect()
    assert fake_cupy.FakeCublas.handles == 0


def test_cublas_is_the_one_cupy_loads(tmp_path: Path) -> None:
    path = tmp_path / "libcublas.so.13"
    path.write_bytes(Path(_ctypes.__file__).read_bytes())   # any library

    class Cuda:
        @property
        def cublas(self) -> Any:
            return ctypes.CDLL(str(path))

    assert _cublas.library(SimpleNamespace(cuda=Cuda()))._name == str(path)


def test_memory_that_cannot_be_pinned_is_a_warning(fake_cupy: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert cuda.register(4096, 64)
    assert not cuda.register(4096, 13)
    assert "cannot pin 13 bytes" in caplog.text


def test_answers_without_cupy_or_device(fake_cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cuda.answers() is None
    monkeypatch.setattr(fake_cupy.runtime, "getDeviceCount", lambda: 0)
    assert cuda.answers() == "no CUDA device found"
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert "install the extra cuda12" in (cuda.answers() or "")


CASES = [(op, types) for op in ops.load().values() if not op.host_only for types in op.types]


def run_on(device: Device, op: Op, types: str, given: list[Any]) -> None:
    """Launches it once; the arguments, step blocks too, are then what it has made of them."""
    buffers: list[tuple[Any, Any]] = []   # device memory, and the host's that it is of

    def there(host: Any) -> int:
        memory = device.buffer(host.nbytes)
        buffers.append((memory, host))
        device.copy(memory.data.ptr, host.ctypes.data, host.nbytes, TO_DEVICE, device.compute)
        return int(memory.data.ptr)

    values: list[Any] = []
    for value in given:
        if isinstance(value, _native.StepBlock):
            values.append(there(at_address(value.address, _native.STEP_BYTES)))
        elif isinstance(value, list):
            values.append(there(np.array([there(one) for one in value], np.uint64)))
        elif isinstance(value, np.ndarray):
            values.append(there(value))
        else:
            values.append(0 if value is None else value)
    with device.handle, device.compute:
        device.launch(op, types, values)
    for memory, host in buffers:
        device.copy(host.ctypes.data, memory.data.ptr, host.nbytes, TO_HOST, device.compute)
    device.compute.synchronize()


def bits_of(op: Op, values: list[Any]) -> tuple[Any, ...]:
    return tuple(bits(value, STEP_FIELDS) for _, value in named_outcomes(op, values))


@over(("op", "types"), CASES, lambda case: f"{case[0].name}-{case[1]}", sampled=True)
def test_on_the_stand_in(fake_cupy: Any, op: Op, types: str) -> None:
    device = Device(0)
    device.load({(op.name, types)})
    for n in HOSTILE_SIZES[:3]:
        for kind in KINDS:
            if (found := given(op, types, n, kind)) is not None:
                run_on(device, op, types, found)
                host = given(op, types, n, kind) or []
                _native.call_kernel(op.name, types, host)
                assert bits_of(op, found) == bits_of(op, host), kind


@pytest.mark.gpu
@over(("op", "types"), CASES, ids=lambda case: f"{case[0].name}-{case[1]}")
def test_on_a_gpu(device: Device, op: Op, types: str) -> None:
    """Compares an op with its meaning in float64, as on the CPU, for plain values too."""
    for n in (*HOSTILE_SIZES, 5000):
        usual = meaning(op, given(op, types, n))
        for kind in ("", *KINDS):
            if (found := given(op, types, n, kind)) is not None:
                run_on(device, op, types, found)
                compare(op, types, n, kind, found, usual)
