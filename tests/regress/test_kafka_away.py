"""Whoever loses Kafka waits for it and goes on where it was; whoever drains, or may open no more files, ends.

All tests share a Kafka to stop and to kill, which each leaves running, but where several nodes are needed.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from publisher import Publisher
from small_model import SmallModel
from waiting import wait_for

from streamtrain.background import in_background
from streamtrain.broker import Broker
from streamtrain.clients.snapshots import follow_snapshots
from streamtrain.kafka.clients import TransactionalProducer
from streamtrain.kafka.settings import Purpose, client_settings
from streamtrain.run import train as supervisor
from streamtrain.run.train import Supervisor
from streamtrain.topics.snapshots import TOPIC
from tests.e2e import threaded
from tests.e2e.harness import LiveJob, Running

TIMEOUT_MS = "1500"  # of a transaction in the short forms, for 10 s


def named(broker: Broker, ending: str = "") -> SimpleNamespace:
    """A Kafka of the test's own, for the harness."""
    return SimpleNamespace(bootstrap=broker.bootstrap, fresh_name=lambda prefix: prefix + ending)


@pytest.fixture
def own(modules_kafka: Broker, tmp_path: Path) -> LiveJob:
    return LiveJob(named(modules_kafka, tmp_path.name), tmp_path, publish_interval="5s")


