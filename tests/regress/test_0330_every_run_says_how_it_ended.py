"""A run that the supervisor ends writes why to control first; of one that could not, the run that followed tells."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from streamtrain import history
from streamtrain.run import host
from streamtrain.run import train as supervisor
from streamtrain.run.host import Event, HostOptions
from streamtrain.run.train import Interrupts, TrainOptions
from tests.e2e.harness import LiveJob


def ends(job: LiveJob) -> dict[int, tuple[str, int | None]]:
    """Reason and exit code of each run that published, by number."""
    told = {one.run: one.run_end for one in history(job.name, job.bootstrap)}
    return {run: (end.reason, end.exit_code) for run, end in told.items() if end is not None}


def test_a_run_whose_processes_are_killed(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path)
    job.produce(500)
    running = job.start("train")
    running.wait_event("published", rows=500)
    for rows, killed in ((1000, 1), (1500, 0)):  # ingest, then the coordinator
        running.children()[killed].kill()
        running.wait_event("started")
        job.produce(500, seed=rows)
        running.wait_event("published", rows=rows)
    assert 3 not in ends(job), "it may be running"
    running.process.send_signal(signal.SIGTERM)
    assert running.finish() == 0
    assert ends(job) == {
        1: ("ingest was killed by SIGKILL", 1),
        2: ("without a word; run 3 followed", None),
        3: ("stopped", 0),
    }
    job.verified()


def test_too_many_deaths_at_one_batch(kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_OTHER_DEATHS", 2)
    job = LiveJob(kafka, tmp_path, workers=1)
    job.produce(500)
    assert trained_here(job, "*worker.at_slot=0") == 1
    told = job.command("history")
    said = "run 1 published nothing, it ended: workers died 2 times at one batch (SIGKILL)"
    assert "no round log" in told.stdout and said in told.stdout, told.stdout


def test_a_refused_publication(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path)
    job.produce(500)
    running = job.start("train")
    running.wait_event("published", rows=500)
    limit = ConfigEntry("max.message.bytes", "200", incremental_operation=AlterConfigOpType.SET)
    topic = ConfigResource(ResourceType.TOPIC, job.job.topic("snapshots").name, incremental_configs=[limit])
    admin = AdminClient({"bootstrap.servers": job.bootstrap})
    for done in admin.incremental_alter_configs([topic]).values():
        done.result(60)
    job.produce(500, seed=1)
    assert running.finish() == 1
    reason, code = ends(job)[1]
    assert code == 1 and "MSG_SIZE_TOO_LARGE" in reason, reason


def test_a_drain_that_takes_too_long(kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "_DRAIN_S", 1.0)
    job = LiveJob(kafka, tmp_path, workers=1)
    job.produce(2000)
    assert trained_here(job, "worker.at_slot=9!STOP", stop_when_published=True) == 1
    reason, code = ends(job)[1]
    assert code == 1 and reason.startswith("not drained in 1 s"), reason


def trained_here(job: LiveJob, failpoints: str, stop_when_published: bool = False) -> int:
    """The exit code of a trainer whose supervisor runs in this process."""
    stop = Interrupts()

    def on_event(event: Event) -> None:
        stop.asked |= stop_when_published and event["event"] == "published" and event["rows"] > 0

    options = TrainOptions(host=HostOptions({"level": "info", "format": "plain"}, failpoints))
    return supervisor.train(job.job, options, on_event, stop)
