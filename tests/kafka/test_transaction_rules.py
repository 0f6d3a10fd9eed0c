"""The one set of rules for transactions: what follows from an outcome, and that whoever makes them heeds it.

Trainer, predictor and `dead-letters resend` make theirs by it.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from at_once import run_at_once
from confluent_kafka.admin import AdminClient, NewTopic
from failing_librdkafka import built

from streamtrain._native import KafkaNext, KafkaOutcome
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.reader import read
from streamtrain.kafka.settings import Purpose

TIMEOUT_MS, SHORT_MS = 30_000, 3_000  # of a transaction, from which the patience follows; where a call never returns
MADE = 6
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


def outcome(code: int, flags: str) -> KafkaOutcome:
    return KafkaOutcome(code, "retriable" in flags, "abort" in flags, "fatal" in flags)


@pytest.mark.parametrize(
    ("flags", "in_time", "over"),
    [
        ("", KafkaNext.RENEW, KafkaNext.RENEW),
        ("retriable", KafkaNext.AGAIN, KafkaNext.RENEW),
        ("abort", KafkaNext.ABORT, KafkaNext.ABORT),
        ("abort, retriable", KafkaNext.ABORT, KafkaNext.ABORT),
        ("fatal", KafkaNext.RENEW, KafkaNext.RENEW),
        ("fatal, retriable", KafkaNext.RENEW, KafkaNext.RENEW),
        ("fatal, abort", KafkaNext.RENEW, KafkaNext.RENEW),
        ("fatal, abort, retriable", KafkaNext.RENEW, KafkaNext.RENEW),
    ],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_what_follows_from_an_outcome(flags: str, in_time: KafkaNext, over: KafkaNext) -> None:
    """The code itself says nothing but whether there was an error: a time-out like any other."""
    for code in (-185, -1, 47):
        assert (outcome(code, flags).next(over=False), outcome(code, flags).next(over=True)) == (in_time, over)
    assert {outcome(0, flags).next(late) for late in (False, True)} == {KafkaNext.ON}


def test_every_outcome_is_in_the_table() -> None:
    flags = [
        ", ".join(chosen) for n in range(4) for chosen in itertools.combinations(("fatal", "abort", "retriable"), n)
    ]
    (table,) = [mark for mark in test_what_follows_from_an_outcome.pytestmark if mark.name == "parametrize"]  # type: ignore[attr-defined]
    assert sorted(row[0] for row in table.args[1]) == sorted(flags)


@pytest.fixture(scope="module")
def librdkafka(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("librdkafka"))


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
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    topics = {faults: kafka.fresh_name("rules") for faults in NEXT}
    for done in admin.create_topics([NewTopic(topic, 1, 1) for topic in topics.values()]).values():
        done.result(60)

    def check(faults: str) -> None:
        endings, seen = NEXT[faults]
        topic = topics[faults]
        timeout_ms = SHORT_MS if any(fault[-1:].isdigit() for fault in faults.split(",")) else TIMEOUT_MS
        command = [sys.executable, "-c", PROGRAM, str(librdkafka), kafka.bootstrap, topic, str(timeout_ms), str(MADE)]
        done = subprocess.run(
            command, env={**os.environ, "FAULTS": faults}, capture_output=True, text=True, timeout=240, check=True
        )
        ended, said = json.loads(done.stdout)
        assert ended == endings, said
        with KafkaConsumer.open(Purpose.READ, {"bootstrap.servers": kafka.bootstrap}) as consumer:
            values = [message.value for message in read(consumer, topic, 0, *consumer.bounds(topic, 0))]
        assert b"".join(value or b"" for value in values).decode() == seen

    run_at_once({faults: partial(check, faults) for faults in NEXT})
