"""A consumer that has gone deaf, as librdkafka's may after its broker has stalled, is replaced and nothing is lost."""

from __future__ import annotations

import multiprocessing
import signal
from pathlib import Path
from typing import Any

import pytest
from failing_librdkafka import built, environment, run_predictor
from prediction_bench import PARTITIONS, Bench, wait_for
from served_model import ServedModel

from tests.e2e.harness import LiveJob

ASKED_AFTER = 5
spawn = multiprocessing.get_context("spawn")


@pytest.fixture(scope="module")
def librdkafka(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("librdkafka"))


# 150 calls without a message are a few seconds; what else reads in the same process makes fewer.
@pytest.mark.parametrize("fault", ["consume_batch_queue=150*", "metadata=3*"])
def test_ingest_reads_on_with_another(kafka: Any, tmp_path: Path, librdkafka: Path, fault: str) -> None:
    job = LiveJob(kafka, tmp_path)
    running = job.start("train", **environment(librdkafka, tmp_path, fault))
    rows = 0

    def replaced() -> bool:
        nonlocal rows
        rows += 10
        job.produce(10, seed=rows)
        assert running.process.poll() is None, running.errors()
        return "reading on with another client" in running.errors()

    wait_for(replaced)
    running.wait_event("published", rows=rows)
    running.process.send_signal(signal.SIGTERM)
    assert running.finish() == 0
    assert job.verified()["rows"]["trained"] == rows


@pytest.mark.parametrize(
    ("delivery", "fault"),
    [
        ("exactly_once", "consume_batch_queue=150*"),
        ("at_least_once", "DescribeTopics=2*"),
        ("exactly_once", "DescribeTopics=5*"),  # the producer is asked as well
    ],
)
def test_a_predictor_reads_on_with_another(kafka: Any, librdkafka: Path, fault: str, delivery: str) -> None:
    bench = Bench(kafka.bootstrap, kafka.fresh_name("deaf"))
    ServedModel(bench.bootstrap, bench.job).put()
    stop = spawn.Event()
    config = bench.config(delivery, snapshot=1)  # which is read, and then no other
    rewinds = spawn.Value("Q", 0)
    member = spawn.Process(target=run_predictor, args=(librdkafka, fault, 5_000, config, stop, rewinds))
    member.start()
    try:
        wait_for(lambda: asked_one_more(bench) and rewinds.value)
        asked = [asked_one_more(bench) for _ in range(ASKED_AFTER)][-1]
        stop.set()
        member.join(240)
        assert member.exitcode == 0
    finally:
        member.kill()
    if delivery == "exactly_once":
        assert bench.counts().total() == asked


def asked_one_more(bench: Bench) -> int:
    """A request, once all before it are answered; gives how many there have been."""
    asked = len(bench.counts()) + 1
    bench.ask([asked, 1], str(asked), partition=asked % PARTITIONS)
    bench.flush()
    wait_for(lambda: len(bench.counts()) == asked)
    return asked
