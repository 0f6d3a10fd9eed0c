"""Tests of how runs end, and that control shows it: deaths, replacements, refusals, drains that take too long.

What a job's topics show of its past: settings of then, snapshots that are gone, topics made again, restores.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
from confluent_kafka import Producer
from topic_changes import set_config
from waiting import wait_for

from streamtrain import _native, history
from streamtrain.compute import snapshot
from streamtrain.compute.moments import MOMENTS
from streamtrain.errors import CheckFailed, KafkaBroken, KafkaDenied
from streamtrain.job import Job
from streamtrain.run import host
from streamtrain.run import train as supervisor
from streamtrain.run.host import Event, HostOptions
from streamtrain.run.train import Interrupts, Supervisor, TrainOptions
from streamtrain.run.watch import Watch
from streamtrain.topics import control
from streamtrain.topics.control import Control, Newest, RunEntry
from streamtrain.topics.manifest import Run
from streamtrain.topics.snapshots import publish
from tests.e2e import threaded
from tests.e2e.harness import LiveJob, rows
from tests.e2e.test_gaps import delete, make_again
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
        stop.requests |= stop_when_published and event["event"] == "published" and event["rows"] > 0

    options = TrainOptions(until_end=until_end, host=HostOptions({"level": "info", "format": "plain"}, failpoints))
    return supervisor.train(job.job, options, on_event, stop)


def test_a_run_whose_processes_are_killed(kafka: Any, tmp_path: Path) -> None:
    """Checks that the next run reports the end of a run that could not write why it ended."""
    job = LiveJob(kafka, tmp_path)
    job.produce(500)
    running = job.start("train")
    running.wait_event("published", rows=500)
    for count, killed in ((1000, 1), (1500, 0)):  # ingest, then the coordinator
        running.children()[killed].kill()
        running.wait_event("started")
        job.produce(500, seed=count)
        running.wait_event("published", rows=count)
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
    history = job.here("history")
    said = "run 1 published nothing, it ended: workers died 2 times at one batch (SIGKILL)"
    assert "no round log" in history.stdout and said in history.stdout, history.stdout
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
    set_config(job.bootstrap, job.job.topic("snapshots").name, {"max.message.bytes": "200"})
    # the broker shows the limit before it holds for what is written: a round more may be published
    wait_for(lambda: running.is_over or job.produce(50, seed=1))
    assert running.finish() == 1
    reason, code = ends(job)[1]
    assert code == 1 and "MSG_SIZE_TOO_LARGE" in reason, reason


def test_a_drain_that_takes_too_long(kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "_DRAIN_S", 1.0)
    job = LiveJob(kafka, tmp_path, workers=1)
    job.produce(2000)
    assert trained_here(job, "worker.at_slot=9!STOP", stop_when_published=True) == 1
    reason, code = ends(job)[1]
    assert code == 1 and "made no progress in 1 s" in reason, reason


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


def test_a_round_whose_averager_died_is_not_counted_twice() -> None:
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
        """Returns True if the last of the looks, ten a second, finds silence."""
        tenths = range(from_s * 10, to_s * 10)
        return [silence.lasts(beat_s * SECOND, at * SECOND // 10) for at in tenths][-1]

    silence = _native.Silence()
    assert not looks(silence, 1, 1, 10)
    assert not silence.lasts(1 * SECOND, 500 * SECOND)  # nobody looked between: the looker was stopped
    assert looks(silence, 1, 500, 502)
    assert not silence.lasts(502 * SECOND, 502 * SECOND)
    assert not looks(_native.Silence(), 0, 1, 100)


FIRST_MS = 1_700_000_000_000


def trained(job: LiveJob, *sets: str, **options: Any) -> list[dict[str, Any]]:
    """The events of a run to the records' end, which must end well."""
    run = threaded.trained(job.path, *sets, until_end=True, **options)
    assert run.code == 0, run.errors
    return run.events


CHANGES = [
    (),
    ("optimizer.learning_rate=1e-2", "optimizer.beta1=0.5"),
    ("train.workers=3", "train.averaging_frequency=2"),
    ("train.batch_rows=40", "records.format=json"),
    ("train.workers=1", "train.averaging_frequency=7", "optimizer.learning_rate=1e-4", "optimizer.beta2=0.9"),
    (),
]


def test_replay_knows_the_settings_of_each_start_though_snapshots_between_are_gone(kafka: Any, tmp_path: Path) -> None:
    live = LiveJob(kafka, tmp_path, partitions=2, keep=2, publish_interval="50ms")
    for seed, changes in enumerate(CHANGES):
        if "records.format=json" in changes:
            live.produce_values(json.dumps(row).encode() for row in rows(900, seed))
        else:
            live.produce(900, seed)
        trained(live, 'publish.archive={ every = "10h", keep = 1 }', *changes)  # the first trained snapshot stays
    with live.topic() as topic:
        manifests = [located.manifest for located in topic.list()]
    first = manifests[0]
    assert first.archived and first.run.number == 1, "the time between archived snapshots is the job's, not a run's"
    assert manifests[1].run.number >= 5, "those of four starts are gone"
    report = live.replayed(first.version)
    assert not report["notes"]
    found = report["snapshots"]
    assert [each["version"] for each in found] == list(range(first.version + 1, manifests[-1].version + 1))
    assert [each["version"] for each in found if each["whole"]] == [each.version for each in manifests[1:]]


