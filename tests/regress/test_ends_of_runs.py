"""How runs end, and that control tells it: deaths, replacements, refusals, sleeps, drains that take too long."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from waiting import wait_for

from streamtrain import _native, history
from streamtrain.errors import CheckFailed, KafkaBroken, KafkaDenied
from streamtrain.run import host
from streamtrain.run import train as supervisor
from streamtrain.run.host import Event, HostOptions
from streamtrain.run.train import Interrupts, Supervisor, TrainOptions
from streamtrain.run.watch import Watch
from streamtrain.topics.control import Control, RunEntry
from streamtrain.topics.manifest import Run
from tests.chaos.faults import hold
from tests.chaos.trainer import Trainer
from tests.e2e import threaded
from tests.e2e.harness import LiveJob
from tests.train.arena_run import ArenaRun, batch, worker_1_elsewhere

SECOND = 1_000_000_000
PIPE_BYTES = 1 << 20  # as much as a pipe may hold: writing more waits for a reader, or learns that there is none


def ends(job: LiveJob) -> dict[int, tuple[str, int | None]]:
    """Reason and exit code of each run that published, by number."""
    found = {one.run: one.run_end for one in history(job.name, job.bootstrap)}
    return {run: (end.reason, end.exit_code) for run, end in found.items() if end is not None}


def trained_here(job: LiveJob, failpoints: str, stop_when_published: bool = False, until_end: bool = False) -> int:
    """The exit code of a trainer whose supervisor runs in this process."""
    stop = Interrupts()

    def on_event(event: Event) -> None:
        stop.asked |= stop_when_published and event["event"] == "published" and event["rows"] > 0

    options = TrainOptions(until_end=until_end, host=HostOptions({"level": "info", "format": "plain"}, failpoints))
    return supervisor.train(job.job, options, on_event, stop)


def test_a_run_whose_processes_are_killed(kafka: Any, tmp_path: Path) -> None:
    """Of one that could not write why it ended, the run that followed tells."""
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


def test_too_many_deaths(kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    """At one batch, and between the batches."""
    assert host._OTHER_DEATHS == 10
    monkeypatch.setattr(host, "_OTHER_DEATHS", 2)
    job = LiveJob(kafka, tmp_path, workers=1)
    job.produce(500)
    assert trained_here(job, "*worker.at_slot=0") == 1
    told = job.here("history")
    said = "run 1 published nothing, it ended: workers died 2 times at one batch (SIGKILL)"
    assert "no round log" in told.stdout and said in told.stdout, told.stdout
    job = LiveJob(kafka, tmp_path, partitions=1, round_interval="off", workers=1)
    job.produce(1000)
    assert trained_here(job, "*worker.averaging=1!SEGV", until_end=True) == 1
    errors = capfd.readouterr().err
    assert "workers died 2 times between the batches" in errors and "SIGSEGV" in errors, errors[-3000:]
    job.verified()


def test_a_refused_publication(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path)
    job.produce(500)
    running = threaded.Run(job.path)
    running.wait_event("published", rows=500)
    limit = ConfigEntry("max.message.bytes", "200", incremental_operation=AlterConfigOpType.SET)
    topic = ConfigResource("topic", job.job.topic("snapshots").name, incremental_configs=[limit])
    admin = AdminClient({"bootstrap.servers": job.bootstrap})
    admin.incremental_alter_configs([topic])[topic].result(60)
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


def test_a_replaced_trainer_leaves_though_no_row_comes(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path)
    job.produce(500)
    first = threaded.Run(job.path)
    first.wait_event("published", rows=500)
    second = threaded.Run(job.path)
    second.wait_event("started")
    assert second.drain() == 0
    assert first.finish() == 4, first.errors
    assert any("has taken this job over" in error for error in first.errors), first.errors


@pytest.mark.parametrize("failure", [CheckFailed("no entry"), KafkaDenied("no right"), KafkaBroken("fatal")])
def test_a_watch_looks_again(failure: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamtrain.run.watch.EVERY_S", 0.01)
    replacement = RunEntry(Run(2, "b" * 32), "job", "host", 1, 1, "build")
    looks = iter([failure])

    def look() -> Control:
        for error in looks:
            raise error
        return Control({2: replacement})

    watch = Watch(Run(1, "a" * 32), look)
    wait_for(lambda: watch.replaced_by == replacement)


def test_a_child_that_dies_at_once(
    kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Before it has read its settings, which fit the pipe or do not: the user sees its words, its exit code counts."""
    dying = tmp_path / "python"
    dying.write_text("#!/bin/sh\nexec <&-\necho 'no memory for this process' >&2\nexit 2\n")
    dying.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(dying))
    for settings in (None, {"much": "x" * 2 * PIPE_BYTES}):
        if settings is not None:
            monkeypatch.setattr(Supervisor, "_ingest_config", lambda self, settings=settings: settings)
        code = supervisor.train(LiveJob(kafka, tmp_path).job, TrainOptions(), lambda event: None, Interrupts())
        errors = capfd.readouterr().err
        assert code == 2 and "no memory for this process" in errors and "Traceback" not in errors


