"""The trainer from topic to topic: rows counted exactly, snapshots whole, resumed where it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from streamtrain.kafka.round_logs import round_logs
from streamtrain.topics.manifest import Counts
from streamtrain.topics.rounds import first_chain
from streamtrain.topics.shelves import is_manifest
from streamtrain.topics.snapshots import publish
from streamtrain.topics.topic import Message, job_topics
from tests.e2e.harness import LiveJob, rows
from tests.e2e.test_gaps import delete
from tests.e2e.threaded import rows_after, trained


@pytest.mark.parametrize("workers", [1, 3])  # two: in every sink
def test_every_row_is_trained_once(kafka: Any, tmp_path: Path, workers: int) -> None:
    job = LiveJob(kafka, tmp_path, workers=workers, batch_rows=16, produce=5000)  # 100 updates for each of 3 workers
    assert rows_after(job.path) == 5000
    job.check(5000)
    total = job.newest().manifest.metrics["total"]
    assert total["log_loss"] < total["constant_log_loss"] and total["auc"] > 0.85


def test_batches_grow_over_runs_as_the_terms_say_and_replay_gives_the_same_bits(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1, batch_growth=60, workers=1, round_interval="off", produce=2000)
    rows_after(job.path, max_rows=700)
    rows_after(job.path)
    job.check(2000)
    logs = list(round_logs(job.job.kafka_consumer(), f"{job.name}.rounds"))
    assert all(terms.batch_growth == {"name": "rows_seen", "rows": 60} for log in logs for terms in log.terms)
    sizes = np.concatenate([log.slots["rows"] for log in logs]).tolist()
    seen = np.cumsum([0, *sizes[:-1]])
    ends = {700, 2000}  # of the runs: there a batch closes before it is full
    grown = [(size, max(1, at // 60)) for size, at in zip(sizes, seen, strict=True) if at + size not in ends]
    assert [size for size, _ in grown] == [expected for _, expected in grown]


def test_a_record_of_many_rows_straddles_batches_and_runs(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1)
    many = list(rows(2000))
    job.produce_values([msgpack.packb(many[:700]), msgpack.packb(many[700:1999]), msgpack.packb(many[1999:])])
    assert [rows_after(job.path, max_rows=bound) for bound in (333, 500, 700)] == [333, 833, 1533]
    last = job.train("--until-end", "--set", "train.batch_rows=32", "--workers", "1")
    started = next(event for event in last if event["event"] == "started")
    assert started["resumed"] and (started["rows"], last[-1]["rows"]) == (1533, 2000)
    report = job.verified()
    assert report["rows"]["trained"] == 2000
    job.replayed()
    records = next(check for check in report["checks"] if check["name"] == "records")
    assert not records["not_checkable"] and "2000 rows read again" in records["span"]


def test_the_start_and_each_death_are_told_once_and_a_failing_start_is_one_error(
    kafka: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    job = LiveJob(kafka, tmp_path, produce=3000)
    dying = job.command("train", "--until-end", STREAMTRAIN_FAILPOINTS="worker.stepped=2,ingest.after_slot=40").stderr
    for text in ("trained again", "killed by SIGKILL; a new run follows"):
        assert dying.count(text) == 1 and " WARNING supervisor  " in dying, dying
    version = job.newest().manifest.version
    again = job.command("train", "--until-end")
    assert again.stderr.splitlines() == [
        f"resuming {job.name} at snapshot {version}, 3,000 rows", f"{job.name}: snapshot {version}, 3,000 rows",
    ]  # fmt: skip
    refused = job.command("train", "--set", "columns.x9.missing=0")
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1 and "ERROR coordinator  " in refused.stderr, refused.stderr
    with caplog.at_level("DEBUG", logger="streamtrain.run.supervisor"):
        assert trained(job.path, "columns.x9.missing=0").code == 2
    assert ("DEBUG", "coordinator ended with exit code 2") in [(r.levelname, r.getMessage()) for r in caplog.records]


def test_restore_publishes_an_older_snapshot_at_the_newest_positions(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, produce=2000)
    rows_after(job.path, max_rows=1000)
    older = job.newest()
    rows_after(job.path)
    newest = job.newest()
    events = trained(job.path, restore=older.manifest.version).events
    restored = job.newest()
    started = next(event for event in events if event["event"] == "started")
    assert (started["restored"], started["version"]) == (older.manifest.version, restored.manifest.version)
    assert restored.manifest.version == newest.manifest.version + 1
    assert restored.model == older.model and restored.manifest.positions == newest.manifest.positions
    assert restored.manifest.parent is not None and restored.manifest.parent.digest == older.digest
    assert restored.manifest.restored is not None and restored.manifest.restored.digest == newest.digest
    assert restored.manifest.counts == Counts() and restored.manifest.chain == first_chain(restored.manifest.lineage)
    assert restored.manifest.rows_seen == older.manifest.rows_seen
    job.produce(500, seed=9)
    assert rows_after(job.path) == older.manifest.rows_seen + 500
    assert job.newest().manifest.counts == Counts(trained=500)
    job.verified()
    job.replayed(restored.manifest.version)


# -- the newest snapshot is whole and the one that control names; --fresh continues above both -----------------------


def made_anew(job: LiveJob, key: str) -> None:
    """Deletes the topic and makes it again, empty."""
    delete(job, f"{job.name}.{key}")
    job.admin.ensure(wish for wish in job_topics(job.name) if wish.key == key)


def test_a_snapshots_topic_that_lost_everything_is_refused_and_fresh_goes_on_above(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, produce=2000)
    last = trained(job.path).events[-1]["version"]
    said = job.control().newest
    assert said is not None and said.version == last and said.digest == job.newest().digest
    made_anew(job, "snapshots")
    refused = trained(job.path)
    assert refused.code == 1, refused.errors
    assert f"expected version {last}, digest {said.digest.hex()[:12]}" in refused.errors[0]
    assert "found none" in refused.errors[0] and "--fresh" in refused.errors[0]
    assert job.control().newest == said, "nothing was published"
    rows_after(job.path, fresh=True)
    assert job.manifests()[0].version > last


def test_runs_count_on_from_the_manifest_where_control_was_lost(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path)
    for part in range(3):
        job.produce(500, seed=part)
        rows_after(job.path)
    assert sorted(job.control().runs) == [1, 2, 3]
    made_anew(job, "control")
    job.produce(500, seed=3)
    rows_after(job.path)
    found = job.control()
    assert sorted(found.runs) == [4] and job.newest().manifest.run == found.runs[4].run
    assert found.newest is not None and found.newest.digest == job.newest().digest


def test_too_many_dead_letters_stop_a_run_which_says_how_it_ended(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, max_dead_letter_share=0.2, produce=500)
    rows_after(job.path)
    good, bad = (rows(800, seed) for seed in (0, 1))
    pairs = ((row, {**other, "x2": "n/a"}) for row, other in zip(good, bad, strict=True))
    job.produce_values(msgpack.packb(row) for pair in pairs for row in pair)
    ended = trained(job.path)
    assert ended.code == 1 and "x $.x2: expected number" in ended.errors[0], ended.errors
    job.verified()
    ends = job.control().ends
    assert [(number, ends[number].exit_code) for number in sorted(ends)] == [(1, 0), (2, 1)]
    assert ends[1].reason == "the end of what was asked for" and "are dead letters" in ends[2].reason


def not_a_manifest(job: LiveJob) -> list[Message]:
    return [Message(b"s/0007/m", b"not a manifest")]


def an_older_manifest(job: LiveJob) -> list[Message]:
    with job.topic() as topic:
        manifests = [read for read in topic.window(*topic.bounds()) if is_manifest(read.key)]
    return [Message(manifests[-2].key or b"", manifests[-2].value)]


def a_missing_chunk(job: LiveJob) -> list[Message]:
    newest = job.newest()
    manifest = replace(newest.manifest, version=newest.manifest.version + 1, kept=newest.kept())
    messages = publish(manifest, newest.model, newest.trainer or b"", keep=100).messages
    return [message for message in messages if not message.key.endswith(b"/c/0000")]


@pytest.mark.parametrize("damage", [not_a_manifest, an_older_manifest, a_missing_chunk])
def test_a_damaged_newest_snapshot_is_refused_and_fresh_goes_on_above_it(
    kafka: Any, tmp_path: Path, damage: Callable[[LiveJob], list[Message]]
) -> None:
    job = LiveJob(kafka, tmp_path, keep=100, produce=500)  # a busy machine may publish often
    rows_after(job.path)
    before = job.newest().manifest
    messages = ({"key": key, "value": bytes(value or b"")} for key, value, _ in damage(job))
    job.produce_messages(messages, f"{job.name}.snapshots")
    refused, where = trained(job.path), f"{job.name}.snapshots@"
    assert refused.code == 1 and "start over with --fresh" in refused.errors[0] and where in refused.errors[0]
    if damage is not_a_manifest:  # the command's own words, once
        fresh = job.command("train", "--until-end", "--fresh")
        assert fresh.returncode == 0, fresh.stderr
        warnings = [line for line in fresh.stderr.splitlines() if " WARNING coordinator " in line]
        assert len(warnings) == 1 and where in warnings[0] and "passed over" in warnings[0], fresh.stderr
    else:
        rows_after(job.path, fresh=True)
    after = job.newest().manifest
    assert after.lineage != before.lineage and after.version > before.version + 1
    assert job.verified()["rows"]["trained"] == 500
    job.produce(100, seed=1)
    assert rows_after(job.path) == 600
    assert rows_after(job.path, restore=before.version) == before.rows_seen
