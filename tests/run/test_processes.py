"""A run's processes: forks of a copy of the command and its own children; the pause between runs."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any, NoReturn

import psutil
import pytest
from typer.testing import CliRunner

from streamtrain.cli.commands import train
from streamtrain.cli.session import Session
from streamtrain.errors import UserMistake
from streamtrain.job import Job
from streamtrain.run import cores, fork_server
from streamtrain.run.arena import worker_config
from streamtrain.run.back_off import BackOff
from streamtrain.run.fork_server import ForkServer
from tests.e2e.harness import LiveJob, Running, processes_of


def server_of(running: Running) -> psutil.Process:
    (found,) = [
        each for each in psutil.Process(running.process.pid).children() if each.name() == fork_server.NAME
    ]  # fmt: skip
    return found


def test_a_run_goes_on_without_the_copy_and_nothing_is_left_behind(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path)
    running = job.start("train")
    running.wait_event("started")
    command, server = psutil.Process(running.process.pid), server_of(running)
    children = running.children()
    assert [each.name() for each in children] == ["coordinator", "ingest", "worker-0", "worker-1"]
    assert {(each.ppid(), tuple(each.cmdline())) for each in children} == {(command.pid, tuple(command.cmdline()))}
    server.kill()
    children[2].kill()
    running.wait_event("worker_died")
    job.produce(1_000)
    running.wait_rows(1_000)
    new = next(each for each in running.children() if each.name() == "worker-0")
    assert new.cmdline()[-2:] == ["-m", "streamtrain.run"]
    assert running.end(signal.SIGINT) == 130
    assert job.verified()["rows"]["trained"] == 1_000


def test_all_end_with_a_command_that_is_killed(kafka: Any, tmp_path: Path) -> None:
    running = LiveJob(kafka, tmp_path).start("train")
    running.wait_event("started")
    processes = [server_of(running), *processes_of(running.process.pid)]
    running.process.kill()
    assert running.finish() == -signal.SIGKILL
    assert psutil.wait_procs(processes, 240)[1] == []


def test_the_copy_is_made_before_a_job_may_bring_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of PyTorch that a job names may bring some."""
    order: list[str] = []

    def loaded(*given: Any) -> NoReturn:
        order.append("job")
        raise UserMistake("no job")

    monkeypatch.setattr(train.ForkServer, "start", lambda: order.append("copy"))
    monkeypatch.setattr(Session, "job", loaded)
    assert CliRunner().invoke(train.app, ["job.toml"]).exception is not None
    assert order == ["copy", "job"]


def test_a_process_with_more_threads_is_not_copied() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert ForkServer.start() is None
    finally:
        done.set()
        thread.join()


# -- pauses ---------------------------------------------------------------------------------------------------------


def after(back_off: BackOff, published: bool = False, lasted_s: float = 1.0, is_error: bool = False) -> float | None:
    return back_off.pause_s(published, lasted_s, is_error)