def test_a_round_whose_averager_died_is_not_judged_twice() -> None:
    """Half of a short round was left out: enough for a judgement only if its slots are counted a second time."""
    run = ArenaRun(workers=2, frequency=8)
    run.fill([batch(seed) for seed in range(8)], rejected=(0, 1, 2, 3))
    rounds, plan = run.crew[0]
    rounds.run_closed_round(plan)
    assert worker_1_elsewhere(run, "worker.averaging=1").wait(120) == -signal.SIGKILL
    run.supervisor.clear_dead(1)
    run.crew[1] = run.worker(1)
    rounds, plan = run.crew[1]
    rounds.run_closed_round(plan)
    assert run.arena.progress()["finished_round"] == 0


def two_rounds() -> ArenaRun:
    run = ArenaRun(workers=2, frequency=2)
    run.fill([batch(seed) for seed in range(4)])
    run.train()
    run.fill([batch(seed) for seed in range(4, 8)])
    return run


def test_a_round_waits_for_a_worker_that_stops_as_it_begins() -> None:
    """It has not published the round: nobody averages without its batches."""
    undisturbed, run = two_rounds(), two_rounds()
    undisturbed.train()
    other = worker_1_elsewhere(run, "worker.begins=1!STOP")
    _, status = os.waitpid(other.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    worker, plan = run.crew[0]
    worker.run_closed_round(plan)
    assert run.arena.progress()["finished_round"] == 0, "averaged without the other's batches"
    other.send_signal(signal.SIGCONT)
    assert other.wait(60) == 0
    assert run.arena.progress()["finished_round"] == 1
    assert np.array_equal(run.state(), undisturbed.state())


def test_silence_is_counted_in_looks_from_the_first_beat() -> None:
    """A process that was stopped itself does not take its own sleep for the coordinator's silence."""

    def looks(silence: _native.Silence, beat_s: int, from_s: int, to_s: int) -> bool:
        """Whether the last of the looks, ten a second, finds silence."""
        tenths = range(from_s * 10, to_s * 10)
        return [silence.lasts(beat_s * SECOND, at * SECOND // 10) for at in tenths][-1]

    silence = _native.Silence()
    assert not looks(silence, 1, 1, 10)
    assert not silence.lasts(1 * SECOND, 500 * SECOND)  # nobody looked between: the looker was stopped
    assert looks(silence, 1, 500, 502)
    assert not silence.lasts(502 * SECOND, 502 * SECOND)
    assert not looks(_native.Silence(), 0, 1, 100)


@pytest.mark.full
def test_a_run_that_slept_longer_than_silence_may_last_goes_on(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, publish_interval="100ms")
    trainer = Trainer(job, tmp_path / "trainer.log")
    job.produce(500)
    assert trainer.wait("published", rows=500)
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for each in trainer.tree():
            each.send_signal(number)
        hold(12.0 if number == signal.SIGSTOP else 0.0)
    job.produce(500, seed=1)
    assert trainer.wait("published", rows=1000)
    assert trainer.first("restarting") is None, trainer.errors()
    assert trainer.end() == 0
    assert job.verified()["rows"]["trained"] == 1000
