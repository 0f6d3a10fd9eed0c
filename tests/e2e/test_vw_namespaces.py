"""Lines of Vowpal Wabbit for two columns of features and the tag, from a topic to a model: verified and replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from confluent_kafka import Producer

import streamtrain
from streamtrain import LiveModel
from streamtrain.compute import snapshot
from tests.e2e.harness import LiveJob

COUNT = 1_200
COLUMNS = """
user = { kind = "sparse", buckets = 262144, namespaces = ["u", "v"] }
rest = { kind = "sparse", buckets = 262144, embed = 4 }
shard = { kind = "category", buckets = 16, embed = 2, path = "tag", missing = "" }
"""


def lines() -> list[str]:
    """Of which a feature of the user says the label; every 100th cannot be read."""
    random = np.random.default_rng(2)
    made = []
    for number in range(COUNT):
        label = int(random.random() < 0.5)
        user = f"|{random.choice(['u', 'v'])} {'yes' if label else 'no'}:0.5 n{random.integers(9)}"
        rest = f"|page p{random.integers(9)} |other:2 {random.integers(99)}:{random.normal():.3f}"
        value = "x:n/a " if number % 100 == 99 else ""
        made.append(f"{label} 't{number % 3} {user} {rest} {value}")
    return made


def test_each_column_learns_from_its_namespaces(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1, round_interval="off", averaging_frequency=2, format="json",
                  optimizer='name = "adam"\nlearning_rate = 0.05')  # fmt: skip
    head, _, rest = job.path.read_text().replace('format = "json"', 'format = "vw"').partition("[columns]\n")
    job.path.write_text(f'{head}[columns]{COLUMNS}y = {{ role = "label" }}\n[model]\n{rest.partition("[model]")[2]}')
    job.job = streamtrain.Job.load(job.path)
    given = lines()
    producer = Producer({"bootstrap.servers": job.bootstrap, "enable.idempotence": True})
    for at in range(0, COUNT, 30):
        producer.produce(job.records, value="\n".join(given[at : at + 30]), partition=0)
    assert producer.flush(60) == 0
    events = job.train("--until-end", failpoints="worker.stepped=5,worker.averaging=2")
    assert any(event["event"] == "worker_died" for event in events)
    dead = COUNT // 100
    assert job.verified()["rows"] == {"trained": COUNT - dead, "dead_lettered": dead, "filtered": 0}
    assert len(job.replayed()["snapshots"]) >= 1
    newest = job.newest()
    assert {"user.embedding", "rest.embedding", "shard.embedding"} <= {*snapshot.decode(newest.model)}
    with LiveModel(job.name, bootstrap=job.bootstrap) as model:
        model.wait_ready(60)
        yes, no = model.predict([{"tag": "t1", "user": {name: 0.5}, "rest": {"5": 1}} for name in ("yes", "no")])
        assert yes["prediction"] - no["prediction"] > 0.1
        records = [f"1 't1 |u {name}:0.5 | 5".encode() for name in ("yes", "no")]
        indexes = job.job.plan().decode(records)["user"].values.tolist()
        as_read = model.predict([{"tag": "t1", "user": [[index, 0.5]], "rest": {"5": 1}} for index in indexes])
        assert [each["prediction"] for each in as_read] == [yes["prediction"], no["prediction"]]
