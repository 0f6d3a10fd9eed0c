"""Bad input on a real Kafka: what cannot be trained is told and counted, the rest is trained, nothing crashes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
from confluent_kafka.admin import AdminClient, NewTopic

from streamtrain.compute.snapshot import decode
from tests.e2e.harness import LiveJob, rows


def dead_letters(job: LiveJob) -> list[dict[str, Any]]:
    done = job.command("read", "dead-letters", "--from-beginning", "--until-end", "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_gradient_that_would_only_poison_the_optimizers_moments(kafka, tmp_path: Path) -> None:
    """The loss and the update are finite: the square of 1e20 is what does not fit Adam's second moment."""
    job = LiveJob(kafka, tmp_path, partitions=1, workers=1, max_dead_letter_share=0.5)
    job.path.write_text(job.path.read_text().replace(", standardize = true", ""))
    good = [msgpack.packb(row) for row in rows(2000)]
    one = next(rows(1, seed=3))
    poison = [msgpack.packb({**one, "x1": 1e24, "y": label}) for label in (0, 1)]  # one of them is mistaken
    job.produce_values([*good[:1000], *poison, *good[1000:]])
    job.train("--until-end")
    (letter,) = dead_letters(job)
    assert "not finite" in letter["rows"][0]["reason"], letter
    assert job.verified()["rows"] == {"trained": 2002 - 64, "dead_lettered": 64, "filtered": 0}
    with job.topic() as topic:
        stored = topic.newest(trainer=True)
    assert stored is not None and stored.trainer is not None
    for name, array in {**decode(stored.model), **decode(stored.trainer)}.items():
        assert np.isfinite(array).all(), name
    job.replayed()


def test_a_record_with_many_bad_rows_is_one_dead_letter(kafka, tmp_path: Path) -> None:
    """Larger than a batch, and larger than what a dead letter carries."""
    job = LiveJob(kafka, tmp_path, partitions=1, publish_interval="1h", max_dead_letter_share=0.9)
    table = list(rows(4000))
    for row in table[::4]:
        row["x3"] = "n/a"
    job.produce_values([msgpack.packb(table[:400]), msgpack.packb([{**row, "padding": "." * 150} for row in table])])
    job.train("--until-end")
    small, large = dead_letters(job)
    assert small["value_bytes"] < 512_000 < large["value_bytes"]
    assert (small["value"] is None, large["value"] is None) == (False, True)
    assert job.verified()["rows"] == {"trained": 3300, "dead_lettered": 1100, "filtered": 0}
    job.replayed()


def test_fewer_partitions_are_a_gap_that_must_be_accepted(kafka, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=3)
    job.produce(900)
    job.train("--until-end")
    client = AdminClient({"bootstrap.servers": job.bootstrap})
    client.delete_topics([job.records])[job.records].result(10)
    deadline = time.monotonic() + 120
    while job.records in job.admin.names() and time.monotonic() < deadline:
        pass
    client.create_topics([NewTopic(job.records, 1, 1)])[job.records].result(10)
    job.settings["partitions"] = 1
    job.produce(500, seed=1)
    refused = job.command("train", "--until-end")
    assert refused.returncode == 2 and "--accept-gap" in refused.stderr, refused.stderr
    assert "partition 2 offset 300, found topic id" in refused.stderr, refused.stderr
    assert job.train("--until-end", "--accept-gap")[-1]["rows"] == 1400
    assert job.verified()["rows"]["trained"] == 1400


def test_columns_or_a_model_that_no_longer_fit_are_refused_with_the_difference(kafka, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path)
    job.produce(500)
    job.train("--until-end")
    written = job.path.read_text()
    for before, after, named in (
        ("{1..4}", "{1..5}", "x{1..5}"),
        ("dense = 16", "dense = 24", "24"),
        ("buckets = 16", "buckets = 32", "32"),
    ):
        job.path.write_text(written.replace(before, after))
        refused = job.command("train", "--until-end")
        assert refused.returncode == 2 and named in refused.stderr and "--fresh" in refused.stderr, refused.stderr
    job.path.write_text(written.replace("learning_rate = 3e-3", "learning_rate = 1e-3"))
    job.train("--until-end")
