"""The trainer's transactions on a real Kafka: what of a batch is committed."""

from __future__ import annotations

import errno
import os
from typing import Any, NoReturn

import pytest

from streamtrain._native import KafkaCode, KafkaEnding, KafkaOutcome
from streamtrain.errors import TooManyOpenFiles, UserMistake
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.reader import read
from streamtrain.kafka.settings import Purpose
from streamtrain.kafka.transaction import Batch, Transactions, _Failed
from streamtrain.run.held_job import HeldJob
from streamtrain.topics.topic import Message, job_topics


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
