"""CIFAR-10's JPEGs from a program to a snapshot of a dense network and back: trained, verified, replayed, predicted."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import streamtrain
from streamtrain import Job, LiveModel, RecordWriter, read_predictions
from streamtrain.checks.replay import replay
from streamtrain.checks.verify import verify
from streamtrain.kafka.snapshots import SnapshotTopic
from tests.e2e.test_sparse import command

pytest.importorskip("cv2")
from pictures import bomb, labelled

COUNT = 3_000
JOB = """
name = "{name}"
[kafka]
bootstrap.servers = "{bootstrap}"
[topics]
records = {{ partitions = 1 }}
[records]
format = "packed"
[columns]
photo = {{ kind = "image", size = [32, 32] }}
what = {{ role = "label", classes = {classes} }}
[model]
layers = [ {{ dense = 64, activation = "relu" }} ]
loss = "softmax_cross_entropy"
[optimizer]
name = "adam"
learning_rate = 1e-3
[train]
batch_rows = 16
batch_growth = "off"
workers = 1
round_interval = "off"
[publish]
interval = "500ms"
"""


def test_from_a_program_to_a_snapshot_and_back(kafka: Any, tmp_path: Path) -> None:
    name = kafka.fresh_name("images")
    good = [{"photo": raw, "what": what} for raw, what in labelled(COUNT)]
    classes = sorted({row["what"] for row in good})
    path = tmp_path / f"{name}.toml"
    path.write_text(JOB.format(name=name, bootstrap=kafka.bootstrap, classes=json.dumps(classes)))
    command("topics", "create", str(path))
    command("check", str(path))
    bad = [{"photo": raw, "what": classes[0]} for raw in (good[0]["photo"][:300], b"none", bomb(65535, 65535))]
    rows = [*good[:500], *bad, *good[500:]]
    with RecordWriter(path) as writer:
        for start in range(0, len(rows), 100):
            writer.write(rows[start : start + 100])
    command("train", str(path), "--until-end")
    job = Job.load(path)
    report = verify(job)
    assert report.ok, "\n".join(report.lines())
    assert report.as_dict()["rows"] == {"trained": COUNT, "dead_lettered": len(bad), "filtered": 0}
    with SnapshotTopic(name, kafka.bootstrap) as topic:
        held = [located.manifest.version for located in topic.list()]
        newest = topic.newest()
    assert newest is not None
    replayed = replay(job, held[0])
    assert replayed.ok, "\n".join(replayed.lines())
    figures = newest.manifest.metrics["total"]
    assert figures["log_loss"] < figures["constant_log_loss"] - 0.02, figures
    fitted = streamtrain.fit(job, rows)
    asked = [{"photo": row["photo"]} for row in good[:20]]
    with LiveModel(name, bootstrap=kafka.bootstrap) as model:
        model.wait_ready(60)
        answers = model.predict(asked)
        assert answers == fitted.predict(asked)
        assert model.predict({"photo": base64.b64encode(good[0]["photo"]).decode()}) == answers[0]
    requests(path, asked, answers, kafka.bootstrap, name)


def requests(path: Path, asked: list[Any], answers: list[Any], bootstrap: str, name: str) -> None:
    """The same by the stream processor."""
    with RecordWriter(path, "requests") as writer:
        writer.write(asked)
    command("predict", str(path), "--until-end")
    given = [answer.prediction for answer in read_predictions(name, bootstrap=bootstrap, until_end=True)]
    assert given == [answers]
