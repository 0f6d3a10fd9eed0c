"""Rules of transactions: what follows from each outcome, who goes on writes once, what an exception or a check leaves
is not there; and what Kafka has forgotten of them never becomes visible."""

from __future__ import annotations

import errno
import itertools
import json
import os
import re
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import confluent_kafka
import pytest
from at_once import run_at_once
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from publisher import Publisher, example_manifest
from waiting import wait_for

import streamtrain.broker.node as node
from streamtrain._native import KafkaCode, KafkaEnding, KafkaNext, KafkaOutcome
from streamtrain.background import in_background
from streamtrain.broker import Broker, start_broker
from streamtrain.broker.data_folder import load_record
from streamtrain.broker.distribution import find_distribution
from streamtrain.broker.fencing import fenced
from streamtrain.broker.node import prepare_node
from streamtrain.errors import (
    CheckFailed,
    KafkaBroken,
    SnapshotError,
    StreamtrainError,
    TooManyOpenFiles,
    UserMistake,
)
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.once import Once
from streamtrain.kafka.reader import read
from streamtrain.kafka.settings import Purpose
from streamtrain.kafka.transaction import Batch, Transactions, _Failed, _Unknown
from streamtrain.run.lease import Lease
from streamtrain.topics import control
from streamtrain.topics.chunks import Located
from streamtrain.topics.control import LEAP, Newest, RunEntry, transactional_id
from streamtrain.topics.manifest import Run, encode
from streamtrain.topics.snapshots import publish
from streamtrain.topics.topic import Message, TopicWish, job_topics
from tests.chaos.faults import BrokerStall, hold

TIMEOUT_MS, SHORT_MS = 30_000, 3_000  # of a transaction, from which the patience follows; where a call never returns
COUNT = 6
PROGRAM = """
import json, sys
from streamtrain import _native
library, bootstrap, topic, timeout_ms, made = sys.argv[1:]
_native.kafka_load(library)
from streamtrain.kafka.clients import KafkaConsumer, TransactionalProducer
kafka = {"bootstrap.servers": bootstrap}
producer = TransactionalProducer({**kafka, "transactional.id": topic, "transaction.timeout.ms": timeout_ms})
member = KafkaConsumer({**kafka, "group.id": topic})
endings, said = [], []
for made in range(int(made)):
    while code := producer.native.prepare().code:
        said.append(code)
    assert producer.native.begin().code == 0
    assert producer.produce(topic, str(made).encode(), partition=0) == 0
    producer.native.flush()  # a transaction that the broker knows nothing of yet cannot always be aborted there
    end = producer.native.commit(topic, [(0, made)], member.native.group_metadata())
    endings.append(end.ending.name)
    said.append(end.why.text)
print(json.dumps([endings, said]), flush=True)
producer.close()
"""
ONCE = """
import json, sys
from streamtrain import _native
library, bootstrap, topic, patience_s, count = sys.argv[1:]
_native.kafka_load(library)
from streamtrain.errors import StreamtrainError
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.once import Once
from streamtrain.kafka.settings import Purpose
kafka = {"bootstrap.servers": bootstrap}
group = KafkaConsumer.open(Purpose.GROUP, kafka, topic)
said, done = [], 0
while done < int(count):
    try:
        with Once(kafka, topic, topic, float(patience_s)) as once:
            group.assign(topic, [])
            done = max(0, dict(group.native.committed([0], 30_000))[0])
            while done < int(count):
                with once.transaction():
                    once.write(str(done).encode(), b"key", [("of", b"once")], 0)
                    once.native.flush()  # one that the broker knows nothing of cannot always be aborted there
                    once.move(topic, [(0, done + 1)], group.native.group_metadata())
                done += 1
    except StreamtrainError as error:
        said.append(str(error))
print(json.dumps(said), flush=True)
"""