def test_it_grows_only_from_one_run_that_published_nothing_to_the_next() -> None:
    back_off = BackOff()
    assert [after(back_off, published=True) for _ in range(20)] == [0.2] * 20
    assert [after(back_off) for _ in range(7)] == [0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    assert after(back_off, published=True) == 0.2
    assert [after(back_off), after(back_off, lasted_s=61)] == [0.4, 0.2]


def test_it_ends_after_five_runs_that_published_nothing_and_failed() -> None:
    back_off = BackOff()
    assert None not in [after(back_off, is_error=True) for _ in range(4)]
    assert None not in [after(back_off, published=True, is_error=True), *(after(back_off) for _ in range(9))]
    assert None not in [after(back_off, is_error=True) for _ in range(3)]
    assert after(back_off, is_error=True) is None and back_off.errors == 5


def test_runs_that_published_follow_each_other_at_once(kafka, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, publish_interval="20ms")
    running = job.start("train")
    for life in range(1, 5):
        running.wait_event("started")
        job.produce(50, seed=life)
        running.wait_event("published", rows=50 * life)
        running.children()[1].kill()
    running.wait_event("started")
    assert running.end() == 0
    pauses = [event["pause_s"] for event in running.events if event["event"] == "restarting"]
    assert pauses == [0.2] * 4, (pauses, running.errors())


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_stop_between_two_runs_is_a_stop(kafka, tmp_path: Path, number: signal.Signals, code: int) -> None:
    job = LiveJob(kafka, tmp_path)
    running = job.start("train")
    running.wait_event("started")
    running.process.send_signal(signal.SIGSTOP)  # so that it meets both at once
    for child in running.children():
        child.kill()
    running.process.send_signal(number)
    running.process.send_signal(signal.SIGCONT)
    assert running.finish() == code
    assert "is trained by the next start" in running.errors(), running.errors()


# -- the cores that a run's workers get -------------------------------------------------------------------------------

TABLES = {"columns": {"x": {}, "y": {"role": "label"}}}


def job(**train: Any) -> Job:
    return Job.from_tables({**TABLES, "train": train})


@pytest.fixture
def eight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cores 2 to 9, and no quota."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(2, 10)))
    monkeypatch.setattr(cores, "usable_count", lambda: 8)


def test_auto_gives_each_worker_its_own_cores(eight: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cores.cores_of_workers(job(workers=2, threads_per_worker=3, affinity="auto")) == [[2, 3, 4], [5, 6, 7]]
    assert cores.cores_of_workers(job(workers=8, affinity="auto")) == [[core] for core in range(2, 10)]
    assert cores.cores_of_workers(job(workers=3, threads_per_worker=3, affinity="auto")) == []
    assert cores.cores_of_workers(job(workers=2, affinity="off")) == []
    monkeypatch.setattr(cores, "usable_count", lambda: 3)
    assert cores.cores_of_workers(job(workers=4, affinity="auto")) == [], "a quota leaves too few"


def test_cores_that_are_not_there_are_refused_before_anything_starts(eight: None) -> None:
    assert cores.cores_of_workers(job(workers=2, affinity="2-3;9")) == [[2, 3], [9]]
    told = r"train.affinity: expected for worker 1 cores that this process may use \(2-9\), got 0,10-11; name others"
    with pytest.raises(UserMistake, match=told):
        worker_config(job(workers=2, affinity="2;0,4,10-11"))


def test_more_threads_than_cores_are_told(eight: None, caplog: pytest.LogCaptureFixture) -> None:
    worker_config(job(workers=2, threads_per_worker=4))
    assert caplog.records == []
    assert worker_config(job(workers=3, threads_per_worker=3))["threads"] == 3
    (told,) = caplog.records
    assert "9 threads of 3 workers have 8 cores: expected a core for each" in told.getMessage()


@pytest.mark.parametrize(
    ("quotas", "most"),
    [
        ({"": "max 100000"}, None), ({"": "150000 100000"}, 1), ({"a/b": "50000 100000"}, 1), ({}, None),
        ({"a": "200000 100000", "a/b": "max 100000"}, 2), ({"a/b": "no quota"}, None), ({"other": "1 100000"}, None),
    ],
)  # fmt: skip
def test_a_control_groups_quota_counts(quotas: dict[str, str], most: int | None, tmp_path: Path) -> None:
    for name, text in quotas.items():
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "cpu.max").write_text(text + "\n")
    group = tmp_path / "cgroup"
    group.write_text("1:name=systemd:/x\n0::/a/b\n")
    usable = len(os.sched_getaffinity(0))
    assert cores.usable_count(tmp_path, group) == (usable if most is None else min(most, usable))
    assert cores.usable_count(tmp_path, tmp_path / "none") == usable


def test_cores_are_shown_as_taskset_writes_them() -> None:
    assert [cores.shown(each) for each in ([], [3], [0, 1, 2], [0, 2, 3, 7])] == ["", "3", "0-2", "0,2-3,7"]
