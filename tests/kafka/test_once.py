"""All or nothing: who writes with its position, and starts again from that after an error, has written once."""

from __future__ import annotations

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

from streamtrain.errors import KafkaBroken, StreamtrainError
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.once import Once
from streamtrain.kafka.reader import read
from streamtrain.kafka.settings import Purpose

COUNT = 6
PROGRAM = """
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


def new_topic(kafka: Any) -> str:
    name = str(kafka.fresh_name("once"))
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(60)
    return name


@pytest.fixture
def topic(kafka: Any) -> str:
    return new_topic(kafka)


@pytest.fixture(scope="module")
def librdkafka(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("librdkafka"))


def there(kafka: Any, topic: str) -> bytes:
    with KafkaConsumer.open(Purpose.READ, {"bootstrap.servers": kafka.bootstrap}) as consumer:
        return b"".join(each.value or b"" for each in read(consumer, topic, 0, *consumer.bounds(topic, 0)))


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

    def run(faults: str, topic: str, patience_s: int, count: int) -> list[str]:
        command = [sys.executable, "-c", PROGRAM, str(librdkafka), kafka.bootstrap, topic, str(patience_s), str(count)]
        environment = {**os.environ, "FAULTS": faults}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=True)
        errors: list[str] = json.loads(done.stdout)
        return errors

    def check(faults: str) -> None:
        topic = new_topic(kafka)
        said = run(faults, topic, 60, COUNT)
        assert len(said) == ERRORS[faults], said
        assert all(topic in each for each in said)
        assert there(kafka, topic) == b"012345"
        assert position(kafka, topic) == COUNT

    def impatient() -> None:
        topic = new_topic(kafka)
        (said,) = run("init_transactions=1&", topic, 0, 1)
        assert said.startswith(f"topic {topic}: ")

    run_at_once({**{faults: partial(check, faults) for faults in ERRORS}, "without patience": impatient})


def test_what_an_exception_leaves_is_not_there(kafka: Any, topic: str) -> None:
    with Once({"bootstrap.servers": kafka.bootstrap}, topic, topic) as once:
        for value, fails in ((b"0", False), (b"no", True), (b"1", False)):
            try:
                with once.transaction():
                    once.write(value, None, (), 0)
                    if fails:
                        once.move(topic, [(0, 9)], b"never sent")
                        raise ConnectionError("pulled the plug")
            except ConnectionError:
                assert fails
    assert there(kafka, topic) == b"01"
    assert position(kafka, topic) < 0


def test_a_record_that_cannot_be_sent_takes_the_others_with_it(kafka: Any, topic: str) -> None:
    with Once({"bootstrap.servers": kafka.bootstrap}, topic, topic) as once:
        with pytest.raises(StreamtrainError, match=topic), once.transaction():
            once.write(b"0", None, (), 0)
            once.write(b"0" * (64 << 20), None, (), 0)
        with once.transaction():
            once.write(b"1", None, (), 0)
    assert there(kafka, topic) == b"1"


def test_of_two_of_a_name_the_later_writes(kafka: Any, topic: str) -> None:
    settings = {"bootstrap.servers": kafka.bootstrap}
    with Once(settings, topic, topic) as first, pytest.raises(KafkaBroken), first.transaction():
        first.write(b"0", None, (), 0)
        with Once(settings, topic, topic) as second, second.transaction():
            second.write(b"1", None, (), 0)
    assert there(kafka, topic) == b"1"