RENEW, AGAIN, ABORT = KafkaNext.RENEW, KafkaNext.AGAIN, KafkaNext.ABORT
OUTCOMES = {  # flags -> what follows while there is time, and afterwards
    "": (RENEW, RENEW),
    "retriable": (AGAIN, RENEW),
    "abort": (ABORT, ABORT),
    "abort, retriable": (ABORT, ABORT),
    "fatal": (RENEW, RENEW),
    "fatal, retriable": (RENEW, RENEW),
    "fatal, abort": (RENEW, RENEW),
    "fatal, abort, retriable": (RENEW, RENEW),
}
FLAGS = [flags for n in range(4) for flags in itertools.combinations(("fatal", "abort", "retriable"), n)]


@pytest.mark.parametrize("flags", FLAGS, ids=", ".join)
def test_what_follows_from_an_outcome(flags: tuple[str, ...]) -> None:
    """The code itself says nothing but whether there was an error: a time-out like any other."""
    for code in (-185, -1, 47, 0):
        outcome = KafkaOutcome(code, "retriable" in flags, "abort" in flags, "fatal" in flags)
        expected = OUTCOMES[", ".join(flags)] if code else (KafkaNext.ON, KafkaNext.ON)
        assert (outcome.next(over=False), outcome.next(over=True)) == expected


def run(program: str, library: Path, kafka: Any, topic: str, faults: str, *arguments: int) -> Any:
    """Runs a program on a librdkafka with those faults, and returns the JSON that it printed."""
    command = [sys.executable, "-c", program, str(library), kafka.bootstrap, topic, *map(str, arguments)]
    environment = {**os.environ, "FAULTS": faults}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=True)
    return json.loads(done.stdout)


def seen_in(kafka: Any, topic: str) -> bytes:
    """Returns the values that readers of committed messages see in the topic's first partition, joined."""
    with KafkaConsumer.open(Purpose.READ, {"bootstrap.servers": kafka.bootstrap}) as consumer:
        return b"".join(each.value or b"" for each in read(consumer, topic, 0, *consumer.bounds(topic, 0)))


C, A, U = "COMMITTED", "ABORTED", "UNKNOWN"


# calls of librdkafka that fail -> how each transaction ends, and what readers see
NEXT: dict[str, tuple[list[str], str]] = {
    "": ([C, C, C, C, C, C], "012345"),
    "init_transactions=1": ([C, C, C, C, C, C], "012345"),
    "init_transactions=1&": ([C, C, C, C, C, C], "012345"),
    "commit_transaction=3": ([C, C, U, C, C, C], "01345"),
    "commit_transaction=3&": ([C, C, C, C, C, C], "012345"),
    "commit_transaction=3!": ([C, C, A, C, C, C], "01345"),
    "commit_transaction=3?": ([C, C, U, C, C, C], "012345"),
    "send_offsets_to_transaction=3": ([C, C, U, C, C, C], "01345"),
    "send_offsets_to_transaction=3&": ([C, C, C, C, C, C], "012345"),
    "send_offsets_to_transaction=3!": ([C, C, A, C, C, C], "01345"),
    "send_offsets_to_transaction=3!,abort_transaction=1": ([C, C, U, C, C, C], "01345"),
    "send_offsets_to_transaction=3!,abort_transaction=1&": ([C, C, A, C, C, C], "01345"),
    "commit_transaction=3,destroy=1": ([C, C, U, C, C, C], "01345"),
}


def test_the_next_transaction_follows_from_the_one_before(kafka: Any, librdkafka: Path) -> None:
    def check(faults: str) -> None:
        endings, seen = NEXT[faults]
        topic = kafka.new_topic("rules", 1)
        timeout_ms = SHORT_MS if any(fault[-1:].isdigit() for fault in faults.split(",")) else TIMEOUT_MS
        ended, said = run(PROGRAM, librdkafka, kafka, topic, faults, timeout_ms, COUNT)
        assert ended == endings, said
        assert seen_in(kafka, topic).decode() == seen

    run_at_once({faults: partial(check, faults) for faults in NEXT})


def position(kafka: Any, topic: str) -> int:
    with KafkaConsumer.open(Purpose.GROUP, {"bootstrap.servers": kafka.bootstrap}, topic) as group:
        group.assign(topic, [])
        ((_, offset),) = group.native.committed([0], 30_000)
    return int(offset)


