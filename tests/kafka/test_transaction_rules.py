"""The one set of rules for transactions: what follows from an outcome, and that whoever makes them heeds it.

Trainer, predictor and `dead-letters resend` make theirs by it. Once writes with its position: who starts again from
that after an error has written once.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pytest
from at_once import run_at_once
from failing_librdkafka import built

from streamtrain._native import KafkaCode, KafkaEnding, KafkaNext, KafkaOutcome
from streamtrain.errors import KafkaBroken, StreamtrainError, TooManyOpenFiles, UserMistake
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.once import Once
from streamtrain.kafka.reader import read
from streamtrain.kafka.settings import Purpose
from streamtrain.kafka.transaction import Batch, Transactions, _Failed
from streamtrain.run.held_job import HeldJob
from streamtrain.topics.topic import Message, job_topics

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


@pytest.fixture(scope="module")
def librdkafka(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("librdkafka"))


def run(program: str, library: Path, kafka: Any, topic: str, faults: str, *arguments: int) -> Any:
    """What a program printed that ran on a librdkafka with those faults."""
    command = [sys.executable, "-c", program, str(library), kafka.bootstrap, topic, *map(str, arguments)]
    environment = {**os.environ, "FAULTS": faults}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=True)
    return json.loads(done.stdout)


def seen_in(kafka: Any, topic: str) -> bytes:
    """What readers of committed messages see of the topic."""
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
    assert seen_in(kafka, topic) == b"013"
    assert position(kafka, topic) < 0


@pytest.fixture
def transactions(kafka: Any, job: str) -> Transactions:
    admin, wishes = Admin(kafka.bootstrap), job_topics(job)
    admin.ensure(wishes)
    where = {"bootstrap.servers": kafka.bootstrap}
    return Transactions(where, job, HeldJob(job, where, {wish.key: wish.name for wish in wishes}, admin))


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
