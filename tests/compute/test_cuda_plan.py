"""How the CUDA backend drives CuPy, on a stand-in that runs the host's kernels: addresses, order, copies, graphs."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamtrain.compute.backends import _cublas, cuda

RELU = {"dense": 8, "activation": "relu"}
SHAPES: list[dict[str, Any]] = [
    {"layers": [RELU, {"dense": 4, "activation": "tanh"}], "standardize": True, "categories": 2},
    {"layers": [RELU, RELU], "loss": "softmax_cross_entropy"},
    {"loss": "mean_squared_error", "standardize_label": True, "optimizer": "momentum"},
    {},
]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Any:
    path = Path(__file__).parents[1] / "fakes" / "fake_cupy.py"
    found = importlib.util.spec_from_file_location("cupy", path)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.setattr(_cublas, "library", module.FakeCublas)
    return module


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("in_round", [False, True])
def test_steps_agree_with_the_cpu(fake: Any, rig: Any, spec: Any, shape: dict[str, Any], in_round: bool) -> None:
    one, other = rig(spec(**shape)), rig(spec(**shape))
    cpu, gpu = one.plan("cpu"), other.plan("cuda")
    one.statistics(cpu)
    other.statistics(gpu)
    assert one.base.tobytes() == other.base.tobytes()
    if in_round:
        gpu.begin_round()
    for _ in range(5):   # more than there are slot buffers
        one.fill()
        other.fill()
        assert one.step(cpu) == pytest.approx(other.step(gpu), rel=1e-4)
        assert gpu.step.rows == 50 and gpu.step.not_finite == 0
    if in_round:
        gpu.end_round()
    learned = one.model.learned_bytes
    np.testing.assert_allclose(
        one.state[:learned].view(np.float32), other.state[:learned].view(np.float32), rtol=1e-3, atol=1e-3
    )
    for name, block in one.model.scores(one.share).items():
        if name != "score.histogram":
            np.testing.assert_allclose(other.model.scores(other.share)[name], block, rtol=1e-3, err_msg=name)
    cpu.predict(one.address)
    gpu.predict(other.address)
    np.testing.assert_allclose(gpu.output(), cpu.output(), rtol=1e-3, atol=1e-4)


def test_steps_enqueued_ahead_give_their_results_in_order(fake: Any, rig: Any, spec: Any) -> None:
    from streamtrain import _native

    one, other = rig(spec(layers=[RELU])), rig(spec(layers=[RELU]))
    cpu, gpu = one.plan("cpu"), other.plan("cuda")
    expected = [one.step(cpu) for _ in range(6)]
    gpu.begin_round()
    device_plan = cuda.device_plan(gpu)
    for number in range(1, 7):
        step = gpu.step
        step.optimizer_step, step.learning_rate = number, 0.01
        step.beta1_power, step.beta2_power = 0.9**number, 0.999**number
        device_plan.enqueue("train", other.address)
    assert device_plan.collect() == 6
    blocks = [_native.StepBlock.at(device_plan.block(number)) for number in range(6)]
    np.testing.assert_allclose([block.loss_sum / block.weight_sum for block in blocks], expected, rtol=1e-4)


def test_predicting_alone_needs_no_share(fake: Any, rig: Any, spec: Any) -> None:
    rigged = rig(spec(layers=[RELU], standardize=True))
    cpu, gpu = rigged.plan("cpu", train=False), rigged.plan("cuda", train=False)
    gpu.begin_round()
    for plan in (cpu, gpu):
        plan.predict(rigged.address)
    np.testing.assert_allclose(gpu.output(), cpu.output(), rtol=1e-4)


def test_the_end_of_a_round_that_was_not_begun_changes_nothing(fake: Any, rig: Any, spec: Any) -> None:
    rigged = rig(spec(standardize=True))
    gpu = rigged.plan("cuda")
    gpu.begin_round()
    gpu.statistics(rigged.address)
    gpu.end_round()
    assert rigged.share.any()
    rigged.share[:] = 0   # the next worker's share, of no slot
    gpu.end_round()
    assert not rigged.share.any()


def test_workers_share_the_devices(fake: Any, rig: Any, spec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake.runtime, "getDeviceCount", lambda: 2)
    rigged = rig(spec())
    plan = rigged.model.compile("cuda", rigged.layout, rigged.state, rigged.base, rigged.share, device=5)
    assert cuda.device_plan(plan).device.handle.number == 1


def test_memory_that_cannot_be_pinned_is_a_warning(fake: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert cuda.register(4096, 64)
    assert not cuda.register(4096, 13)
    assert "cannot pin 13 bytes" in caplog.text


def test_answers_without_cupy_or_device(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cuda.answers() is None
    monkeypatch.setattr(fake.runtime, "getDeviceCount", lambda: 0)
    assert cuda.answers() == "no CUDA device found"
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert "install the extra cuda12" in (cuda.answers() or "")
