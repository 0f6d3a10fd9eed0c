"""Tones of two pitches in noise from a program to a snapshot that tells them apart, verified, replayed and served."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

import streamtrain
from streamtrain import Job, LiveModel, RecordWriter
from streamtrain.checks.replay import replay
from streamtrain.checks.verify import verify
from streamtrain.kafka.snapshots import SnapshotTopic
from tests.e2e.test_images import requests
from tests.e2e.test_sparse import command

pytest.importorskip("soundfile")
from sounds import labelled, tone, wav

COUNT = 600
JOB = """
name = "{name}"
[kafka]
bootstrap.servers = "{bootstrap}"
[topics]
records = {{ partitions = 1 }}
[records]
{records}
[columns]
clip = {{ kind = "audio", rate = 8000, seconds = 0.25, features = {{ mel = 16, step = 128 }}, standardize = true }}
what = {{ role = "label", classes = ["low", "high"] }}
[model]
layers = []
[train]
batch_rows = 16
batch_growth = "off"
workers = 1
round_interval = "off"
[publish]
interval = "500ms"
"""


@pytest.mark.parametrize("records", ["", 'format = "msgpack"'], ids=["usual", "bytes"])
def test_from_a_program_to_a_snapshot_and_back(kafka: Any, tmp_path: Path, records: str) -> None:
    name = kafka.fresh_name("sounds")
    good = [{"clip": raw, "what": what} for raw, what in labelled(COUNT)]
    path = tmp_path / f"{name}.toml"
    path.write_text(JOB.format(name=name, bootstrap=kafka.bootstrap, records=records))
    command("topics", "create", str(path))
    command("check", str(path))
    bad = [{"clip": raw, "what": "low"} for raw in (good[0]["clip"][:300], b"none", wav(tone(2000), 44100))]
    rows = [*good[:300], *bad, *good[300:]]
    with RecordWriter(path) as writer:
        for start in range(0, len(rows), 50):
            writer.write(rows[start : start + 50])
    command("train", str(path), "--until-end")
    job = Job.load(path)
    report = verify(job)
    assert report.ok, "\n".join(report.lines())
    assert report.as_dict()["rows"] == {"trained": COUNT, "dead_lettered": len(bad), "filtered": 0}
    with SnapshotTopic(name, kafka.bootstrap) as topic:
        first, newest = topic.list()[0].manifest.version, topic.newest()
    assert newest is not None
    replayed = replay(job, first)
    assert replayed.ok, "\n".join(replayed.lines())
    fitted = streamtrain.fit(job, rows)
    asked = [{"clip": row["clip"]} for row in good[:20]]
    with LiveModel(name, bootstrap=kafka.bootstrap) as model:
        model.wait_ready(60)
        answers = model.predict(asked)
        assert answers == fitted.predict(asked)
        assert model.predict({"clip": base64.b64encode(good[0]["clip"]).decode()}) == answers[0]
        fresh = [(wav(tone(2000, hz, 0.3, 10_000 + seed)), hz > 500) for seed in range(100) for hz in (440.0, 660.0)]
        told = [answer["prediction"] > 0.5 for answer in model.predict([{"clip": raw} for raw, _ in fresh])]
    assert sum(one == is_high for one, (_, is_high) in zip(told, fresh, strict=True)) > 190
    requests(path, asked, answers, kafka.bootstrap, name)
