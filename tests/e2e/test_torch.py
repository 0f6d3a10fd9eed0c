"""A PyTorch module from a topic to a snapshot and back: workers killed, verified, replayed, predicted, followed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import streamtrain
from streamtrain import LiveModel
from streamtrain.clients.snapshot import snapshot_of
from streamtrain.compute.module_spec import COUNTERS
from tests.e2e.answers import answered, predicted
from tests.e2e.harness import LiveJob, rows

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")

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
COUNT = 4_000


def test_from_a_topic_to_a_snapshot_and_back(kafka: Any, tmp_path: Path) -> None:
    (tmp_path / "net_of_a_job.py").write_text(NET)
    job = LiveJob(
        kafka, tmp_path, partitions=1, round_interval="off", averaging_frequency=3,
        model='torch = "net_of_a_job:Net"',
    )  # fmt: skip
    job.produce(COUNT)
    events = job.train("--until-end", failpoints="worker.stepped=9,worker.averaging=3")
    assert any(event["event"] == "worker_died" for event in events)
    assert job.verified()["rows"] == {"trained": COUNT, "dead_lettered": 0, "filtered": 0}
    assert len(job.replayed()["snapshots"]) >= 1

    newest = snapshot_of(job.newest())
    assert newest.statistics[COUNTERS].tolist() == [-(-COUNT // 64)]   # batches, whoever has trained them
    total = newest.manifest.metrics["total"]
    assert total["accuracy"] > total["constant_accuracy"] + 0.15
    data = list(rows(300))
    fitted = streamtrain.fit(job.job, list(rows(COUNT)))
    with LiveModel(job.name, bootstrap=job.bootstrap, module="net_of_a_job:Net") as model:
        model.wait_ready(60)
        answers = model.predict(data)
        assert answers == fitted.predict(data)
    assert np.allclose(predicted(job, data), answered(answers), rtol=1e-5)  # PyTorch's bits go by the rows of a call