ERRORS = {  # calls of librdkafka that fail -> how many errors the writer hears
    "init_transactions=1&,init_transactions=2&": 0,
    "commit_transaction=3": 1,
    "commit_transaction=3&": 0,
    "commit_transaction=3!": 1,
    "commit_transaction=3?": 1,
    "send_offsets_to_transaction=3!,abort_transaction=1": 1,
}


def test_who_goes_on_from_its_position_writes_once(kafka: Any, librdkafka: Path) -> None:
    """Without patience a start is tried once."""

    def check(faults: str) -> None:
        topic = kafka.new_topic("rules", 1)
        said = run(ONCE, librdkafka, kafka, topic, faults, 60, COUNT)
        assert len(said) == ERRORS[faults], said
        assert all(topic in each for each in said)
        assert (seen_in(kafka, topic), position(kafka, topic)) == (b"012345", COUNT)

    def impatient() -> None:
        topic = kafka.new_topic("rules", 1)
        (said,) = run(ONCE, librdkafka, kafka, topic, "init_transactions=1&", 0, 1)
        assert said.startswith(f"topic {topic}: ")

    run_at_once({**{faults: partial(check, faults) for faults in ERRORS}, "without patience": impatient})


def test_what_an_exception_leaves_is_not_there(kafka: Any) -> None:
    """Neither an exception of the program nor a record that cannot be sent, nor of two of a name the earlier."""
    topic, settings = kafka.new_topic("rules", 1), {"bootstrap.servers": kafka.bootstrap}
    with Once(settings, topic, topic) as first, pytest.raises(KafkaBroken), first.transaction():
        first.write(b"never", None, (), 0)
        with Once(settings, topic, topic) as second, second.transaction():
            second.write(b"0", None, (), 0)
    with Once(settings, topic, topic) as once:
        with pytest.raises(ConnectionError), once.transaction():
            once.write(b"no", None, (), 0)
            once.move(topic, [(0, 9)], b"never sent")
            raise ConnectionError("pulled the plug")
        with once.transaction():
            once.write(b"1", None, (), 0)
        with pytest.raises(StreamtrainError, match=topic), once.transaction():
            once.write(b"2", None, (), 0)
            once.write(b"2" * (64 << 20), None, (), 0)
        with once.transaction():
            once.write(b"3", None, (), 0)
        for _ in range(60):  # each so soon after a commit that the broker may not have been told of it yet
            with pytest.raises(ConnectionError), once.transaction():
                once.write(b"no", None, (), 0)
                raise ConnectionError("pulled the plug")
            with once.transaction():
                once.write(b"4", None, (), 0)
    assert seen_in(kafka, topic) == b"013" + 60 * b"4"
    assert position(kafka, topic) < 0


@pytest.fixture
def transactions(kafka: Any, job: str) -> Transactions:
    admin, wishes = Admin(kafka.bootstrap), job_topics(job)
    admin.ensure(wishes)
    where = {"bootstrap.servers": kafka.bootstrap}
    return Transactions(where, job, Lease(job, where, {wish.key: wish.name for wish in wishes}, admin))


def offsets(kafka: Any, topic: str, end: int) -> list[int]:
    with KafkaConsumer.open(Purpose.INGEST, {"bootstrap.servers": kafka.bootstrap}) as consumer:
        return [message.offset for message in read(consumer, topic, 0, 0, end)]


def test_what_its_check_refuses_is_not_committed_and_holds_nobody_up(
    kafka: Any, job: str, transactions: Transactions
) -> None:
    def refuse(timeout_s: float) -> None:
        raise UserMistake("the topic was made again")

    transactions.open()
    messages = [(f"{job}.rounds", Message(b"key", b"value"))]
    with pytest.raises(UserMistake, match="made again"):
        transactions.publish(Batch(messages, "refused", check=refuse))
    assert transactions._producer is not None  # another, where Kafka took too long to abort
    begun = transactions._producer.native.begin()
    assert begun.code == 0, begun.text  # nothing was left open that another had to end
    aborted = transactions._producer.native.abort("a test")
    assert aborted.ending is KafkaEnding.ABORTED, aborted.why.text
    offset = transactions.publish(Batch(messages, "good"))
    assert offsets(kafka, f"{job}.rounds", offset + 1) == [offset]


