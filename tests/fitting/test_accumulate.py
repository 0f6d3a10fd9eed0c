"""Batches accumulated to an update: the gradient of all their rows, in the memory of a few."""

from __future__ import annotations

import numpy as np
import pytest

import streamtrain
from streamtrain import _native
from streamtrain.compute.model import Model, aligned
from streamtrain.compute.objective import Objective
from streamtrain.fitting.held_rows import hold
from streamtrain.job import Job
from streamtrain.job.mistakes import JobMistakes
from tests.fitting.example import columns, with_train


def test_it_is_one_batch_of_all_their_rows_to_the_bits() -> None:
    rows = columns(3000)
    few = streamtrain.fit(with_train(batch_growth="off", batch_rows=32, accumulate=8), rows)
    many = streamtrain.fit(with_train(batch_growth="off", batch_rows=256), rows)
    alone = streamtrain.fit(with_train(batch_growth="off", batch_rows=32), rows)
    for name, array in many.parameters.items():
        assert few.parameters[name].tobytes() == array.tobytes(), name
    assert few.manifest.metrics["updates"] == many.manifest.metrics["updates"] == 6  # of each of two workers
    assert alone.manifest.metrics["updates"] == 47


def test_an_update_follows_the_mean_gradient_of_its_batches_by_their_weights() -> None:
    tables = with_train(batch_growth="off", batch_rows=32, accumulate=8, workers=1)
    tables |= {"optimizer": {"name": "sgd", "learning_rate": 1.0}, "columns": {**tables["columns"], "a": {}}}
    rows = columns(256)
    fitted = streamtrain.fit(tables, rows)
    job = Job.from_tables(tables)
    model, held = Model(job.model_spec()), hold(job, rows, "rows", batch_rows=32)
    state = aligned(model.state_bytes)
    state[:] = model.initial_state(job.train.seed)
    objective = Objective(model, held.layout, held.slots, state)
    start = objective.start()
    gradient = np.mean([objective.of_batch(at, start)[1] for at in range(8)], axis=0)
    objective.take(start - gradient)
    blocks = model.views(state)
    for name, array in fitted.parameters.items():
        np.testing.assert_allclose(array, blocks[name], rtol=0, atol=1e-6, err_msg=name)
    assert abs(gradient).max() > 0.01


def test_a_step_takes_the_memory_of_a_tile() -> None:
    """For 16 batches of 256 rows, a network's activations alone would be 45 MB: only sums of gradients are more."""
    tables = with_train(batch_growth="off", batch_rows=256, accumulate=16)
    model = {**tables["model"], "layers": [{"dense": 512, "activation": "relu"}] * 3}
    job = Job.from_tables({**tables, "model": model})
    model = Model(job.model_spec())
    sizes = [
        model.program(_native.SlotLayout.make(rows, 1, job.schema.block_specs())).workspace_bytes
        for rows in (job.train.batch_rows, job.train.update_rows)
    ]
    parameters = sum(block.count for block in model.blocks if block.group == "parameters")
    assert sizes[1] - sizes[0] < 1.1 * 8 * parameters + 1_000_000
    assert sizes[1] - sizes[0] < 4 * 16 * 256 * 512


def test_more_rows_than_a_slot_takes_are_refused() -> None:
    with pytest.raises(JobMistakes, match="at most 1,048,576 rows an update"):
        Job.from_tables(with_train(batch_growth="off", batch_rows=4096, accumulate=257))
