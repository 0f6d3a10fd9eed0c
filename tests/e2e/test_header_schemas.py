"""Schemas named in headers by GUID, as Confluent's serializers write them: trained, verified, replayed, predicted, and
what goes on from such records. The tests' registry knows no GUIDs: what stands before it tells and answers them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from registry_front import RegistryFront

from streamtrain import Job, RecordWriter, read_predictions
from streamtrain.clients.dead_letters import Resender, read_dead_letters
from streamtrain.clients.repacking import Repacker
from streamtrain.errors import UserMistake
from streamtrain.kafka.clients import KafkaConsumer, Message
from streamtrain.kafka.reader import read_all
from streamtrain.kafka.round_logs import round_logs
from streamtrain.kafka.settings import Purpose
from streamtrain.schemas import SchemaRegistry
from streamtrain.topics.topic import TopicWish
from tests.e2e.harness import LiveJob, rows
from tests.e2e.test_avro_registry import ROW as AVRO
from tests.e2e.test_avro_registry import avro_job
from tests.e2e.test_json_registry import ROW as JSON
from tests.e2e.test_json_registry import json_job
from tests.e2e.test_protobuf_registry import flights, proto_job

HEADER = "__value_schema_id"
UNKNOWN = uuid.UUID("00000000-0000-4000-8000-000000000001")
TRACE = ("trace", b"t")
Headers = list[tuple[str, bytes | None]]
Given = tuple[bytes, Headers]  # a message


@pytest.fixture
def front(registry: Any) -> Iterator[RegistryFront]:
    made = RegistryFront(registry.url)
    yield made
    made.close()


class Written(NamedTuple):
    """How one format's records are made: a job, Confluent's serializer for it, and a row as that takes it."""

    format: str
    job: Callable[[Any, Path, str], LiveJob]
    serializer: Callable[[SchemaRegistryClient, dict[str, Any]], Any]
    row: Callable[[dict[str, Any]], Any] = lambda row: row
    place: bytes = b""  # of the message, behind the GUID


_flights = cache(flights)  # one class of its own


def _proto(client: SchemaRegistryClient, settings: dict[str, Any]) -> ProtobufSerializer:
    return ProtobufSerializer(_flights(), client, {"use.deprecated.format": False, **settings})


WRITTEN = {
    each.format: each
    for each in (
        Written("avro", avro_job, lambda client, conf: AvroSerializer(client, json.dumps(AVRO), conf=conf)),
        Written("json", json_job, lambda client, conf: JSONSerializer(json.dumps(JSON), client, conf=conf)),
        Written("protobuf", proto_job, _proto, lambda row: _flights()(**row), b"\0"),
    )
}


def serialized(name: str, front: RegistryFront, topic: str, given: Any, headers: bool = True) -> list[Given]:
    """Rows as Confluent's own serializer writes them."""
    conf = {"schema.id.serializer": header_schema_id_serializer} if headers else {}
    serialize = WRITTEN[name].serializer(SchemaRegistryClient({"url": front.url}), conf)
    made: list[Given] = []
    for row in given:
        told: Headers = [TRACE]
        value = serialize(WRITTEN[name].row(row), SerializationContext(topic, MessageField.VALUE, told))
        made.append((value, told))
    return made


def produce(job: LiveJob, topic: str, given: list[Given]) -> None:
    producer = Producer({"bootstrap.servers": job.bootstrap})
    for number, (value, headers) in enumerate(given):
        producer.produce(topic, value=value, headers=headers, partition=number % 3)
    assert producer.flush(60) == 0


def messages(job: Job, topic: str, spans: dict[int, tuple[int, int]]) -> list[Message]:
    with KafkaConsumer.open(Purpose.READ, job.kafka_consumer(), "test") as consumer:
        return list(read_all(consumer, topic, spans))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", WRITTEN)