@contextmanager
def stopped(broker: Broker) -> Iterator[None]:
    os.kill(broker.pids[0], signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(broker.pids[0], signal.SIGCONT)


def wait_for_words(running: Running, text: str) -> None:
    """Returns when the command has logged `text`."""

    def is_logged() -> bool:
        assert running.process.poll() is None, running.errors()[-3000:]
        return text in running.errors()

    wait_for(is_logged)


@pytest.fixture
def short_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    def open_(cls: Any, purpose: Purpose, kafka: Any, name: str) -> Any:
        own = {"transactional.id": name, "transaction.timeout.ms": TIMEOUT_MS}
        return cls(client_settings(purpose, kafka, own))

    monkeypatch.setattr(TransactionalProducer, "open", classmethod(open_))


def test_a_stalled_broker_is_waited_for_and_a_drain_without_it_ends(
    own: LiveJob, modules_kafka: Broker, short_transactions: None, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """Longer than the time-out of a transaction. The short form of the tests with processes below."""
    own.produce(1000)
    running = threaded.Run(own.path)
    running.wait_event("published", rows=1000)
    own.produce(1000, seed=1)
    running.wait_event("progress", rows=1500)
    with stopped(modules_kafka):
        wait_for(lambda: "waiting for Kafka" in caplog.text)
    running.wait_event("published", rows=2000)
    own.produce(1000, seed=2)
    running.wait_event("progress", rows=2500)
    monkeypatch.setattr(supervisor, "_DRAIN_S", 1.0)
    end_children, gives_up = Supervisor._end_children, threading.Event()

    def noted(self: Supervisor) -> None:
        gives_up.set()
        end_children(self)

    monkeypatch.setattr(Supervisor, "_end_children", noted)
    with stopped(modules_kafka):
        draining = in_background(running.drain, name="drain")
        assert gives_up.wait(240)  # it kills its processes, which are threads here and end when Kafka is back
    assert draining.result(240) in (1, 3) and "not drained in 1 s" in caplog.text, running.errors
    assert threaded.rows_after(own.path) == 3000
    assert own.verified()["rows"]["trained"] == 3000


def test_a_follower_waits_through_the_loss_of_the_broker(modules_kafka: Broker, caplog: Any) -> None:
    model = SmallModel.make()
    model.put(Publisher(modules_kafka.bootstrap, "followed"), 1)
    followed = follow_snapshots("followed", modules_kafka.bootstrap)
    assert next(followed).version == 1
    modules_kafka.kill()
    modules_kafka.start()
    model.put(Publisher(modules_kafka.bootstrap, "followed"), 2)
    assert next(followed).version == 2 and "keeping snapshot" not in caplog.text


@pytest.mark.full
def test_processes_wait_for_a_stalled_broker_and_a_drain_without_it_ends(own: LiveJob, modules_kafka: Broker) -> None:
    """Longer than the broker's time-out of a transaction, and than a call's."""
    own.produce(1000)
    running = own.start("train")
    running.wait_event("published", rows=1000)
    own.produce(1000, seed=1)
    running.wait_event("progress", rows=1500)
    with stopped(modules_kafka):
        wait_for_words(running, "waiting for Kafka")
    running.wait_event("published", rows=2000, timeout_s=300)
    own.produce(1000, seed=2)
    running.wait_event("progress", rows=2500)
    began = time.monotonic()
    with stopped(modules_kafka):
        running.process.send_signal(signal.SIGTERM)
        code = running.finish(300)
    assert time.monotonic() - began < 200, "two time-outs of a transaction and the drain's bound, on a busy machine"
    assert code in (1, 3) and "not drained in 30 s" in running.errors(), running.errors()
    assert own.train("--until-end")[-1]["rows"] == 3000
    assert own.verified()["rows"]["trained"] == 3000


@pytest.mark.full
def test_a_start_without_a_leader_of_the_snapshots_waits(private_kafka: Callable[..., Broker], tmp_path: Path) -> None:
    """It goes on where the job was: nothing is empty."""
    broker = private_kafka(nodes=3, data=tmp_path / "kafka")
    made = NewTopic("job.snapshots", 1, replica_assignment=[[3]], config={**TOPIC.config, "min.insync.replicas": "1"})
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    client.create_topics([made])["job.snapshots"].result(30)
    job = LiveJob(named(broker), tmp_path)
    job.produce(3000)
    job.train("--until-end")
    before = job.newest().manifest
    broker.kill(2)
    again = job.start("train", "--until-end")
    wait_for_words(again, "waiting for Kafka")
    broker.start()
    assert again.finish(300) == 0, again.errors()
    after = job.newest().manifest
    assert (after.lineage, after.version, after.rows_seen) == (before.lineage, before.version, 3000)
    assert job.verified()["rows"]["trained"] == 3000


# Follows and writes; prints after each line it reads which snapshot it has, and whether it is connected.
PROGRAM = """
import sys
from streamtrain import LiveModel, RecordWriter
with RecordWriter(sys.argv[1]) as writer, LiveModel(sys.argv[2], sys.argv[3]) as model:
    model.wait_ready(60)
    for line in sys.stdin:
        if line == "write\\n":
            writer.write({"x1": 1, "x2": 1, "x3": 1, "x4": 1, "colour": "red", "y": 1})
        elif line == "flush\\n":
            writer.flush(240)
        print(model.version, model.connected, flush=True)
"""


def no_more_files(process: int) -> tuple[int, int]:
    """What is open stays open; returns the limits there were."""
    before = resource.prlimit(process, resource.RLIMIT_NOFILE)
    resource.prlimit(process, resource.RLIMIT_NOFILE, (3, before[1]))
    return before


def answer(program: subprocess.Popen[str], line: str) -> str:
    assert program.stdin is not None and program.stdout is not None
    program.stdin.write(f"{line}\n")
    program.stdin.flush()
    return program.stdout.readline().strip()


def training(job: LiveJob, place: int) -> Running:
    """A trainer of which one process may open no more files: coordinator, ingest."""
    running = job.start("train")
    running.wait_event("published", rows=500)
    no_more_files(running.children()[place].pid)
    return running


def predicting(job: LiveJob) -> Running:
    """A predictor of which none may."""
    running = job.start("predict")
    wait_for(lambda: "predicting" in running.log.read_text())
    for process in [psutil.Process(running.process.pid), *running.children()]:
        no_more_files(process.pid)
    return running


@pytest.mark.full
def test_commands_that_may_open_no_more_files_end_and_a_program_goes_on(modules_kafka: Broker, tmp_path: Path) -> None:
    """All of them through one loss of the broker, after which they cannot come back. The commands say why; the program
    goes on when it may again. In the fast tests: tests/kafka/test_transaction.py."""
    jobs = []
    for name in ("coordinator", "ingest", "served", "followed"):
        (tmp_path / name).mkdir()
        jobs.append(LiveJob(named(modules_kafka, name), tmp_path / name))
        jobs[-1].produce(500)
    *_, served, followed = jobs
    served.train("--until-end")
    followed.train("--until-end")
    commands = [*(training(job, place) for place, job in enumerate(jobs[:2])), predicting(served)]
    command = [sys.executable, "-c", PROGRAM, str(followed.path), followed.name, followed.bootstrap]
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wait_for(lambda: answer(program, "look").endswith(" True"))
    first = answer(program, "look").split()[0]
    before = no_more_files(program.pid)
    modules_kafka.kill()
    modules_kafka.start()
    assert answer(program, "write") != ""
    wait_for(lambda: answer(program, "look") == f"{first} False")
    for running in commands:
        assert running.finish(300) == 1, running.errors()[-4000:]
        assert "ulimit -n" in running.errors(), running.errors()[-4000:]
    resource.prlimit(program.pid, resource.RLIMIT_NOFILE, before)
    assert answer(program, "flush") != ""  # delivered
    followed.train("--until-end")
    wait_for(lambda: answer(program, "look") == f"{int(first) + 1} True")
    program.communicate()
    assert program.returncode == 0
    assert followed.verified()["rows"]["trained"] == 501
