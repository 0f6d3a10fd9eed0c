"""Whoever loses Kafka waits for it; whoever has lost the job leaves it; whoever is asked to drain ends."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from streamtrain.broker import Broker
from tests.e2e.harness import LiveJob
from tests.regress.test_0140_leaderless_snapshots import Named, said


@pytest.fixture
def own(modules_kafka: Broker, tmp_path: Path) -> tuple[Broker, LiveJob]:
    return modules_kafka, LiveJob(Named(modules_kafka, tmp_path.name), tmp_path, publish_interval="5s")


def test_a_replaced_trainer_leaves_though_no_row_comes(kafka, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path)
    job.produce(500)
    first = job.start("train")
    first.wait_event("published", rows=500)
    second = job.start("train")
    second.wait_event("started")
    second.process.send_signal(signal.SIGTERM)
    assert second.finish() == 0
    assert first.finish(300) == 4, first.errors()
    assert "has taken this job over" in first.errors()


def test_a_run_after_the_first_waits_for_a_broker(own: tuple[Broker, LiveJob]) -> None:
    broker, job = own
    job.produce(1000)
    running = job.start("train")
    running.wait_event("published", rows=1000)
    broker.kill()
    running.children()[0].kill()
    said(running, "coordinator ended with exit code 3")
    broker.start()
    job.produce(1000, seed=1)
    running.wait_event("published", rows=2000, timeout_s=300)
    running.process.send_signal(signal.SIGTERM)
    assert running.finish() == 0
    assert job.verified()["rows"]["trained"] == 2000


def test_a_stalled_broker_is_waited_for(own: tuple[Broker, LiveJob]) -> None:
    """Longer than the broker's time-out of a transaction, and than a call's."""
    broker, job = own
    job.produce(1000)
    running = job.start("train")
    running.wait_event("published", rows=1000)
    job.produce(1000, seed=1)
    running.wait_event("progress", rows=1500)
    os.kill(broker.pids[0], signal.SIGSTOP)
    said(running, "waiting for Kafka")
    os.kill(broker.pids[0], signal.SIGCONT)
    running.wait_event("published", rows=2000, timeout_s=300)
    running.process.send_signal(signal.SIGTERM)
    assert running.finish() == 0
    assert job.verified()["rows"]["trained"] == 2000


def test_a_drain_without_a_broker_ends(own: tuple[Broker, LiveJob]) -> None:
    broker, job = own
    job.produce(1000)
    running = job.start("train")
    running.wait_event("published", rows=1000)
    job.produce(1000, seed=1)
    running.wait_event("progress", rows=1500)
    os.kill(broker.pids[0], signal.SIGSTOP)
    began = time.monotonic()
    running.process.send_signal(signal.SIGTERM)
    code = running.finish(300)
    os.kill(broker.pids[0], signal.SIGCONT)
    assert time.monotonic() - began < 200, "two time-outs of a transaction and the drain's bound, on a busy machine"
    assert code in (1, 3) and "not drained in 30 s" in running.errors(), running.errors()
    assert job.train("--until-end")[-1]["rows"] == 2000
    assert job.verified()["rows"]["trained"] == 2000
