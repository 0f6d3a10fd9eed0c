"""Whoever loses Kafka waits for it and goes on where it was; whoever drains, or may open no more files, ends. What of
librdkafka's calls has no answer: what was done is found and not done twice, a deaf client is replaced."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from failing_librdkafka import environment, run_predictor
from prediction_bench import PARTITIONS, Bench
from publisher import Publisher
from served_model import ServedModel
from small_model import SmallModel
from waiting import wait_for

from streamtrain.background import in_background
from streamtrain.broker import Broker
from streamtrain.clients.snapshots import follow_snapshots
from streamtrain.kafka.clients import TransactionalProducer
from streamtrain.kafka.settings import Purpose, client_settings
from streamtrain.run import train as supervisor
from streamtrain.run.train import Supervisor
from streamtrain.topics.shelves import is_manifest
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
    assert draining.result(240) in (1, 3) and "made no progress in 1 s" in caplog.text, running.errors
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
    assert code in (1, 3) and "made no progress in 30 s" in running.errors(), running.errors()
    assert own.train("--until-end")[-1]["rows"] == 3000
    assert own.verified()["rows"]["trained"] == 3000


@pytest.mark.full
def test_a_start_without_a_leader_of_the_snapshots_waits(private_kafka: Callable[..., Broker], tmp_path: Path) -> None:
    """It goes on where the job was: nothing is empty."""
    broker = private_kafka(nodes=3, data=tmp_path / "kafka")
    topic = NewTopic("job.snapshots", 1, replica_assignment=[[3]], config={**TOPIC.config, "min.insync.replicas": "1"})
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    client.create_topics([topic])["job.snapshots"].result(30)
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
    """Stops a process from opening more files; open ones stay open. Returns the limits there were."""
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


ROWS = 2000
LOST = "transaction outcome unknown"
REQUESTS_AFTER = 5
SOON_AND_USUAL = [True, pytest.param(False, marks=pytest.mark.full)]
spawn = multiprocessing.get_context("spawn")


def published_once(job: LiveJob) -> None:
    with job.topic() as topic:
        manifests = [topic.located(read) for read in topic.window(*topic.bounds()) if is_manifest(read.key)]
    times = Counter(located.manifest.version for located in manifests)
    assert set(times.values()) == {1}, times
    assert job.verified()["rows"]["trained"] == ROWS


def wait_for_group(job: LiveJob, running: Running) -> None:
    """Returns when the group's offsets are those of the newest snapshot."""
    expected = [position.offset for position in job.newest().manifest.positions.partitions]
    partitions = [TopicPartition(job.records, partition) for partition in range(job.settings["partitions"])]
    consumer = Consumer({"bootstrap.servers": job.bootstrap, "group.id": job.name})

    def followed() -> bool:
        assert running.process.poll() is None, running.errors()[-3000:]
        return [part.offset for part in consumer.committed(partitions, timeout=20)] == expected

    wait_for(followed)
    consumer.close()


# commits of the run's entry, the first snapshot, the first with rows. librdkafka's send_offsets_to_transaction may not
# come back after a broker's restart: group offsets are no part of a publication, and are committed again if they failed
LOST_COMMITS = [f"commit_transaction={number}?" for number in (1, 2, 3)]
GROUP = ["send_offsets_to_transaction=1", *(f"commit={call}!" for call in (1, 2, 3))]


@pytest.mark.parametrize(
    "faults",
    [[LOST_COMMITS[1], *GROUP], *(pytest.param([each], marks=pytest.mark.full) for each in LOST_COMMITS),
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
    """A fault makes the consumer deaf, as librdkafka's may be after its broker has stalled."""
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
    count = len(bench.counts()) + 1
    bench.ask([count, 1], str(count), partition=count % PARTITIONS)
    bench.flush()
    wait_for(lambda: len(bench.counts()) == count)
    return count


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
        count = [ask_one_more(bench) for _ in range(REQUESTS_AFTER)][-1]
        stop.set()
        member.join(240)
        assert member.exitcode == 0
    finally:
        member.kill()
    if delivery == "exactly_once":
        assert bench.counts().total() == count


NEVER_ENDS = """
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
    """The end of such a producer waits inside librdkafka."""
    command = [sys.executable, "-c", NEVER_ENDS, str(librdkafka)]
    done = subprocess.run(command, env={**os.environ, "FAULTS": "destroy=1"}, timeout=120)
    assert done.returncode == 7
