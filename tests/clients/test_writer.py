"""RecordWriter on a real Kafka: forms, packing, keys, sizes, failures."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from streamtrain import Job, RecordWriter
from streamtrain.clients.topic_reader import read_messages
from streamtrain.errors import KafkaUnreachable, UserMistake
from streamtrain.kafka.admin import Admin, job_topics

TEXT = """\
name = "{name}"
[kafka]
bootstrap.servers = "{bootstrap}"
[topics]
records.partitions = 2
[columns]
x = {{ missing = 0 }}
carrier = {{ kind = "category", buckets = 8, missing = "" }}
late = {{ role = "label" }}
{key}
"""


@pytest.fixture
def job(kafka: Any) -> Job:
    return made(kafka, "")


def made(kafka: Any, key: str, **sets: str) -> Job:
    text = TEXT.format(name=kafka.fresh_name("writer"), bootstrap=kafka.bootstrap, key=key)
    job = Job.parse(text, sets=[f"{name}={value}" for name, value in sets.items()])
    Admin(job.kafka.bootstrap, job.kafka_admin()).ensure(job_topics(job.name, job.topic_tables()))
    return job


def values(job: Job, topic: str = "records") -> list[Any]:
    return [json.loads(message.value or b"") for message in read_messages(job, topic, until_end=True)]


def test_a_dict_is_a_record(job: Job) -> None:
    with RecordWriter(job) as writer:
        assert writer.write({"x": 1.5, "carrier": "AA", "late": 1}) == 1
        writer.write({"x": np.float32(0.25), "carrier": None, "late": True, "more": "kept"})
    assert (writer.rows_written, writer.records_written) == (2, 2)
    assert sorted(values(job), key=lambda row: row["x"]) == [
        {"x": 0.25, "carrier": None, "late": True, "more": "kept"},
        {"x": 1.5, "carrier": "AA", "late": 1},
    ]


def test_rows_given_together_are_packed(job: Job) -> None:
    with RecordWriter(job) as writer:
        assert writer.write({"x": np.arange(600), "carrier": ["AA"] * 600, "late": np.zeros(600, dtype=np.int8)}) == 600
    assert sorted(len(value["x"]) for value in values(job)) == [88, 256, 256]


def test_single_rows_are_gathered_where_a_pack_is_given(job: Job) -> None:
    with RecordWriter(job, pack=4) as writer:
        for number in range(10):
            writer.write({"x": number, "carrier": "AA", "late": 0})
        assert writer.records_written == 2
        writer.flush()
        assert (writer.rows_written, writer.records_written) == (10, 3)
    xs = [value["x"] for value in values(job)]
    assert sorted(xs) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_rows_in_one_record_have_one_key(kafka: Any) -> None:
    job = made(kafka, 'id = { role = "key" }')
    with RecordWriter(job) as writer:
        writer.write([{"id": f"k{i % 3}", "x": i, "carrier": "AA", "late": 0} for i in range(9)])
        writer.write({"id": 7, "x": 9, "carrier": "AA", "late": 0})
    found = {
        message.key: json.loads(message.value or b"")["x"] for message in read_messages(job, "records", until_end=True)
    }
    assert found == {b"k0": [0, 3, 6], b"k1": [1, 4, 7], b"k2": [2, 5, 8], b"7": 9}


def test_a_record_too_large_is_split_and_a_row_too_large_refused(job: Job) -> None:
    with RecordWriter(job) as writer:
        writer.write({"x": range_list(8), "carrier": ["a" * 300_000] * 8, "late": [0] * 8})
        assert writer.records_written == 4
        with pytest.raises(UserMistake, match=r"expected a row of at most 900,000 bytes, got 1,000,\d\d\d"):
            writer.write({"x": 1, "carrier": "a" * 1_000_000, "late": 0})
    assert sorted(x for value in values(job) for x in value["x"]) == range_list(8)


def range_list(count: int) -> list[int]:
    return list(range(count))


def test_requests(job: Job) -> None:
    with RecordWriter(job, "requests") as writer:
        writer.write({"x": 1, "carrier": "AA"})
    assert values(job, "requests") == [{"x": 1, "carrier": "AA"}] and values(job) == []


def test_no_broker_is_said() -> None:
    text = TEXT.format(name="x", bootstrap="127.0.0.1:1", key="")
    writer = RecordWriter(Job.parse(text))
    writer.write({"x": 1, "carrier": "AA", "late": 0})
    with pytest.raises(
        KafkaUnreachable, match=r"1 records to x\.records not taken by Kafka at 127\.0\.0\.1:1 in 0\.5 s"
    ):
        writer.flush(0.5)


def test_a_delivery_that_failed_is_raised(kafka: Any) -> None:
    text = TEXT.format(name="x", bootstrap="127.0.0.1:1", key="")
    writer = RecordWriter(Job.parse(text, sets=["kafka.producer.message.timeout.ms=300"]))
    writer.write({"x": 1, "carrier": "AA", "late": 0})
    with pytest.raises(KafkaUnreachable, match="was not delivered"):
        writer.flush(10)


@pytest.mark.parametrize(
    ("to", "pack", "message"), [("rounds", None, "records or requests"), ("records", 0, "at least 1")]
)
def test_mistakes(job: Job, to: Any, pack: int | None, message: str) -> None:
    with pytest.raises(UserMistake, match=message):
        RecordWriter(job, to, pack=pack)


def test_reading_until_the_end_stops_where_the_end_was(job: Job) -> None:
    with RecordWriter(job, pack=1) as writer:
        writer.write([{"x": i, "carrier": "AA", "late": 0} for i in range(10)])
        writer.flush()
        messages = read_messages(job, "records", until_end=True)
        xs = [json.loads(next(messages).value or b"")["x"]]
        writer.write([{"x": i, "carrier": "AA", "late": 0} for i in range(10, 2_000)])
        writer.flush()
        xs += [json.loads(message.value or b"")["x"] for message in messages]
    assert sorted(xs) == list(range(10))
    assert len(values(job)) == 2_000