def test_what_its_check_has_no_answer_for_is_made_again(kafka: Any, job: str, transactions: Transactions) -> None:
    answers = iter([TimeoutError()])

    def late_once(timeout_s: float) -> None:
        for error in answers:
            raise error
        done.append(timeout_s)

    done: list[float] = []
    transactions.open()
    offset = transactions.publish(Batch([(f"{job}.rounds", Message(b"key", b"value"))], "late", check=late_once))
    assert len(done) == 1 and offsets(kafka, f"{job}.rounds", offset + 1) == [offset]


def test_the_end_of_a_run_is_said_or_not_whatever_became_of_its_producer(job: str, transactions: Transactions) -> None:
    transactions.open()
    assert transactions._producer is not None
    transactions._producer.close()
    transactions.end((f"{job}.control", Message(b"key", b"value")))


@pytest.mark.parametrize("where", ["read", "init_transactions"])
def test_nobody_waits_where_no_more_files_may_be_opened(
    transactions: Transactions, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def no_file(*_: object) -> NoReturn:
        if where == "read":
            raise TooManyOpenFiles("no more")
        text = f"Failed to create socket: {os.strerror(errno.EMFILE)}"
        transactions._producer.heard.take(KafkaCode.TRANSPORT, text)
        raise _Failed(KafkaOutcome(KafkaCode.TIMED_OUT, text="no answer"))

    if where == "read":
        with pytest.raises(TooManyOpenFiles):
            transactions.answered(no_file)
    else:
        transactions.open()
        monkeypatch.setattr(transactions, "_abort_forgotten", no_file)
        with pytest.raises(TooManyOpenFiles, match="ulimit"):
            transactions._take_back()  # nothing else ends it: only a command's first run gives up on its own


JOBS = [f"job{number}" for number in range(16)]  # each is caught between a commit and its end now and then
LAPSES_MS = 2_000
KILLS = 12


@pytest.fixture
def broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    """One that is killed and comes back within its session without being fenced first."""
    monkeypatch.setattr(node, "crashed", lambda log: False)
    properties = {"broker.session.timeout.ms": "5000"}
    with start_broker(tmp_path / "kafka", fast_start=True, properties=properties) as broker:
        yield broker


class Writer(threading.Thread):
    """Commits one small transaction after the other in a name until it is told that Kafka is gone."""

    def __init__(self, bootstrap: str, name: str, topic: str, partitions: int, gone: threading.Event) -> None:
        super().__init__()
        self._settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap, "transactional.id": transactional_id(name),
            "transaction.timeout.ms": LAPSES_MS, "retry.backoff.ms": 1, "retry.backoff.max.ms": 20, "log_level": 0,
        }  # fmt: skip
        self._topic, self._partitions, self._gone = topic, partitions, gone
        self.committed: list[bytes] = []
        self.start()

    def run(self) -> None:
        while not self._gone.is_set():
            producer = confluent_kafka.Producer(self._settings)
            with suppress(KafkaException):  # a busy machine lets a transaction time out; the next producer goes on
                producer.init_transactions(20)
                while not self._gone.is_set():
                    value = uuid.uuid4().bytes
                    producer.begin_transaction()
                    for partition in range(self._partitions):
                        producer.produce(self._topic, value, partition=partition)
                    producer.commit_transaction(2)
                    self.committed.append(value)


def written_over_a_kill(broker: Broker, topics: Mapping[str, str], partitions: int = 1) -> dict[str, Writer]:
    """Writers by their names, each to a topic."""
    gone = threading.Event()
    writers = {name: Writer(broker.bootstrap, name, topic, partitions, gone) for name, topic in topics.items()}
    wait_for(lambda: min(len(writer.committed) for writer in writers.values()) >= 5, 600)
    broker.kill()
    gone.set()
    broker.start()
    for writer in writers.values():
        writer.join()
    return writers


