"""A PyTorch module as a job's model: a program names the module, and answers have PyTorch's bits, which depend on the
rows of a call.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import streamtrain
from streamtrain.compute.module_spec import COUNTERS
from tests.e2e.answers import answered, predicted
from tests.e2e.sink import Feature, Plan, Sink, run_sink

NET = """
import torch

class Net(torch.nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.numbers = inputs.columns["numbers"]
        self.body = torch.nn.Sequential(
            torch.nn.Linear(inputs.width, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Dropout(0.1),
            torch.nn.Linear(16, inputs.outputs),
        )
        self.linear = torch.nn.Linear(4, inputs.outputs)

    def forward(self, x):
        return self.body(x) + self.linear(x[:, self.numbers])
"""


def test_a_pytorch_module(kafka: Any, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
    (tmp_path / "net_of_a_job.py").write_text(NET)

    def check(sink: Sink) -> None:
        count = len(sink.rows)
        assert sink.newest.statistics[COUNTERS].tolist() == [-(-count // 16)]  # batches, whoever has trained them
        assert sink.total["accuracy"] > sink.total["constant_accuracy"] + 0.15
        fitted = streamtrain.fit(sink.live.job, sink.rows)
        asked = [sink.without_labels(row) for row in sink.rows[:300]]
        with sink.live.model(module="net_of_a_job:Net") as model:
            answers = model.predict(asked)
        assert answers == fitted.predict(asked)
        assert np.allclose(predicted(sink.live, asked), answered(answers), rtol=1e-5)

    plan = Plan({"model": 'torch = "net_of_a_job:Net"'}, fits=False, once=True)
    threads = torch.get_num_threads()
    try:
        run_sink(kafka, tmp_path, [Feature("a module", check=check)], plan)
    finally:  # `predict` has this process to itself otherwise
        torch.set_num_threads(threads)
        torch.set_deterministic_debug_mode("default")
