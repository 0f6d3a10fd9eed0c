"""`fit` of a PyTorch module that a program gives: the same ring, rounds and workers."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import streamtrain
from streamtrain.compute.module_spec import COUNTERS, ModuleSpec
from streamtrain.compute.torch import TorchModule
from streamtrain.errors import StreamtrainError, UserMistake
from tests.fitting.example import TABLES, Deaths, columns, dicts, killing_a_worker, same_bits, workers

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
nn = torch.nn
pytestmark = pytest.mark.usefixtures("own_workers")  # none that has forked before PyTorch was imported

GIVEN = {**TABLES, "model": {"loss": "binary_cross_entropy"}}


def net(inputs: Any) -> Any:
    return nn.Sequential(
        nn.Linear(inputs.width, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, inputs.outputs)
    )


def test_a_worker_that_is_killed_costs_nothing() -> None:
    """Random numbers, running moments and counts are those of the batch, whoever trains it."""
    given, died = columns(12_000), Deaths()
    fitted = streamtrain.fit(GIVEN, killing_a_worker(dicts(given), 9_000), module=net, on_event=died)
    assert "SIGKILL" in died and same_bits(fitted, streamtrain.fit(GIVEN, given, module=net))
    assert fitted.statistics[COUNTERS].sum() > 100
    figures = fitted.manifest.metrics["window"]
    assert figures["accuracy"] > 0.85, figures
    fresh = columns(500, seed=9)
    found = np.array([answer["prediction"] > 0.5 for answer in fitted.predict(fresh)])
    assert (found == fresh["y"].astype(bool)).mean() > 0.9


def with_norm(inputs: Any) -> Any:
    return nn.Sequential(nn.Linear(inputs.width, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, inputs.outputs))


def without(inputs: Any) -> Any:
    return nn.Sequential(nn.Linear(inputs.width, 8), nn.ReLU(), nn.Linear(8, inputs.outputs))


def test_a_stream_is_learned_from_its_first_batches_on() -> None:
    """They have one row, two at the end: normalised by their own moments they cost 1.4 times the loss."""
    given = columns(6_000)
    totals = [streamtrain.fit(GIVEN, given, module=each).manifest.metrics["total"] for each in (without, with_norm)]
    assert totals[1]["log_loss"] < 1.1 * totals[0]["log_loss"] < 0.2 * totals[0]["constant_log_loss"], totals


def test_a_state_goes_in_and_out() -> None:
    from streamtrain.integrations.torch import inputs, load_snapshot, offset, state_dict

    given = columns(2_000)
    first = streamtrain.fit(GIVEN, given, module=net)
    module = net(streamtrain.integrations.torch.Inputs(4, 1, {}))
    load_snapshot(module, first)
    ours = state_dict(first)
    assert ours.keys() == module.state_dict().keys()
    bias = "4.bias"
    assert all(torch.equal(ours[name], tensor) for name, tensor in module.state_dict().items() if name != bias)
    assert torch.equal(ours[bias] + offset(first), module.state_dict()[bias]) and offset(first).any()
    load_snapshot(module, first)  # the offset is folded once
    fresh = columns(300, seed=5)
    x, expected = inputs(first, fresh), [each["prediction"] for each in first.predict(fresh)]
    assert np.allclose(module.eval()(x).sigmoid().detach()[:, 0], expected, atol=1e-6)
    assert torch.equal(inputs(first, dicts(fresh)[0]), x[:1])
    starts = TorchModule.of(module).start(ModuleSpec.from_dict(first.manifest.model_spec["torch"]), 0)
    assert np.allclose(starts[bias], ours[bias], atol=1e-6), "where training starts the loss adds its own"
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    second = streamtrain.fit(GIVEN, given, module=module)
    assert all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())
    assert second.statistics[COUNTERS] == 2 * first.statistics[COUNTERS]
    assert second.manifest.metrics["total"]["log_loss"] < first.manifest.metrics["total"]["log_loss"]
    wrong = nn.Linear(4, 1)
    with pytest.raises(UserMistake, match=r"expected a module with 0.weight \[8, 4\]; "):
        load_snapshot(wrong, first)
    with pytest.raises(UserMistake, match="its model is no PyTorch module"):
        state_dict(streamtrain.fit(TABLES, given))


@pytest.mark.parametrize(("label", "loss"), [
    ({"role": "label", "classes": ["lo", "mid", "hi"]},
     {"name": "softmax_cross_entropy", "class_weights": {"hi": 3.0}, "label_smoothing": 0.1}),
    ({"role": "label"}, "poisson"), ({"role": "label"}, {"name": "focal", "balance": 0.8}),
    ({"role": "label"}, "mean_squared_error"),
])  # fmt: skip
def test_a_loaded_module_predicts_as_the_snapshot(label: Any, loss: Any) -> None:
    from streamtrain.integrations.torch import inputs, load_snapshot, offset

    given = columns(1_500)
    y = given["y"].astype(int) + (given["a"] > 6)
    given["y"] = np.array(["lo", "mid", "hi"])[y] if "classes" in label else np.minimum(y, 1)
    job = {**GIVEN, "columns": {**GIVEN["columns"], "y": label}, "model": {"loss": loss}}
    fitted = streamtrain.fit(job, given, module=net)
    module = net(ModuleSpec.from_dict(fitted.manifest.model_spec["torch"]).inputs)
    load_snapshot(module, fitted)
    z = module.eval()(inputs(fitted, given)).detach()
    answers = fitted.predict(given)
    if "classes" in label:
        found, expected = z.softmax(1), [list(each["probabilities"].values()) for each in answers]
    else:
        link = torch.exp if loss == "poisson" else torch.clone if loss == "mean_squared_error" else torch.sigmoid
        found = link(z)[:, 0]
        expected = [each["prediction"] for each in answers]
    assert np.allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert bool(offset(fitted).any()) == (loss != "mean_squared_error")
    module.register_buffer("mask", torch.ones(1, dtype=torch.bool))
    before = module[4].bias.clone()
    with pytest.raises(UserMistake, match=r"no buffers that no snapshot holds, got mask; .*own_constants=True"):
        load_snapshot(module, fitted)
    assert torch.equal(before, module[4].bias)
    load_snapshot(module, fitted, own_constants=True, fold=False)
    assert torch.allclose(module[4].bias + offset(fitted), before)


class Unbiased(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Linear(4, 1), nn.ReLU())


def test_an_output_without_a_bias_is_refused() -> None:
    from streamtrain.integrations.torch import load_snapshot

    fitted, module = streamtrain.fit(GIVEN, columns(500), module=Unbiased), Unbiased()
    before = module[0].bias.clone()
    with pytest.raises(UserMistake, match=r"expected a bias of 1 that is added .* add offset\(snapshot\) .*fold=False"):
        load_snapshot(module, fitted)
    assert torch.equal(before, module[0].bias)
    load_snapshot(module, fitted, fold=False)


class Tiring(nn.Module):
    def __init__(self, inputs: Any) -> None:
        super().__init__()
        self.layer = nn.Linear(inputs.width, 1)

    def forward(self, x: Any) -> Any:
        if len(x) > 20:
            raise ArithmeticError("too many at once")
        return self.layer(x)


def test_what_a_module_raises_ends_it_and_says_so() -> None:
    message = r"worker-\d: model.torch: .*:Tiring: when trained on \d+ rows it raised ArithmeticError: too many at once"
    with pytest.raises(StreamtrainError, match=message):
        streamtrain.fit({**GIVEN, "train": {**GIVEN["train"], "batch_growth": "off"}}, columns(500), module=Tiring)
    assert workers() == []


PROGRAM = """
import pickle, torch, streamtrain
from tests.fitting.example import TABLES, columns

class Net(torch.nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.LazyLinear(hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 1))

    def forward(self, x):
        return self.layers(x)

if __name__ == "__main__":
    fitted = streamtrain.fit({**TABLES, "model": {}}, columns(1500), module=Net)
    print(fitted.manifest.model_spec["torch"]["name"], fitted.predict({"a": 5.0, "b": 2.0, "colour": "red"}))
    with open("fitted.pickle", "wb") as file:
        pickle.dump(fitted, file)
"""


def test_a_class_of_a_programs_main_file(tmp_path: Any) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    command = [sys.executable, str(tmp_path / "program.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("__main__:Net {'prediction':")
    loaded = pickle.loads((tmp_path / "fitted.pickle").read_bytes())  # where __main__ is another program
    assert str(loaded.predict({"a": 5.0, "b": 2.0, "colour": "red"})) in done.stdout