@pytest.mark.kafka
@pytest.mark.full
@pytest.mark.parametrize("is_letter", [False, True], ids=["rounds", "letters"])
def test_what_kafka_has_forgotten_never_becomes_visible(broker: Broker, is_letter: bool) -> None:
    Admin(broker.bootstrap).ensure([wish for job in JOBS for wish in job_topics(job)])
    topics = {job: names(job)["dead_letters" if is_letter else "rounds"] for job in JOBS}
    for _ in range(KILLS):
        writers = written_over_a_kill(broker, topics)
        hold(4 * LAPSES_MS / 1000)  # time for the broker to end them
        admin = Admin(broker.bootstrap)  # one from before the crash may keep the leader's old epoch
        forgotten = [job for job in JOBS if not ends(admin, topics[job])]
        hidden = {job: admin.last_stable(topics[job], 1)[0] for job in forgotten}
        for job in JOBS:
            listed_transactions(broker.bootstrap, job, admin).open()
            assert ends(admin, topics[job])
        for job, writer in writers.items():
            seen = visible(broker.bootstrap, topics[job])
            assert len(set(seen.values())) == len(seen)
            if job in hidden:  # the last commit was answered or not: nobody has seen it, nobody will
                assert max(seen) < hidden[job] and set(writer.committed[:-1]) <= set(seen.values())
            else:
                assert set(writer.committed) <= set(seen.values())
        if forgotten:
            return
    pytest.fail(f"Kafka ended every transaction of {KILLS} kills: nothing was tested")


def test_an_open_transaction_among_dead_letters_is_ended_if_it_is_ours_and_not_waited_for(kafka: Any) -> None:
    """Nobody can tell: letters that are written before anything else may be all that Kafka has forgotten to end."""
    job = kafka.fresh_name("letters")
    admin = Admin(kafka.bootstrap)
    admin.ensure(job_topics(job))
    letters = names(job)["dead_letters"]
    other = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": f"{job}.other"})
    other.init_transactions(60)
    other.begin_transaction()
    other.produce(letters, b"another's", partition=0)
    assert other.flush(60) == 0
    begun = admin.high_watermarks(letters, 1)[0]
    transactions = listed_transactions(kafka.bootstrap, job, admin)
    opened = in_background(transactions.open, name="open")
    assert opened.result(60).number == 1  # another's transaction goes on
    assert admin.high_watermarks(letters, 1)[0] > begun and not ends(admin, letters)
    other.commit_transaction(60)
    wait_for(lambda: [*visible(kafka.bootstrap, letters).values()] == [b"another's"])  # its marker comes a little later


class Forgetful(Lease):
    """Shows of control and snapshots what was there before `forget`."""

    forgotten: str = ""

    def forget(self, what: str) -> None:
        self.past = {"holder": super().holder(), "newest": super().newest()}
        self.forgotten = what

    def holder(self) -> RunEntry | None:
        return self.past["holder"] if self.forgotten == "holder" else super().holder()

    def newest(self) -> Located | None:
        return self.past["newest"] if self.forgotten == "newest" else super().newest()


@pytest.mark.parametrize("forgotten", ["holder", "newest", ""])
def test_a_run_leaves_whose_past_kafka_has_forgotten(kafka: Any, forgotten: str) -> None:
    """Ends a run if Kafka has forgotten an answered commit and a later one gets no answer.

    The run cannot continue from what came before.
    """
    job = kafka.fresh_name("forgotten")
    admin = Admin(kafka.bootstrap)
    admin.ensure(job_topics(job))
    topics = Forgetful(job, {"bootstrap.servers": kafka.bootstrap}, names(job), admin)
    transactions = Transactions({"bootstrap.servers": kafka.bootstrap}, job, topics)
    transactions.open()
    transactions.publish(snapshot(job, 1))
    if forgotten == "holder":
        topics.forget(forgotten)
        transactions = Transactions({"bootstrap.servers": kafka.bootstrap}, job, topics)
        transactions.open()
    elif forgotten == "newest":
        topics.forget(forgotten)
        transactions.publish(snapshot(job, 2))
    make = transactions._transaction
    attempts = iter([no_answer])
    transactions._transaction = lambda batch: next(attempts, make)(batch)  # type: ignore[method-assign]
    with pytest.raises(KafkaBroken, match="forgotten") if forgotten else nullcontext():
        assert transactions.publish(snapshot(job, 3)) > 0


def no_answer(*_: object) -> int:
    raise _Unknown("no answer")


