"""`fit` with dropout: its numbers go by seed, round and place in it, whoever trains the batch."""

from __future__ import annotations

import numpy as np

import streamtrain
from tests.fitting.example import TABLES, columns, dicts, same_bits
from tests.fitting.left import killing_a_worker

LAYERS = [{"dense": 16, "activation": "relu"}, {"dropout": 0.2}]
GIVEN = {**TABLES, "model": {**TABLES["model"], "layers": LAYERS}}


def test_a_worker_that_is_killed_costs_nothing() -> None:
    given, died = columns(6_000), []
    rows = killing_a_worker(dicts(given), at=4_500)
    fitted = streamtrain.fit(GIVEN, rows, on_event=lambda event: died.append(event.get("how")))
    assert "SIGKILL" in died and same_bits(fitted, streamtrain.fit(GIVEN, given))
    other = streamtrain.fit({**GIVEN, "train": {**GIVEN["train"], "seed": 2}}, given)
    assert not same_bits(fitted, other)
    fresh = columns(500, seed=9)
    answers = fitted.predict(fresh)
    assert answers == fitted.predict(fresh)
    found = np.array([answer["prediction"] > 0.5 for answer in answers])
    assert (found == fresh["y"].astype(bool)).mean() > 0.9