def test_schemas_in_headers(kafka: Any, front: RegistryFront, tmp_path: Path, name: str) -> None:
    """Beside those before the value. A GUID that nobody knows and a header that holds none are dead letters. Afterwards
    nobody asks the registry any more."""
    job = WRITTEN[name].job(kafka, tmp_path, front.url)
    subject, place = f"{job.records}-value", WRITTEN[name].place
    ours = serialized(name, front, job.records, rows(300))
    before = serialized(name, front, job.records, rows(100, seed=1), headers=False)
    (header,) = {dict(headers)[HEADER] for _, headers in ours}
    assert header is not None and header[:1] == b"\1" and all(value[:1] == b"\0" for value, _ in before)
    datum, (framed, _) = ours[0][0], before[0]
    bad = [[(HEADER, b"\1" + UNKNOWN.bytes + place)]] * 5 + [[(HEADER, b"\2" + header[1:])], [(HEADER, header[:9])]]
    both = [(framed, [(HEADER, None)]), (datum, [(HEADER, b"\0\0\0\0\0"), (HEADER, header)])]  # the last one counts
    produce(job, job.records, [*ours, *before, *((datum, each) for each in bad), *both])
    assert job.train("--until-end")[-1]["rows"] == 402
    front.mode = "away"
    front.asked.clear()
    assert job.verified()["rows"] == {"trained": 402, "dead_lettered": 7, "filtered": 0}
    job.replayed()
    assert not front.asked
    front.mode = "through"
    newest = SchemaRegistryClient({"url": front.url}).get_latest_version(subject)
    frame = f"{HEADER}: expected a registry's frame (0 and a schema id, or 1 and a GUID), got"
    letters = [found.letter for found in read_dead_letters(Job.load(job.path))]
    assert {(part.path, part.reason) for letter in letters for part in letter.rows} == {
        ("$", f"schema {UNKNOWN}: the registry knows no such schema; the newest of {subject} is {newest.guid}"),
        ("$", f"{frame} byte 2"), ("$", f"{frame} 9 bytes"),
    }  # fmt: skip
    logs = round_logs(job.job.kafka_consumer(), f"{job.name}.rounds")
    told = {each: bool(text) for log in logs for each, (text, _) in log.named_schemas.items()}
    assert told == {str(newest.guid): True, str(newest.schema_id): True, str(UNKNOWN): False}
    requests = f"{job.name}.requests"
    asked = [{**row, "y": 0} if name == "protobuf" else row for row in rows(3)]
    produce(job, requests, serialized(name, front, requests, asked))
    assert job.command("predict", "--until-end").returncode == 0
    answers = list(read_predictions(job.name, bootstrap=job.bootstrap, until_end=True))
    assert [(answer.error, answer.headers) for answer in answers] == [(None, (TRACE,))] * 3  # an answer has no schema
    job.verified()
    shown = [json.loads(line) for line in job.command("read", "records", "--until-end", "--json").stdout.splitlines()]
    assert sum("rows" in each for each in shown) == 402 and sum("error" in each for each in shown) == 7, shown[:2]


def test_what_goes_on_from_records_with_headers(kafka: Any, front: RegistryFront, tmp_path: Path) -> None:
    """Rows packed again or sent again are of other bytes: no header names their schema. A writer takes no such one."""
    job = avro_job(kafka, tmp_path, front.url)
    given = serialized("avro", front, job.records, [*rows(30), {**next(rows(1)), "y": 5}])
    produce(job, job.records, given)
    assert job.train("--until-end")[-1]["rows"] == 30
    analyzed = json.loads(job.command("analyze", "--topic", "--json").stdout)
    assert analyzed["columns"]["x1"]["rows"] == 31 and analyzed["columns"]["x1"]["missing"] == 0
    packed = f"{job.name}.packed"
    job.admin.ensure([TopicWish("packed", packed, 1)])
    told = list(Repacker(job.job, job.records, packed, 8).run())[-1]
    assert told.rows == 30 and told.left_out == 1
    assert {tuple(each.headers) for each in messages(job.job, packed, {0: (0, told.records)})} == {(TRACE,)}
    job.path.write_text(job.path.read_text().replace("[model]", '[model]\nloss = "mean_squared_error"'))
    mended = Job.load(job.path)
    (sent,) = Resender(mended).send(job.records)
    assert (sent.rows, sent.refused) == (1, [])
    ends = dict(enumerate(job.admin.spans(job.records) or []))
    (again,) = [each for each in messages(job.job, job.records, ends) if each.value and each.value[:1] == b"\0"]
    assert again.headers == [TRACE] and again.value is not None
    with RecordWriter(job.job) as writer:
        with pytest.raises(UserMistake, match=f"expected headers without {HEADER}"):
            writer.write(next(rows(1)), headers={HEADER: b"\1" + UNKNOWN.bytes})
        assert writer.write(next(rows(1)), headers={"trace": b"t"}) == 1


def test_a_registry_that_knows_no_guids_is_waited_for(front: RegistryFront, caplog: pytest.LogCaptureFixture) -> None:
    """It says so; nothing is dead lettered for it."""
    front.guids = False
    ours = SchemaRegistry({"url": front.url}, "orders", "avro")
    assert ours.ask(str(UNKNOWN)) is None
    assert "knows no GUIDs, as Confluent Platform 8's does: " in caplog.text
    front.guids = True
    assert ours.wait(str(UNKNOWN))[0] == "" and [each for each in front.asked if str(UNKNOWN) in each]
