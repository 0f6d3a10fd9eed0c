"""The DeepFM of the examples, as a graph and as a PyTorch module: one network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from streamtrain.compute.builder import PREDICTING
from streamtrain.job import Job
from tests.compute.conftest import Rig

pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
pytestmark = pytest.mark.full

EXAMPLES = Path(__file__).parents[2] / "examples"
DENSE = {"linear": "linear", "first": "deep.0", "second": "deep.3", "deep": "deep.5"}   # of the graph, of the module


def test_both_predict_the_same_from_the_same_parameters() -> None:
    jobs = [Job.without_kafka(EXAMPLES / f"flights_deepfm{end}.toml") for end in ("", "_torch")]
    graph, module = (Rig(job.model_spec(), network=job.network) for job in jobs)
    for block in graph.blocks:
        assert np.array_equal(graph.blocks[block], module.blocks[block])
    ours, theirs = graph.model.views(graph.state), module.model.views(module.state)
    for name in ours.keys() & theirs.keys():
        if ours[name].shape == theirs[name].shape:
            theirs[name][...] = ours[name]
    random = np.random.default_rng(1)
    for vertex, layer in DENSE.items():
        weight, bias = f"{vertex}.weight", f"{vertex}.bias"
        ours[weight][...] = random.normal(0, 0.3, ours[weight].shape)
        ours[bias][...] = random.normal(0, 0.3, ours[bias].shape)
        theirs[f"module.{layer}.weight"][...] = ours[weight].T
        theirs[f"module.{layer}.bias"][...] = ours[bias]
    found = []
    for rigged in (graph, module):
        plan = rigged.plan(phases=PREDICTING)
        plan.predict(rigged.address)
        found.append(plan.output()[: rigged.rows].copy())
    assert np.ptp(found[0]) > 0.5
    np.testing.assert_allclose(*found, atol=2e-6)
