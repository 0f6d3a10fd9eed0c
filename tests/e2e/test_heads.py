"""Several heads in a job file: from a topic to a snapshot and back, while workers are killed; and to answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
from confluent_kafka import Producer

import streamtrain
from streamtrain import LiveModel, read_predictions
from tests.e2e.harness import LiveJob, rows

COUNT = 3_000
COLUMNS = """delay = { role = "label", missing = "skip_head", standardize = true }
mode = { role = "label", missing = "skip_head", classes = ["walk", "sit", "run"] }"""
GRAPH = """
[model.graph]
shared = { dense = 16, activation = "relu", of = "input" }
tower = { dense = 8, activation = "tanh", of = "shared" }
mode = { dense = 3, of = "shared" }          # what the loss takes, as it is
[model.heads.y]
[model.heads.delay]
loss = { name = "huber", delta = 0.5 }
weight = 0.3
of = "tower"
[model.heads.mode]
loss = { name = "softmax_cross_entropy", class_weights = { run = 2 } }
"""
LAYERS = GRAPH.partition("[model.heads.y]")[2].replace('of = "tower"', "")
LAYERS = 'layers = [ { dense = 16, activation = "relu" } ]\n[model.heads.y]' + LAYERS
HEADS: dict[str, Any] = {
    "more_columns": COLUMNS, "label": 'missing = "skip_head"', "partitions": 1, "round_interval": "off",
}  # fmt: skip


def labelled(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Rows of which some lack one label, and every tenth all."""
    random, made = np.random.default_rng(seed), []
    for at, row in enumerate(rows(count, seed)):
        score = row["x1"] - row["x2"]
        row |= {"delay": round(20 + 3 * score, 3), "mode": "walk" if score < -2 else "sit" if score < 2 else "run"}
        for name in ("y", "delay", "mode"):
            if at % 10 == 0 or random.random() < 0.3:
                row[name] = None
        made.append(row)
    return made


def without_labels(given: list[dict[str, Any]]) -> int:
    return sum(row["y"] is row["delay"] is row["mode"] is None for row in given)


@pytest.mark.parametrize("model", [GRAPH, LAYERS], ids=["graph", "layers"])
def test_from_a_topic_to_a_snapshot_and_back(kafka: Any, tmp_path: Path, model: str) -> None:
    job = LiveJob(kafka, tmp_path, averaging_frequency=2, batch_rows=16, model=model, **HEADS)
    given = labelled(COUNT)
    job.produce_values(map(msgpack.packb, given))
    events = job.train("--until-end", failpoints="worker.stepped=9,worker.averaging=3")
    assert any(event["event"] == "worker_died" for event in events)
    left_out = without_labels(given)
    assert left_out > 300
    assert job.verified()["rows"] == {"trained": COUNT - left_out, "dead_lettered": 0, "filtered": left_out}
    assert len(job.replayed()["snapshots"]) >= 1
    newest = job.newest().manifest
    total = newest.metrics["total"]
    for name in ("y", "delay", "mode"):
        assert total[f"{name}.rows"] == sum(row[name] is not None for row in given)
    assert total["rows"] == COUNT - left_out and total["loss"] > 0
    assert total["y.log_loss"] < 0.9 * total["y.constant_log_loss"]
    assert total["delay.rmse"] < 0.9 * total["delay.constant_rmse"]
    assert total["mode.accuracy"] > total["mode.constant_accuracy"] + 0.05
    settings = newest.job_settings["model"]
    assert set(settings["heads"]) == {"y", "delay", "mode"} and "loss" not in settings
    fitted = streamtrain.fit(job.job, given)
    assert fitted.manifest.metrics["total"] == total
    asked = [{name: row[name] for name in ("x1", "x2", "x3", "x4", "colour")} for row in rows(200, seed=5)]
    with LiveModel(job.name, bootstrap=job.bootstrap) as live:
        live.wait_ready(60)
        answers = live.predict(asked)
        columns = {name: [row[name] for row in asked] for name in asked[0]}
        assert live.predict(columns) == answers == fitted.predict(asked)
        assert live.predict(asked[0]) == answers[0]
    assert list(answers[0]["prediction"]) == ["y", "delay", "mode"]
    assert sum(answers[0]["probabilities"]["mode"].values()) == pytest.approx(1, abs=1e-6)
    assert answered(job, asked) == answers
    job.verified()
    job.produce_values(map(msgpack.packb, labelled(100, 1)))
    assert job.train("--until-end")  # its own snapshot fits it
    job.verified()
    told = job.command("history", "--json").stdout.splitlines()
    assert "delay.rmse" in json.loads(told[-1])["metrics"]["total"]
    shown = job.command("status").stdout
    assert "in total, delay" in shown and "RMSE" in shown and "mode, walk" in shown


def answered(job: LiveJob, asked: list[dict[str, Any]]) -> list[Any]:
    """By way of the topics of requests and predictions."""
    producer = Producer({"bootstrap.servers": job.bootstrap})
    for number, row in enumerate(asked):
        producer.produce(f"{job.name}.requests", value=msgpack.packb(row), key=str(number), partition=0)
    assert producer.flush(60) == 0
    assert job.command("predict", "--until-end").returncode == 0
    found = {int(each.key or b""): each.prediction
             for each in read_predictions(job.name, bootstrap=job.bootstrap, until_end=True)}  # fmt: skip
    return [found[number] for number in range(len(asked))]


def test_another_set_of_heads_does_not_fit_the_snapshot(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, model=LAYERS, **HEADS)
    job.produce_values(map(msgpack.packb, labelled(200)))
    job.train("--until-end")
    job.path.write_text(job.path.read_text().replace("weight = 0.3", "weight = 0.4"))
    done = job.command("train", "--until-end")
    assert done.returncode == 2
    assert "model.heads.delay.weight: the snapshot has 0.3, the job file 0.4" in done.stderr


def test_a_head_ends_training(kafka: Any, tmp_path: Path) -> None:
    more = "\n[train.early_stopping]\nscore = 'delay.rmse'\nbest_score = 100.0\n[publish]"
    job = LiveJob(kafka, tmp_path, model=LAYERS, **HEADS)
    job.path.write_text(job.path.read_text().replace("[publish]", more))
    job.produce_values(map(msgpack.packb, labelled(12_000)))
    trainer = job.start("train")
    assert trainer.finish() == 0
    standing = job.newest().manifest.metrics["early_stopping"]
    assert standing["reason"] == "best_score" and 0 < standing["score"] < 100
    job.verified()