def snapshot(job: str, version: int) -> Batch:
    publication = publish(example_manifest(version, job=job, kept=()), b"model", b"", 3, 24)
    return Batch(
        [(f"{job}.snapshots", message) for message in publication.messages], f"snapshot {version}", publication.digest
    )


def ends(admin: Admin, topic: str, partitions: int = 1) -> bool:
    return admin.last_stable(topic, partitions) == admin.high_watermarks(topic, partitions)


def listed_transactions(bootstrap: str, job: str, admin: Admin) -> Transactions:
    kafka = {"bootstrap.servers": bootstrap}
    return Transactions(kafka, job, Lease(job, kafka, names(job), admin))


def names(job: str) -> dict[str, str]:
    return {wish.key: wish.name for wish in job_topics(job)}


def visible(bootstrap: str, topic: str) -> dict[int, bytes | None]:
    """Returns what a reader of committed messages sees of the topic's first partition, by offset."""
    settings = {
        "bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_committed",
        "enable.partition.eof": True,
    }  # fmt: skip
    with KafkaConsumer(settings) as consumer:
        messages = read(consumer, topic, 0, *consumer.bounds(topic, 0))
        return {message.offset: message.value for message in messages}


PARTITIONS, WRITERS = 3, 6


@pytest.mark.kafka
@pytest.mark.full
def test_transactions_of_a_killed_kafka_end_when_it_is_back(tmp_path: Path) -> None:
    with start_broker(tmp_path / "kafka", fast_start=True) as broker:
        Admin(broker.bootstrap).ensure([TopicWish("x", "written", PARTITIONS)])
        for kill in range(2):
            written_over_a_kill(broker, {f"{kill}-{number}": "written" for number in range(WRITERS)}, PARTITIONS)
            admin = Admin(broker.bootstrap)  # one from before the crash may keep the leader's old epoch
            wait_for(lambda admin=admin: ends(admin, "written", PARTITIONS), 600)


@pytest.mark.kafka
@pytest.mark.full
def test_only_after_a_crash_the_controller_comes_first_and_once(tmp_path: Path) -> None:
    """A start that is killed before its broker is in the cluster leaves nothing to be fenced and waited for."""
    log, came_first = tmp_path / "kafka/node1/log", tmp_path / "kafka/node1/fencing.log"
    for _ in range(2):
        with start_broker(tmp_path / "kafka", fast_start=True) as broker:
            assert not came_first.exists()
            assert not fenced(log, 1)
    with start_broker(tmp_path / "kafka", fast_start=True) as broker:
        broker.kill()
        record = load_record(broker.data)
        assert record is not None
        prepare_node(find_distribution(None), broker.data, record, record.nodes[0])
        assert came_first.exists()
        assert fenced(log, 1)
        came_first.unlink()
        broker.start()
        assert not came_first.exists()
        assert not fenced(log, 1)


@pytest.mark.kafka
@pytest.mark.full
def test_a_start_waits_until_the_fencing_is_written(tmp_path: Path) -> None:
    """Were it lost, a broker that comes back would be refused until its session of before ends."""
    slow = {"broker.session.timeout.ms": "600000", "controller.quorum.append.linger.ms": "800"}
    with start_broker(tmp_path / "kafka", fast_start=True, properties=slow) as broker:
        broker.kill()
        broker.start()


@pytest.mark.kafka
@pytest.mark.full
def test_a_node_alone_that_slept_leads_on(tmp_path: Path) -> None:
    """A node's own controller would fence it when it wakes. Kafka 4.3 then forgets transactions it was about to end."""
    with start_broker(tmp_path / "kafka", fast_start=True) as broker:
        Admin(broker.bootstrap).ensure([TopicWish("x", "written", 1)])
        before = leader_epoch(broker.bootstrap)
        BrokerStall(8.0).run(SimpleNamespace(broker=broker))  # type: ignore[arg-type]
        until = time.monotonic() + 3
        while time.monotonic() < until:
            assert leader_epoch(broker.bootstrap) == before
            time.sleep(0.1)


