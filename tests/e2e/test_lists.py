"""Lists, vectors and texts from a topic to a snapshot and back: verified, replayed, predicted; the same by `fit`."""

from __future__ import annotations

import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_format import needs_no_option

import streamtrain
from streamtrain import LiveModel
from streamtrain.columns.formats import encode_rows, format_names, mistakes
from streamtrain.columns.schema import Schema
from tests.e2e.harness import LiveJob, rows

COUNT = 2_000
COLUMNS = """
tags = { kind = "category", list = true, buckets = 64, embed = 4, most = 6, missing = "" }
stops = { kind = "category", list = true, buckets = 16, embed = 2, most = 3, cut = true, pool = "sum", missing = "" }
place = { kind = "vector", size = 3, standardize = true, missing = 0 }
said = { kind = "text", ngrams = [1, 2], buckets = 512, most = 9, missing = "" }
"""
PROTO = (
    'syntax = "proto3"; message Rows { repeated Row rows = 1; } message Row { double x1 = 1; double x2 = 2; '
    "double x3 = 3; double x4 = 4; string colour = 5; repeated string tags = 6; repeated sint32 stops = 7; "
    "repeated double place = 8; string said = 9; optional int32 y = 10; }"
)


def given(count: int = COUNT) -> list[dict[str, Any]]:
    """Rows of which a tag says the label; every 50th has too many tags, every 40th too many words."""
    random = np.random.default_rng(5)
    made = []
    for number, row in enumerate(rows(count)):
        label = int(random.random() < 0.5)
        tags = random.choice(list("abcdefgh"), random.integers(0, 5)).tolist() + (["yes"] if label else [])
        cells: dict[str, Any] = {"tags": tags * 9 if number % 50 == 7 and tags else tags, "y": label}
        cells["said"] = " ".join(random.choice(["Fog", "late,", "AGAIN", "\u00e9t\u00e9"], 5 + number % 40 // 39))
        if number % 3:
            cells["stops"] = random.integers(0, 30, random.integers(0, 6)).tolist()
        if number % 4:
            cells["place"] = random.normal(3, 2, 3).round(3).tolist()
        made.append({**row, **cells})
    return made


@pytest.mark.parametrize("form", [*filter(needs_no_option, format_names()), f"protobuf\"\nschema = \"{PROTO}"],
                         ids=lambda form: form.partition('"')[0])  # fmt: skip
def test_from_a_topic_to_a_snapshot_and_back(kafka: Any, tmp_path: Path, form: str) -> None:
    columns = tomllib.loads(COLUMNS) | {"y": {"role": "label"}}
    if '"' not in form and list(mistakes(form, Schema.from_columns(columns, "mean_squared_error"))):
        pytest.skip(f"{form} has no lists")
    form = form.replace(PROTO, PROTO.replace('"', '\\"'))  # as the job file has it
    job = LiveJob(kafka, tmp_path, partitions=1, round_interval="off", more_columns=COLUMNS, format=form,
                  averaging_frequency=2)  # fmt: skip
    data = given()
    good = [row for row in data if len(row["tags"]) <= 6 and row["said"].count(" ") < 5]
    dead = COUNT - len(good)
    assert dead > 10
    cuts = [0, 1, 3, 300, 307, 1200, COUNT]
    job.produce_values(
        [encode_rows(job.job.records.named, job.job.schema, data[start:end]) for start, end in pairwise(cuts)]
    )
    failpoints = "worker.stepped=9,worker.averaging=3"
    events = job.train("--until-end", failpoints=failpoints)
    assert any(event["event"] == "worker_died" for event in events)
    assert job.verified()["rows"] == {"trained": COUNT - dead, "dead_lettered": dead, "filtered": 0}
    assert len(job.replayed()["snapshots"]) >= 1
    newest = job.newest()
    names = {name for name in streamtrain.compute.snapshot.decode(newest.model)}
    assert {"tags.embedding", "stops.embedding", "said.embedding", "standardize.vectors"} <= names
    fitted = streamtrain.fit(job.job, data)
    with LiveModel(job.name, bootstrap=job.bootstrap) as model:
        model.wait_ready(60)
        answers = model.predict(good[:300])
        assert answers == fitted.predict(good[:300])
        assert [model.predict(row) for row in good[:20]] == answers[:20]
        whole = [row for row in good if "stops" in row and "place" in row][:100]
        columns = {name: [row[name] for row in whole] for name in whole[0]}
        assert model.predict({**columns, "place": np.array(columns["place"])}) == model.predict(whole)
    assert job.command("check").returncode == 0


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
