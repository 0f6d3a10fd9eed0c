"""The trainer from topic to topic: rows counted exactly, snapshots whole, resumed where it ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from streamtrain.compute.snapshot import decode
from streamtrain.kafka.round_logs import round_logs
from streamtrain.topics.manifest import Counts
from streamtrain.topics.rounds import first_chain
from tests.e2e.harness import LiveJob, rows
from tests.e2e.threaded import rows_after, trained


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_every_row_is_trained_once(kafka: Any, tmp_path: Path, workers: int) -> None:
    job = LiveJob(kafka, tmp_path, workers=workers, batch_rows=16)  # a hundred updates for each of three workers
    job.produce(5000)
    events = job.train("--until-end") if workers == 2 else trained(job.path).events
    assert events[-1]["event"] == "ended" and events[-1]["rows"] == 5000
    report = job.verified()
    assert report["rows"] == {"trained": 5000, "dead_lettered": 0, "filtered": 0}
    job.replayed()
    total = job.newest().manifest.metrics["total"]
    assert total["log_loss"] < total["constant_log_loss"] and total["auc"] > 0.85


def test_it_goes_on_where_it_ended(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path)
    job.produce(3000)
    assert rows_after(job.path, max_rows=1234) == 1234
    job.produce(1000, seed=1)
    second = job.train("--until-end", "--set", "train.batch_rows=32", "--workers", "1")
    started = next(event for event in second if event["event"] == "started")
    assert started["resumed"] and started["rows"] == 1234
    assert second[-1]["rows"] == 4000
    assert job.verified()["rows"]["trained"] == 4000
    job.replayed()


def test_batches_grow_over_runs_as_the_terms_say_and_replay_gives_the_same_bits(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1, batch_growth=60, workers=1, round_interval="off")
    job.produce(2000)
    rows_after(job.path, max_rows=700)
    rows_after(job.path)
    assert job.verified()["rows"]["trained"] == 2000
    job.replayed()
    logs = list(round_logs(job.job.kafka_consumer(), f"{job.name}.rounds"))
    assert all(terms.batch_growth == {"name": "rows_seen", "rows": 60} for log in logs for terms in log.terms)
    sizes = np.concatenate([log.slots["rows"] for log in logs]).tolist()
    seen = np.cumsum([0, *sizes[:-1]])
    ends = {700, 2000}  # of the runs: there a batch closes before it is full
    wanted = [max(1, at // 60) for at in seen]
    assert [size for size, at in zip(sizes, seen, strict=True) if at + size not in ends] == [
        size for size, at, got in zip(wanted, seen, sizes, strict=True) if at + got not in ends
    ]


def test_a_record_of_many_rows_straddles_batches_and_runs(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1)
    many = list(rows(2000))
    job.produce_values([msgpack.packb(many[:700]), msgpack.packb(many[700:1999]), msgpack.packb(many[1999:])])
    for bound in (333, 500, 700):
        rows_after(job.path, max_rows=bound)
    assert rows_after(job.path) == 2000
    report = job.verified()
    assert report["rows"]["trained"] == 2000
    job.replayed()
    records = next(check for check in report["checks"] if check["name"] == "records")
    assert not records["not_checkable"] and "2000 rows read again" in records["span"]


def test_the_start_and_each_death_are_told_once_and_a_failing_start_is_one_error(
    kafka: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    job = LiveJob(kafka, tmp_path)
    job.produce(3000)
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


def test_dead_letters_and_filtered_rows_are_accounted_for(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, max_dead_letter_share=0.5)
    good = [msgpack.packb(row) for row in rows(900)]
    wrong_type, frame = msgpack.packb({"x1": "n/a"}), b"\x00\x00\x00\x00\x07abc"
    bad = [b"\xff\xfe not msgpack", wrong_type, b"", b"\xdd\xff\xff\xff\xff", frame]
    unlabelled = [msgpack.packb({**row, "y": None}) for row in rows(50, seed=2)]
    job.produce_values([*good[:400], *bad, *unlabelled, None, *good[400:]])
    rows_after(job.path)
    report = job.verified()
    assert report["rows"] == {"trained": 900, "dead_lettered": 5, "filtered": 50}
    done = job.here("read", "dead-letters", "--from-beginning", "--until-end", "--json")
    assert len(done.stdout.splitlines()) == 5, done.stdout
    assert "Schema Registry" in done.stdout


def test_a_poisonous_batch_is_left_out_and_dead_lettered_by_reference(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1, max_dead_letter_share=0.5)
    job.path.write_text(job.path.read_text().replace(", standardize = true", ""))
    good = [msgpack.packb(row) for row in rows(3000)]
    poison = [msgpack.packb({**row, "x1": 3e38, "x2": -3e38}) for row in rows(5, seed=3)]
    job.produce_values([*good[:1500], *poison, *good[1500:]])
    rows_after(job.path)
    report = job.verified()
    assert report["rows"]["trained"] + report["rows"]["dead_lettered"] == 3005
    assert report["rows"]["dead_lettered"] in (64, 128)
    job.replayed()
    for name, array in decode(job.newest().model).items():
        assert np.isfinite(array).all(), name


def test_restore_publishes_an_older_snapshot_at_the_newest_positions(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path)
    job.produce(2000)
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


def test_local_optimizer_state_and_scores_after_averaging(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path)
    job.produce(3000)
    settings = ("train.average_optimizer_state=false", "train.report_score_after_averaging=true")
    rows_after(job.path, *settings, max_rows=1500)
    rows_after(job.path, *settings)
    newest = job.newest()
    assert newest.trainer is not None and any(name.endswith("@1") for name in decode(newest.trainer))
    assert newest.manifest.metrics["after_averaging"]["loss"] > 0
    refused = trained(job.path, *settings, "train.workers=1")
    assert refused.code == 2 and "own optimizer state" in refused.errors[0]
    job.verified()
    job.replayed()