def leader_epoch(bootstrap: str) -> int:
    client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    (future,) = client.list_offsets({TopicPartition("written", 0): OffsetSpec.latest()}, request_timeout=60).values()
    return int(future.result().leader_epoch)


def test_a_program_named_like_the_job_goes_on_and_an_older_build_under_that_name_does_not(
    kafka: Any, job: str, transactions: Transactions
) -> None:
    def begun() -> confluent_kafka.Producer:
        producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": job})
        producer.init_transactions(60)
        producer.begin_transaction()
        producer.produce(f"{job}.records", b"row", partition=0)
        assert producer.flush(60) == 0
        return producer

    users = begun()
    assert transactions.open().number == 1
    users.commit_transaction(60)
    older = begun()
    run = Run(2, "cd" * 16)
    entry = control.run_message(RunEntry(run, job, "host", 1, 1, "0.1.0+older"))
    transactions.publish(Batch([(f"{job}.control", entry)]))
    assert listed_transactions(kafka.bootstrap, job, Admin(kafka.bootstrap)).open().number == 3
    with pytest.raises(KafkaException, match="fenced"):
        older.commit_transaction(60)


def forged_entries(job: str) -> Iterator[Message]:
    """Messages that a stranger may write to control and no trainer of the job does."""
    run = RunEntry(Run(7, "ab" * 16), job, "host", 1, 1, "0.1.0")
    for number in (2**63 - 1, 2**62, LEAP + 2):
        yield control.run_message(replace(run, run=replace(run.run, number=number)))
    arabic = "\u0667".encode()
    for digits in (b"", b"0", b"-1", b"007", b"+7", b"7 ", arabic, b"x", b"\xff", b"9" * 5000, b"1" + b"0" * 19):
        for kind in (b"run/", b"end/"):
            yield Message(kind + digits, control.encode_run(run))
    yield Message(b"run/8", control.encode_run(run))
    yield Message(b"run/7", b"no entry")
    yield control.run_message(replace(run, job="another"))
    yield Message(b"newest", b"no entry")


def test_what_a_stranger_writes_to_control_is_refused_before_anything_is_written_and_taken_back_as_it_says(
    kafka: Any, job: str, transactions: Transactions
) -> None:
    assert transactions.open().number == 1
    admin, topic = Admin(kafka.bootstrap), f"{job}.control"
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap})
    lease = Lease(job, {"bootstrap.servers": kafka.bootstrap}, names(job), admin)
    for number, forged in enumerate(forged_entries(job)):
        producer.produce(topic, forged.value, forged.key)
        assert producer.flush(60) == 0
        before = admin.high_watermarks(topic, 1)
        with pytest.raises(StreamtrainError, match=re.escape(repr(forged.key))) as error:
            listed_transactions(kafka.bootstrap, job, admin).open() if number == 0 else lease.holder()
        assert admin.high_watermarks(topic, 1) == before, "something was written"
        (program,) = re.findall('python -c "(.*)"', str(error.value))
        exec(program)
    assert listed_transactions(kafka.bootstrap, job, admin).open().number == 2


def test_a_version_no_trainer_counted_to_is_refused_and_taken_back(kafka: Any, job: str) -> None:
    topics = Lease(job, {"bootstrap.servers": kafka.bootstrap}, names(job), Admin(kafka.bootstrap))
    publisher = Publisher(kafka.bootstrap, job)
    good = publisher.put(1, b"model")
    for forged in ({"version": 2**63 - 1}, {"run": Run(2**63 - 1, "ab" * 16)}):
        manifest = example_manifest(**{"version": 2, "job": job, "shelf": "s/0002", "kept": publisher.kept, **forged})
        publisher.write([Message(b"s/0002/m", encode(manifest))])
        with pytest.raises(SnapshotError, match="another program wrote it") as error:
            topics.snapshots.newest_manifest()
        (program,) = re.findall('python -c "(.*)"', str(error.value))
        exec(program)
        newest = topics.snapshots.newest_manifest()
        assert newest is not None and newest.digest == good.digest
    for version, refused in ((2**63 - 1, CheckFailed), (2, SnapshotError)):
        with pytest.raises(refused, match="b'newest'"):
            topics.check_published_last(newest, Newest(version, bytes(32), "ab" * 16))
