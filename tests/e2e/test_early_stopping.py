"""[train.early_stopping] on a stream: a trainer ends by itself, says why, and counts in the manifests alone."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from streamtrain.clients.history import run_ends
from tests.e2e.harness import LiveJob

ROWS = 11_000  # a window and a little more


def live_job(kafka: Any, folder: Path, **settings: Any) -> LiveJob:
    job = LiveJob(kafka, folder)
    told(job, **settings)
    return job


def told(job: LiveJob, **settings: Any) -> None:
    """The job file's section, in the place of what it was."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    before = job.path.read_text().partition("[train.early_stopping]")[0]
    job.path.write_text("\n".join([before, "[train.early_stopping]", *lines, ""]))


def standing(job: LiveJob) -> dict[str, Any]:
    return dict(job.newest().manifest.metrics["early_stopping"])


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
    told(job, no_improvement=5)
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


def test_a_score_and_rows_and_time(kafka: Any, tmp_path: Path) -> None:
    for settings, reason in (
        ({"best_score": 0.7, "score": "auc"}, "best_score"), ({"rows": 1}, "rows"), ({"time": "10ms"}, "time")
    ):  # fmt: skip
        job = live_job(kafka, tmp_path, **settings)
        trainer = job.start("train")
        job.produce(ROWS)
        trainer.wait_event("published")
        until = time.monotonic() + 240  # judged at publications, and a fast trainer has all there is in one
        while trainer.process.poll() is None and time.monotonic() < until:
            job.produce(ROWS)
        assert trainer.finish() == 0
        assert standing(job)["reason"] == reason
