"""[train.early_stopping] on a stream: a trainer ends by itself, says why, and counts in the manifests alone."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from streamtrain.clients.history import run_ends
from streamtrain.columns.served import Served
from streamtrain.fitting.cached_rows import cache_rows
from streamtrain.job import Job
from streamtrain.topics.chunks import Stored
from streamtrain.topics.topic import TopicWish
from tests.e2e.harness import LiveJob, rows, toml

ROWS = 11_000  # a window and a little more
NOTHING: Mapping[str, Any] = {}
HEADS = {
    "model": 'layers = [ { dense = 16, activation = "relu" } ]\n[model.heads.y]\n[model.heads.delay]\nloss = "huber"',
    "more_columns": 'delay = { role = "label", missing = "skip_head", standardize = true }',
    "label": 'missing = "skip_head"',
}


def live_job(kafka: Any, folder: Path, settings: Mapping[str, Any] = NOTHING, **early: Any) -> LiveJob:
    job = LiveJob(kafka, folder, **settings)
    change(job, **early)
    return job


def change(job: LiveJob, **early: Any) -> None:
    """Puts these settings in the place of those that the job file has."""
    before = job.path.read_text().partition("[train.early_stopping]")[0]
    lines = [f"{name} = {toml(value)}" for name, value in early.items()]
    job.path.write_text("\n".join([before, "[train.early_stopping]", *lines, ""]))


def standing(job: LiveJob) -> dict[str, Any]:
    return dict(job.newest().manifest.metrics["early_stopping"])


@pytest.mark.full
def test_it_counts_over_starts_and_ends_where_nothing_gets_better(kafka: Any, tmp_path: Path) -> None:
    job = live_job(kafka, tmp_path, no_improvement=2, least_improvement=0.5)
    found = []
    for part in range(2):
        job.produce(ROWS, seed=part)
        job.train("--until-end")
        found.append(standing(job))
    assert [(each["evaluations"], each["since"], each["reason"]) for each in found] == [(1, 0, ""), (2, 1, "")]
    assert found[1]["mark"] == found[0]["score"] == found[0]["best_score"] > found[1]["score"] == found[1]["best_score"]
    job.produce(ROWS, seed=2)
    trainer = job.start("train")  # without an end
    assert trainer.finish() == 0
    last = trainer.events[-1]
    newest = standing(job)
    assert last["event"] == "stopped_early" and newest["reason"] == "no_improvement" and newest["since"] == 2
    mark = f"{found[0]['score']:.6g} of snapshot {found[0]['best_version']}"
    assert newest["details"] == f"2 evaluations were not better by more than 0.5 than {mark}"
    assert newest["best_version"] > found[1]["best_version"] and newest["best_score"] < found[1]["best_score"]
    best = f"the best is snapshot {newest['best_version']}, log_loss {newest['best_score']:.6g}"
    assert last["why"] == f"early stopping, no_improvement: {newest['details']}; {best}"
    ends = run_ends(job.name, job.bootstrap)
    assert (ends[3].exit_code, ends[3].reason) == (0, last["why"])  # type: ignore[union-attr]
    job.verified()
    job.replayed()

    version = job.newest().manifest.version
    job.produce(2000, seed=3)
    again = job.start("train")
    assert again.finish() == 0 and again.events[-1]["why"] == last["why"]
    assert job.newest().manifest.version == version  # nothing was trained
    change(job, no_improvement=5)
    job.train("--until-end")
    assert job.newest().manifest.rows_seen == 3 * ROWS + 2000 and standing(job)["evaluations"] == 0
    job.verified()


def test_a_coordinator_that_is_killed_counts_on(kafka: Any, tmp_path: Path) -> None:
    job = live_job(kafka, tmp_path, no_improvement=1, score="auc", least_improvement=0.5)
    trainer = job.start("train")
    job.produce(ROWS)
    trainer.wait_rows(ROWS)
    before = standing(job)
    assert before["evaluations"] == 1 and before["score"] > 0.5
    trainer.children()[0].kill()
    job.produce(ROWS, seed=1)
    assert trainer.finish() == 0
    after = standing(job)
    assert (after["evaluations"], after["since"], after["reason"]) == (2, 1, "no_improvement")
    assert after["mark"] == before["score"] and after["begun_ms"] == before["begun_ms"]
    job.verified()


@pytest.mark.full
@pytest.mark.parametrize(
    ("reason", "early"),
    [
        ("best_score", {"score": "auc", "best_score": 0.7}), ("rows", {"rows": 1}), ("time", {"time": "10ms"}),
        ("best_score", {"score": "delay.rmse", "best_score": 100.0}),
        ("invalid_score", {"score": "calibration", "minimise": True, "invalid_score": True, "rows": 10**9}),
    ],
    ids=["a score", "rows", "time", "a score of a head", "a score that is none"],
)  # fmt: skip
def test_it_ends_training(kafka: Any, tmp_path: Path, reason: str, early: dict[str, Any]) -> None:
    job = live_job(kafka, tmp_path, HEADS if "delay" in early.get("score", "") else NOTHING, **early)
    labels = {"y": 0} if reason == "invalid_score" else {}  # none of which there is a share
    values = [msgpack.packb({**row, "delay": 20 + 3 * (row["x1"] - row["x2"]), **labels}) for row in rows(ROWS)]
    trainer = job.start("train")
    job.produce_values(values)
    trainer.wait_event("published")
    until = time.monotonic() + 240  # scores count at publications, and a fast trainer has all there is in one
    while trainer.process.poll() is None and time.monotonic() < until:
        job.produce_values(values)
    assert trainer.finish() == 0
    assert standing(job)["reason"] == reason
    if reason == "invalid_score":
        assert standing(job)["details"] == "the score is nan"
        assert np.isfinite(job.newest().manifest.metrics["window"]["log_loss"])
    elif reason == "best_score":
        assert 0 < standing(job)["score"] < 100
    job.verified()


def validation_file(folder: Path, count: int = 700) -> Path:
    path = folder / "held.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(count, seed=77)))
    return path


def score_of(job: LiveJob, stored: Stored, path: Path) -> float:
    """Returns the log loss as `fit` computes it of a validation set."""
    validation = cache_rows(Job.load(job.path), [path], "held")
    served = Served.of(stored.manifest, stored.digest, stored.model)
    return float(validation.judge(served.evaluator(validation.layout))["log_loss"])


@pytest.mark.full
def test_rows_of_a_file_judge_it_and_the_scores_stand_in_the_manifests(kafka: Any, tmp_path: Path) -> None:
    path = validation_file(tmp_path)
    job = live_job(kafka, tmp_path, no_improvement=50, held_out={"files": [str(path)]})
    for part in range(2):
        job.produce(4000 + 8000 * part, seed=part)  # no window closes in the first
        job.train("--until-end")
        newest = job.newest()
        state = standing(job)
        assert state["evaluations"] == part + 1 and state["epochs"] == part + 1
        assert newest.manifest.metrics["held_out"]["rows"] == state["held_out"]["rows"] == 700
        assert state["held_out"]["identity"].startswith("files:")
        assert state["score"] == newest.manifest.metrics["held_out"]["log_loss"] == score_of(job, newest, path)
    job.verified()
    job.replayed()
    validation_file(tmp_path, 600)
    job.produce(3000, seed=5)
    job.train("--until-end")
    assert standing(job)["evaluations"] == 1, "other rows begin anew"
    checked = job.here("check")
    assert checked.returncode == 0 and "600 rows" in checked.stdout
    path.write_text(path.read_text() + '{"x1": 1, "y": 7}\n')
    for refused in (job.here("check"), job.command("train", "--until-end"), job.command("train", "--fresh")):
        text = " ".join((refused.stdout + refused.stderr).split())
        assert f"train.early_stopping.held_out: {path} row 600 at $.y: expected" in text and "got 7" in text
    path.unlink()
    refused = job.command("train", "--until-end")
    assert refused.returncode == 2 and f"{path}: cannot be read" in refused.stderr
    change(job, no_improvement=50, held_out={"files": [str(tmp_path / "*.none")]})
    refused = job.command("train", "--until-end")
    assert refused.returncode == 2
    assert f"train.early_stopping.held_out.files: expected files matching {tmp_path / '*.none'}" in refused.stderr


@pytest.mark.full
def test_a_first_start_with_a_broken_validation_row_publishes_nothing(kafka: Any, tmp_path: Path) -> None:
    path, topic = validation_file(tmp_path, 10), kafka.fresh_name("held")
    path.write_text(path.read_text() + '{"x1": "many", "y": 1}\n')
    job = live_job(kafka, tmp_path, no_improvement=50, held_out={"files": [str(path)]})
    refused = job.command("train", "--until-end")
    assert refused.returncode == 2 and f"held_out: {path} row 10 at $.x1: " in refused.stderr
    change(job, no_improvement=50, held_out={"topic": topic})
    job.admin.ensure([TopicWish("held", topic, 2)])
    turns = enumerate([*rows(3), {**next(rows(1)), "y": 7}])
    job.produce_messages(({"value": msgpack.packb(row), "partition": at // 2} for at, row in turns), topic)
    for refused in (job.here("check"), job.command("train", "--until-end")):
        text = " ".join((refused.stdout + refused.stderr).split())
        assert f"held_out: {topic} partition 1 offset 1 row 0 at $.y: expected" in text and refused.returncode
    with job.topic() as snapshots:
        assert snapshots.newest() is None


@pytest.mark.full
def test_rows_of_a_topic_are_those_that_it_had_at_first(kafka: Any, tmp_path: Path) -> None:
    topic = kafka.fresh_name("held")
    job = live_job(kafka, tmp_path, no_improvement=50, held_out={"topic": topic})
    refused = job.command("train", "--until-end")
    assert refused.returncode == 2 and f"expected a topic that Kafka has, got {topic}" in refused.stderr
    job.admin.ensure([TopicWish("held", topic, 1)])
    job.produce_messages(({"value": msgpack.packb(row)} for row in rows(500, seed=77)), topic)
    trainer = job.start("train")
    job.produce(ROWS)
    trainer.wait_rows(ROWS)
    before = standing(job)
    assert before["held_out"]["rows"] == 500 and before["held_out"]["to"] == [500]
    job.produce_messages(({"value": msgpack.packb(row)} for row in rows(100, seed=77)), topic)
    trainer.children()[0].kill()
    job.produce(ROWS, seed=1)
    trainer.wait_rows(2 * ROWS)
    assert trainer.end() == 0
    after = standing(job)
    assert after["held_out"] == before["held_out"] and after["evaluations"] > before["evaluations"]
    assert after["begun_ms"] == before["begun_ms"]
    job.verified()
    job.produce_messages([{"value": b"no msgpack"}], topic)  # behind those that it held at first
    checked = job.here("check")
    assert checked.returncode == 0 and "500 rows" in checked.stdout
    refused = job.command("train", "--fresh", "--until-end")
    assert refused.returncode == 2 and f"held_out: {topic} partition 0 offset 600 row 0 at $" in refused.stderr


def worse(job: LiveJob, count: int, seed: int) -> None:
    """Rows that teach the contrary."""
    job.produce_values(msgpack.packb({**row, "y": 1 - row["y"]}) for row in rows(count, seed))


def best(job: LiveJob) -> Stored:
    with job.topic() as topic:
        return topic.load(topic.named("best"), trainer=True)


@pytest.mark.full
@pytest.mark.parametrize(
    "point", ["", "coordinator.in_commit=2", "coordinator.after_commit=3", "coordinator.after_chunks=4"]
)
def test_the_best_is_kept_read_and_restored_whoever_dies(kafka: Any, tmp_path: Path, point: str) -> None:
    """Publications count with the run entry; what dies is told again to the same end, and the best stays the best."""
    path = validation_file(tmp_path)
    often = {"keep": 2, "publish_interval": "20ms", "round_interval": "20ms"}
    job = live_job(kafka, tmp_path, often, no_improvement=3, held_out={"files": [str(path)]})
    job.produce(ROWS)
    events = job.train("--until-end", failpoints=point)
    assert any(event["event"] == "restarting" for event in events) == bool(point)
    first = best(job)
    at_first = standing(job)
    assert first.manifest.version == at_first["best_version"] == first.manifest.best
    assert score_of(job, first, path) == at_first["best_score"]
    trainer = job.start("train", STREAMTRAIN_FAILPOINTS=point)
    until = time.monotonic() + 240
    for seed in range(1, 100):
        worse(job, ROWS, seed)
        if trainer.process.poll() is not None or time.monotonic() > until:
            break
    assert trainer.finish() == 0
    assert any(event["event"] == "restarting" for event in trainer.events) == bool(point)
    state, newest = standing(job), job.newest().manifest
    assert state["reason"] == "no_improvement" and state["best_version"] == first.manifest.version
    assert newest.version > first.manifest.version + 2 and newest.best == first.manifest.version
    kept = best(job)
    assert (kept.model, kept.trainer, kept.digest) == (first.model, first.trainer, first.digest)
    job.verified()
    if point:
        return
    done = job.here("snapshots get", "--snapshot", "best", "-o", str(tmp_path / "best.safetensors"))
    assert done.returncode == 0 and f"wrote snapshot {first.manifest.version} " in done.stdout
    listed = json.loads(job.here("snapshots list", "--json").stdout)["snapshots"]
    assert [each["version"] for each in listed if each["best"]] == [first.manifest.version]
    change(job, rows=9**9)
    job.train("--restore", "best", "--max-rows", "1")
    restored = next(each for each in job.manifests() if each.restored is not None)
    assert restored.model.digest == first.manifest.model.digest and restored.parent.version == first.manifest.version
    job.verified()


@pytest.mark.full
def test_which_is_the_best_goes_back_with_a_start_that_goes_back(kafka: Any, tmp_path: Path) -> None:
    """The newest manifest decides what counts, what stays and what `best` names."""
    job = live_job(kafka, tmp_path, no_improvement=50)
    found = []
    for seed in range(2):
        job.produce(ROWS, seed=seed)
        job.train("--until-end")
        found.append(best(job).manifest.version)
        assert found[-1] == standing(job)["best_version"]
    assert found[1] > found[0]
    job.produce(10, seed=2)
    job.train("--restore", str(found[0]), "--until-end")
    assert best(job).manifest.version == standing(job)["best_version"] == found[0]
    listed = json.loads(job.here("snapshots list", "--json").stdout)["snapshots"]
    assert [each["version"] for each in listed if each["best"]] == [found[0]]
    job.verified()
    job.produce(10, seed=3)
    job.train("--fresh", "--max-rows", "1")
    none = job.here("snapshots show", "--snapshot", "best")
    assert none.returncode == 2 and "the best by train.early_stopping, found none yet" in " ".join(none.stderr.split())
    job.verified()


@pytest.mark.full
def test_passes_end_it_and_a_stream_without_an_end_has_none(kafka: Any, tmp_path: Path) -> None:
    job = live_job(kafka, tmp_path, epochs=2)
    refused = job.command("train")
    assert refused.returncode == 2
    assert "expected a start with an end, --until-end, --files or --max-rows" in refused.stderr
    job.produce(3000)
    job.train("--until-end")
    assert (standing(job)["epochs"], standing(job)["reason"]) == (1, "")
    job.train("--until-end")  # nothing is there
    assert standing(job)["epochs"] == 1
    job.produce(64 * 8 * 3, seed=1)  # the last round is full
    events = job.train("--until-end")
    assert (standing(job)["epochs"], standing(job)["reason"]) == (2, "epochs")
    assert events[-1]["event"] == "stopped_early" and "2 passes over the rows are done" in events[-1]["why"]
    version = job.newest().manifest.version
    job.produce(100, seed=2)
    job.train("--until-end")
    assert job.newest().manifest.version == version
    job.verified()
