"""A run's processes are forks of a copy of the command, its own children, and need that copy for nothing later."""

from __future__ import annotations

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
from streamtrain.run import fork_server
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
    running.process.send_signal(signal.SIGINT)
    assert running.finish() == 130
    assert job.verified()["rows"]["trained"] == 1_000


def test_all_end_with_a_command_that_is_killed(kafka: Any, tmp_path: Path) -> None:
    running = LiveJob(kafka, tmp_path).start("train")
    running.wait_event("started")
    processes = [server_of(running), *processes_of(running.process.pid)]
    running.process.kill()
    assert running.finish() == -signal.SIGKILL
    assert psutil.wait_procs(processes, 240)[1] == []


def test_the_copy_is_made_before_a_job_may_bring_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a module of PyTorch does that it names."""
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