def test_deaths_events_and_ends_of_runs_outlive_the_snapshots(kafka: Any, tmp_path: Path) -> None:
    """The rounds topic alone is a job's history."""
    live = LiveJob(kafka, tmp_path, partitions=1, keep=2, publish_interval="50ms")
    text = live.path.read_text().replace("[model]", 'at = { role = "event_time", unit = "ms" }\n[model]')
    live.path.write_text(text)
    manifests = {}
    for seed in range(2):
        of_rows = enumerate(rows(1000, seed), FIRST_MS + 10_000 * seed)
        live.produce_values(msgpack.packb({**row, "at": at}) for at, row in of_rows)
        events = trained(live) if seed else live.train("--until-end", failpoints="worker.stepped=5")
        manifests |= {event["version"]: event for event in events if event["event"] == "published"}
    found = list(history(live.name, live.bootstrap))
    with live.topic() as topic:
        there = {located.manifest.version: located.manifest for located in topic.list()}
    assert {one.version for one in found} == set(manifests) and len(there) <= 2 < len(found)
    for one in found:
        assert one.metrics == manifests[one.version]["metrics"]
        assert one.version not in there or one.created_ms == there[one.version].created_ms
    last = {run: [one for one in found if one.run == run][-1] for run in (1, 2)}
    assert [last[run].worker_deaths for run in (1, 2)] == [2, 0], "each of two workers once"
    assert [last[run].newest_event_ms for run in (1, 2)] == [FIRST_MS + 999, FIRST_MS + 10_999]
    assert all(one.run_end is None for one in found if one not in last.values())
    assert [last[run].run_end is not None and last[run].run_end.exit_code == 0 for run in (1, 2)] == [True, True]


def records_check(job: LiveJob) -> dict[str, object]:
    """The check of that name, of a verification that passes."""
    return next(check for check in job.verified()["checks"] if check["name"] == "records")


def test_verify_reads_no_offsets_of_a_topic_that_was_made_again(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=2, format="json")
    many = [json.dumps(list(rows(300, seed))).encode() for seed in range(4)]  # each straddles batches
    job.produce_values(many)
    trained(job)
    delete(job)
    make_again(job)
    job.produce_values(many[:1])
    trained(job, accept_gap=True)
    found = records_check(job)
    assert "of a topic that is not there any more" in str(found["not_checkable"])
    assert str(found["span"]).startswith("1 records, 300 rows")


def test_verify_reads_records_by_the_format_and_columns_they_were_trained_with(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1)
    job.produce(300)
    trained(job)
    job.path.write_text(job.path.read_text().replace('format = "msgpack"', 'format = "json"'))
    job.produce_values([json.dumps(list(rows(300, 1))).encode()])
    trained(job)
    assert str(records_check(job)["span"]).startswith("301 records, 600 rows")
    text = job.path.read_text().replace('y = { role = "label", missing = "skip" }', 'y = { role = "label" }')
    job.path.write_text(text.replace("max_dead_letter_share = 0.1", "max_dead_letter_share = 1"))
    job.produce_values([json.dumps([{"x1": 1}] * 100).encode()])
    trained(job, fresh=True)
    records_check(job)
    fast = job.here("verify", "--fast", "--json")
    assert fast.returncode == 0 and "whole records not (--fast)" in fast.stdout


def publish_without_a_chunk(job: LiveJob) -> int:
    """The newest snapshot once more, as the next version, without its first chunk; returns that version."""
    newest = job.newest()
    manifest = replace(newest.manifest, version=newest.manifest.version + 1, kept=newest.kept())
    publication = publish(manifest, newest.model, newest.trainer or b"", keep=8)
    producer = Producer({"bootstrap.servers": job.bootstrap})
    entry = control.newest_message(Newest(manifest.version, publication.digest, manifest.lineage))
    producer.produce(f"{job.name}.control", key=entry.key, value=bytes(entry.value or b""))
    for message in publication.messages:
        if not (message.key or b"").endswith(b"/c/0000"):
            value = None if message.value is None else bytes(message.value)
            producer.produce(f"{job.name}.snapshots", key=message.key, value=value)
    assert producer.flush(10) == 0
    return manifest.version


def test_a_restore_goes_on_over_a_damaged_newest_snapshot(kafka: Any, tmp_path: Path) -> None:
    """It needs that one's manifest only. Where there are no snapshots it is refused."""
    job = LiveJob(kafka, tmp_path)
    run = threaded.trained(job.path, until_end=True, restore=5)
    assert run.code == 2 and any("none yet" in error for error in run.errors), run.errors
    job.produce(500)
    whole = trained(job)[-1]["version"]
    damaged = publish_without_a_chunk(job)
    run = threaded.trained(job.path, until_end=True)
    assert run.code == 1 and any("c/0000 is missing" in error for error in run.errors), run.errors
    job.produce(100, seed=1)
    assert trained(job, restore=whole)[-1]["rows"] == 600
    with job.topic() as topic:
        assert damaged not in [located.manifest.version for located in topic.list()]
    assert job.newest().manifest.version > damaged


def test_the_floor_of_a_deviation_is_kept_replayed_and_refused_when_it_changes(kafka: Any, tmp_path: Path) -> None:
    """The deviation below which a column is only centred is a setting of the columns, as clip and half-life are."""
    job = LiveJob(kafka, tmp_path, workers=1)
    text = job.path.read_text()
    job.path.write_text(text.replace("standardize = true", "standardize = { floor = 100.0 }"))
    assert Job.load(job.path).schema.digest() != job.job.schema.digest()
    job.produce(1000)
    trained(job)
    moments = snapshot.decode(job.newest().model)["standardize.numbers"]
    assert np.array_equal(moments[:, MOMENTS.index("floor")], [100.0] * 4)
    job.path.write_text(text.replace("standardize = true", "standardize = { floor = 50.0 }"))
    run = threaded.trained(job.path, until_end=True)
    assert run.code == 2 and any("floor" in error for error in run.errors), run.errors
    job.replayed()  # by the start's floor, whatever the file says now
