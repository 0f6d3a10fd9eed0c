"""The Reuters data in VW's format, from what `init` guesses to a model that has learned, verified and replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from streamtrain import LiveModel
from streamtrain.checks.replay import replay
from streamtrain.checks.verify import verify
from streamtrain.job import Job
from streamtrain.kafka.snapshots import SnapshotTopic
from tests.e2e import commands

DATA = Path(__file__).parents[3] / "shared/data/rcv1/rcv1_small.dat"


def command(*arguments: str) -> str:
    done = commands.run([*arguments])
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.full
def test_reuters_from_init_to_a_snapshot(kafka: Any, tmp_path: Path) -> None:
    if not DATA.exists():
        pytest.skip("no data set rcv1")
    sample = tmp_path / "rcv1.vw"
    sample.write_bytes(DATA.read_bytes())
    name = kafka.fresh_name("rcv1")
    path = tmp_path / f"{name}.toml"
    command("init", str(path), "--from", str(sample), "--label", "label", "-b", kafka.bootstrap)
    text = path.read_text()
    assert 'format = "vw"' in text and 'kind = "sparse", buckets = 262144' in text
    path.write_text(text.replace('round_interval = "250ms"', 'round_interval = "off"'))
    command("topics", "create", str(path))
    command("check", str(path))
    lines = sample.read_bytes().splitlines(keepends=True)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for start in range(0, len(lines), 100):
        producer.produce(f"{name}.records", b"".join(lines[start : start + 100]), partition=0)
    assert producer.flush(60) == 0
    command("train", str(path), "--until-end")
    report = verify(Job.load(path))
    assert report.ok, "\n".join(report.lines())
    with SnapshotTopic(name, kafka.bootstrap) as topic:
        held = [located.manifest.version for located in topic.list()]
        newest = topic.newest()
    assert newest is not None and newest.manifest.rows_seen == len(lines)
    replayed = replay(Job.load(path), held[0])
    assert replayed.ok, "\n".join(replayed.lines())
    figures = newest.manifest.metrics["total"]
    assert figures["accuracy"] > 0.75 and figures["auc"] > 0.85, figures
    with LiveModel(name, bootstrap=kafka.bootstrap) as model:
        model.wait_ready(60)
        pairs = [[34884, 0.06], [34889, 0.3]]
        cells = (pairs, {str(index): value for index, value in pairs}, [])
        answers = model.predict([{"features": each} for each in cells])
        assert answers[0] == answers[1] != answers[2]
