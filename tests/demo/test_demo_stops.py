"""The demo is stopped, its Kafka dies, its folder takes no file: it ends at once, in order, and says why. No Kafka."""

from __future__ import annotations

import errno
import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_for

from streamtrain.broker import Broker, find_broker, start_broker
from streamtrain.broker import process as process_module
from streamtrain.broker.data_folder import Node, Record
from streamtrain.cli import main
from streamtrain.cli.commands import demo as command
from streamtrain.demo.folder import Child, job_text, make_folder, write_job
from streamtrain.demo.traffic import Traffic
from streamtrain.errors import UserMistake

LOOKS = 40
EMPTY: dict[str, Any] = {"snapshot": None, "newest_row_age_s": None, "rows_per_second": None, "dead_letters": {}}


class FakeAdmin:
    def __init__(self, *_: object) -> None:
        pass

    def names(self) -> list[str]:
        return []

    def ensure(self, _: object) -> None:
        pass


class FakeStanding:
    """A job that has not begun; at each look `on_look` is called."""

    on_look: Any = staticmethod(lambda: None)

    def __init__(self, _: object) -> None:
        pass

    def __enter__(self) -> FakeStanding:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def watch(self, _: float):
        for _ in range(LOOKS):
            self.on_look()
            yield EMPTY
        raise AssertionError("it goes on")


class FakeKafka:
    """The demo's own Kafka; notes which of the traffic's threads live when it is stopped."""

    bootstrap, found, data, pids = "localhost:1", False, Path("kafka"), (1,)
    left: list[str] | None = None

    def __enter__(self) -> FakeKafka:
        return self

    def __exit__(self, *_: object) -> None:
        self.left = [thread.name for thread in threading.enumerate() if thread.name in ("send", "read")]


@pytest.fixture
def kafka(tmp_path, monkeypatch):
    """The demo in an empty folder with fakes in the place of Kafka, and of what reads the job; the children are real
    processes that do nothing."""
    monkeypatch.chdir(tmp_path)
    fake = FakeKafka()
    monkeypatch.setattr(command, "Admin", FakeAdmin)
    monkeypatch.setattr(command, "JobStatus", FakeStanding)
    monkeypatch.setattr(command, "find_broker", lambda _: None)
    monkeypatch.setattr(command, "start_broker", lambda *_, **__: fake)
    monkeypatch.setattr(FakeStanding, "on_look", staticmethod(lambda: None))
    monkeypatch.setattr(Traffic, "send", lambda self: self.stopping.wait())
    monkeypatch.setattr(Traffic, "read", lambda self: self.stopping.wait())
    return fake


@pytest.fixture
def children(monkeypatch):
    """Every process that is spawned: it waits for a signal."""
    spawned: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def popen(_: list[str], **options: Any) -> subprocess.Popen[bytes]:
        spawned.append(real([sys.executable, "-c", "import signal; signal.pause()"], **options))
        return spawned[-1]

    monkeypatch.setattr(process_module.subprocess, "Popen", popen)
    yield spawned
    for child in spawned:
        child.kill()
        child.wait()


def demo(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["demo", "--json", "--rows", "100", *arguments])
    return int(ended.value.code or 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_child_is_spawned_is_not_lost(kafka, children, monkeypatch, number):
    """An exception of a handler that strikes in a hook of the fork is written to stderr, and forgotten."""
    spawns = process_module.subprocess.Popen

    def popen(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        try:
            signal.raise_signal(number)
        except BaseException as error:
            sys.unraisablehook(type("Lost", (), {"exc_value": error, "exc_type": type(error), "exc_traceback": None,
                                                 "err_msg": "lost", "object": popen})())  # fmt: skip
        return spawns(*arguments, **options)

    monkeypatch.setattr(process_module.subprocess, "Popen", popen)
    assert demo() == 130
    assert len(children) == 1 and children[0].poll() == -signal.SIGKILL
    assert kafka.left == []


def test_the_traffic_ends_before_its_kafka_does(kafka, children, monkeypatch):
    """Else what it has not delivered waits for a Kafka that is gone."""

    def send(traffic: Traffic) -> None:
        traffic.stopping.wait()
        wait_for(lambda: all(child.poll() is not None for child in children))
        sum(range(20_000_000))  # it still writes

    monkeypatch.setattr(Traffic, "send", send)
    monkeypatch.setattr(FakeStanding, "on_look", staticmethod(lambda: signal.raise_signal(signal.SIGINT)))
    assert demo() == 130
    assert kafka.left == []
    assert [child.poll() for child in children] == [-signal.SIGTERM] * 2


class Left(BaseException):
    """Stands for the end of this process."""


def test_nothing_waits_for_a_kafka_that_has_died(kafka, children, monkeypatch, capsys):
    never = threading.Event()
    codes: list[int] = []

    def leave(code: int) -> None:
        codes.append(code)
        raise Left

    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr(Traffic, "send", lambda self: never.wait())
    monkeypatch.setattr(FakeStanding, "on_look", staticmethod(lambda: setattr(kafka, "pids", ())))
    with pytest.raises(Left):
        main(["demo", "--json", "--rows", "100"])
    never.set()
    assert codes == [3] and "has ended; its log lies in" in capsys.readouterr().err
    assert [child.poll() for child in children] == [-signal.SIGKILL] * 2


@pytest.mark.parametrize("flags", [[], ["-q"], ["-qq"]])
def test_quiet_does_not_log_more(kafka, monkeypatch, flags):
    assert demo(*flags, "--set", "train.batch_row=7") == 2
    assert logging.getLogger("streamtrain").level == logging.ERROR


@pytest.mark.parametrize("rate", ["inf", "nan", "-1"])
@pytest.mark.parametrize("call", [["demo"], ["produce", "job.toml", "--input", "rows.csv"]], ids=len)
def test_a_rate_that_is_none(kafka, capsys, rate, call):
    with pytest.raises(SystemExit) as ended:
        main([*call, "--rate", rate])
    assert ended.value.code == 2
    assert "--rate" in capsys.readouterr().err and not list(Path().iterdir())


def test_files_that_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_folder()
    Path("streamtrain-demo/train.log").mkdir()
    with pytest.raises(UserMistake, match=r"streamtrain-demo.*expected.*train\.log"):
        Child(["train"], {})
    write_job(job_text("flights", "localhost:1", 2))
    Path("streamtrain-demo/flights-before.toml").mkdir()
    with pytest.raises(UserMistake, match=r"streamtrain-demo.*expected.*flights-before\.toml"):
        write_job(job_text("flights", "localhost:1", 2))


def test_a_kafka_whose_folder_is_full_stops_and_says_that_its_record_was_not_written(tmp_path, monkeypatch, caplog):
    record = Record("id", (Node(1, 20_001, 20_002),))
    broker = Broker(tmp_path, record, detached=False, temporary=False, found=False)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with caplog.at_level(logging.WARNING, "streamtrain"):
        broker.stop()
    assert "broker.json" in caplog.text and "No space left on device" in caplog.text
    with pytest.raises(UserMistake, match=r"expected a folder to write Kafka's data to, got: .*No space left"):
        start_broker(tmp_path / "new")


def test_a_record_of_kafka_that_cannot_be_read(tmp_path):
    (tmp_path / "broker.json").mkdir()
    with pytest.raises(UserMistake, match=r"broker\.json: expected the record"):
        find_broker(tmp_path)
