"""What of librdkafka's calls has no answer: what was done is found and not done twice, a deaf client is replaced."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from failing_librdkafka import built, environment, run_predictor
from prediction_bench import PARTITIONS, Bench, wait_for
from served_model import ServedModel

from streamtrain.topics.shelves import is_manifest
from tests.e2e.harness import LiveJob, Running

ROWS = 2000
LOST = "transaction outcome unknown"
ASKED_AFTER = 5
SOON_AND_USUAL = [True, pytest.param(False, marks=pytest.mark.full)]
spawn = multiprocessing.get_context("spawn")


@pytest.fixture(scope="module")
def librdkafka(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("librdkafka"))


def published_once(job: LiveJob) -> None:
    with job.topic() as topic:
        manifests = [topic.located(read) for read in topic.window(*topic.bounds()) if is_manifest(read.key)]
    times = Counter(located.manifest.version for located in manifests)
    assert set(times.values()) == {1}, times
    assert job.verified()["rows"]["trained"] == ROWS


def wait_for_group(job: LiveJob, running: Running) -> None:
    """Returns when the group's offsets are those of the newest snapshot."""
    expected = [position.offset for position in job.newest().manifest.positions.partitions]
    asked = [TopicPartition(job.records, partition) for partition in range(job.settings["partitions"])]
    consumer = Consumer({"bootstrap.servers": job.bootstrap, "group.id": job.name})

    def followed() -> bool:
        assert running.process.poll() is None, running.errors()[-3000:]
        return [part.offset for part in consumer.committed(asked, timeout=20)] == expected

    wait_for(followed)
    consumer.close()


# commits of the run's entry, the first snapshot, the first with rows. librdkafka's send_offsets_to_transaction may not
# come back after a broker's restart: group offsets are no part of a publication, and are committed again if they failed
LOST_COMMITS = [f"commit_transaction={number}?" for number in (1, 2, 3)]
GROUP = ["send_offsets_to_transaction=1", *(f"commit={call}!" for call in (1, 2, 3))]


@pytest.mark.parametrize(
    "faults",
    [[LOST_COMMITS[0], *GROUP], *(pytest.param([each], marks=pytest.mark.full) for each in LOST_COMMITS),
     pytest.param(GROUP[:1], marks=pytest.mark.full), pytest.param(GROUP[1:], marks=pytest.mark.full)],
    ids=",".join,
)  # fmt: skip
def test_a_commit_whose_answer_is_lost_is_not_made_twice(
    kafka: Any, tmp_path: Path, librdkafka: Path, faults: list[str]
) -> None:
    """Group offsets follow the publications, also when they were not taken at first and no publication comes any more.

    What Kafka has is gone on from at once, by the same run.
    """
    job = LiveJob(kafka, tmp_path)
    job.produce(ROWS)
    running = job.start("train", **environment(librdkafka, tmp_path, ",".join(faults)))
    running.wait_event("published", rows=ROWS)
    wait_for_group(job, running)
    running.process.terminate()
    assert running.finish() == 0
    if faults[0] != LOST_COMMITS[0]:
        assert (LOST in running.errors()) == (faults[0] in LOST_COMMITS)
    assert "a new run follows" not in running.errors()
    published_once(job)


@pytest.mark.parametrize(
    ("says", "soon"),  # nothing; that nobody leads what others of its time can read
    [("~", True), pytest.param("~", False, marks=pytest.mark.full), pytest.param("*", False, marks=pytest.mark.full)],
)
def test_a_client_that_goes_deaf_after_a_lost_answer_is_made_anew(
    kafka: Any, tmp_path: Path, librdkafka: Path, says: str, soon: bool
) -> None:
    """Looks of the snapshots: the newest run's and the newest at the start, then the one for the lost commit.

    The usual ten seconds are long enough to say that it waits.
    """
    job = LiveJob(kafka, tmp_path)
    job.produce(ROWS)
    faults = f"commit_transaction=3?,query_watermark_offsets=3{says}"
    done = job.command("train", "--until-end", **environment(librdkafka, tmp_path, faults, soon))
    assert done.returncode == 0, done.stderr[-6000:]
    assert LOST in done.stderr and (soon or "waiting for Kafka" in done.stderr)
    published_once(job)


# 150 calls without a message are a few seconds; what else reads in the same process makes fewer.
@pytest.mark.parametrize("soon", SOON_AND_USUAL)
@pytest.mark.parametrize("fault", ["consume_batch_queue=150*", "metadata=3*"])
def test_ingest_reads_on_with_another(kafka: Any, tmp_path: Path, librdkafka: Path, fault: str, soon: bool) -> None:
    """As librdkafka's consumer may go deaf after its broker has stalled."""
    job = LiveJob(kafka, tmp_path)
    running = job.start("train", **environment(librdkafka, tmp_path, fault, soon))
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


def ask_one_more(bench: Bench) -> int:
    """Sends a request once all before it are answered; returns how many there have been."""
    asked = len(bench.counts()) + 1
    bench.ask([asked, 1], str(asked), partition=asked % PARTITIONS)
    bench.flush()
    wait_for(lambda: len(bench.counts()) == asked)
    return asked


@pytest.mark.parametrize(
    ("delivery", "fault"),
    [
        pytest.param("exactly_once", "consume_batch_queue=150*", marks=pytest.mark.full),
        pytest.param("at_least_once", "DescribeTopics=2*", marks=pytest.mark.full),
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
        wait_for(lambda: ask_one_more(bench) and rewinds.value)
        asked = [ask_one_more(bench) for _ in range(ASKED_AFTER)][-1]
        stop.set()
        member.join(240)
        assert member.exitcode == 0
    finally:
        member.kill()
    if delivery == "exactly_once":
        assert bench.counts().total() == asked


PROGRAM = """
import os, sys, threading
from streamtrain import _native
_native.kafka_load(sys.argv[1])
producers = [_native.KafkaProducer([("bootstrap.servers", "127.0.0.1:9")])]
threading.Thread(target=producers.clear, daemon=True).start()
while producers:
    pass
os._exit(7)
"""


def test_a_producer_that_does_not_end_holds_up_only_who_ends_it(librdkafka: Path) -> None:
    """Its end waits inside librdkafka."""
    command = [sys.executable, "-c", PROGRAM, str(librdkafka)]
    done = subprocess.run(command, env={**os.environ, "FAULTS": "destroy=1"}, timeout=120)
    assert done.returncode == 7
