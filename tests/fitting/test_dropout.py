"""`fit` with dropout: its numbers go by seed, round and place in it, whoever trains the batch."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

import streamtrain
from tests.fitting.example import TABLES, columns, dicts, same_bits
from tests.fitting.left import workers

LAYERS = [{"dense": 16, "activation": "relu"}, {"dropout": 0.2}]
GIVEN = {**TABLES, "model": {**TABLES["model"], "layers": LAYERS}}


def test_a_worker_that_is_killed_costs_nothing() -> None:
    given = columns(6_000)
    killed = threading.Event()

    def rows() -> Iterator[dict[str, Any]]:
        for number, row in enumerate(dicts(given)):
            if number == 4_500 and not killed.is_set():
                os.kill(workers()[0], signal.SIGKILL)
                killed.set()
            yield row

    fitted, again = streamtrain.fit(GIVEN, rows()), streamtrain.fit(GIVEN, given)
    assert killed.is_set() and same_bits(fitted, again)
    other = streamtrain.fit({**GIVEN, "train": {**GIVEN["train"], "seed": 2}}, given)
    assert not same_bits(fitted, other)
    fresh = columns(500, seed=9)
    answers = fitted.predict(fresh)
    assert answers == fitted.predict(fresh)
    found = np.array([answer["prediction"] > 0.5 for answer in answers])
    assert (found == fresh["y"].astype(bool)).mean() > 0.9
