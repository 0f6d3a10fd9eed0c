"""What lists and vectors say is learned."""

from __future__ import annotations

import numpy as np

import streamtrain


def test_what_lists_and_vectors_say_is_learned() -> None:
    random = np.random.default_rng(4)
    count = 12_000
    place = random.normal(3, 2, (count, 3))
    tags = [random.choice(list("abcdefgh"), random.integers(0, 5)).tolist() for _ in range(count)]
    score = np.array([("a" in each) - ("b" in each) for each in tags]) * 3 + place[:, 0] - place[:, 2]
    given = {"tags": tags, "place": place, "y": (score > 0).astype(int)}
    columns = {
        "tags": {"kind": "category", "list": True, "buckets": 64, "embed": 4, "pool": "sum"},
        "place": {"kind": "vector", "size": 3, "standardize": True},
        "y": {"role": "label"},
    }
    tables = {
        "columns": columns, "records": {"format": "json"}, "optimizer": {"name": "adam", "learning_rate": 0.01},
        "model": {"layers": [{"dense": 16, "activation": "relu"}], "loss": "binary_cross_entropy"},
        "train": {"batch_rows": 32, "workers": 1},
    }  # fmt: skip
    snapshot = streamtrain.fit(tables, given)
    assert snapshot.manifest.metrics["total"]["accuracy"] > 0.85, snapshot.manifest.metrics["total"]
    alone = streamtrain.fit({**tables, "columns": {name: columns[name] for name in ("tags", "y")}}, given)
    assert 0.6 < alone.manifest.metrics["total"]["accuracy"] < 0.8
