"""`fit` of a PyTorch module that a program gives: the same ring, rounds and workers."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import streamtrain
from streamtrain.compute.module_spec import COUNTERS
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


def test_a_state_goes_in_and_out() -> None:
    from streamtrain.integrations.torch import load_snapshot, state_dict

    given = columns(2_000)
    first = streamtrain.fit(GIVEN, given, module=net)
    module = net(streamtrain.integrations.torch.Inputs(4, 1, {}))
    load_snapshot(module, first)
    ours = state_dict(first)
    assert ours.keys() == module.state_dict().keys()
    assert all(torch.equal(ours[name], tensor) for name, tensor in module.state_dict().items())
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
import torch, streamtrain
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
"""


def test_a_class_of_a_programs_main_file(tmp_path: Any) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    command = [sys.executable, str(tmp_path / "program.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("__main__:Net {'prediction':")
