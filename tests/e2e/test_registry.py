"""Records that name their schema in a registry: starts, stops, writers, `check`, and sinks, before one that fails."""

from __future__ import annotations

import json
import struct
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from avro_schemas import nullable, record, written
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from prediction_bench import Bench, running
from proto_schemas import File
from registry_front import RegistryFront
from waiting import wait_for

import streamtrain
from streamtrain import Job, RecordWriter, read_predictions, schemas
from streamtrain.clients.dead_letters import Resender
from streamtrain.columns.formats.avro_schema import canonical
from streamtrain.errors import KafkaUnreachable, UserMistake
from streamtrain.kafka.round_logs import round_logs
from streamtrain.run.findings import findings
from streamtrain.run.roles import predictor
from streamtrain.schemas import SchemaRegistry, with_schema
from streamtrain.topics.predictions import Answer
from streamtrain.topics.topic import TopicWish
from tests.e2e.harness import LiveJob, Running, rows
from tests.e2e.sink import Bad, Feature, Message, Plan, Row, Sent, Sink, run_sink
from tests.e2e.test_sink_formats import LIST_FEATURE
from tests.oracles.protobuf_wire import sized

HEADER = "__value_schema_id"
UNKNOWN = uuid.UUID("00000000-0000-4000-8000-000000000001")
UNKNOWN_ID = 0x7FFFFF
TRACE = ("trace", b"t")
COLOURS = ["red", "green", "blue"]

FIELDS: dict[str, Any] = {**{f"x{i}": "double" for i in range(1, 5)}, "colour": "string", "y": nullable("int")}
ROW = record(*FIELDS.items())
NEWER = record(("when", "long"), *{**FIELDS, "x1": "float", "colour": nullable("string")}.items(), ("note", "string"))
OTHER = record(*{**FIELDS, "x2": "string"}.items())
COLOUR = {"type": "enum", "name": "Colour", "namespace": "shop", "symbols": COLOURS}
PAINT = record(("colour", "Colour"), name="Paint", namespace="shop")
WHOLE = record(*{**FIELDS, "colour": COLOUR}.items(), ("paint", nullable(PAINT)))
REFERRING = record(*{**FIELDS, "colour": "shop.Colour"}.items(), ("paint", nullable("shop.Paint")))

NUMBERS = " ".join(f"double x{i} = {i};" for i in range(1, 5))
FLIGHT = f'syntax = "proto3"; package air; message Flight {{ {NUMBERS} string colour = 5; optional int32 y = 6; }}'
NEWER_FLIGHT = FLIGHT.replace("string colour", "Colour colour").replace("double x1", "float one").replace(
    "6; }", "6; repeated int64 note = 9 [packed = true]; } enum Colour { red = 0; green = 1; blue = 2; }")  # fmt: skip
OTHER_FLIGHT = FLIGHT.replace("double x2", "string x2")
AIR = 'syntax = "proto3"; package air; '
COLOUR_FILE = AIR + "enum Colour { red = 0; green = 1; blue = 2; }"
PAINT_FILE = AIR + 'import "colour.proto"; message Paint { Colour colour = 1; }'
REFERRING_FILE = (AIR + f'import "paint.proto"; import "colour.proto"; message Flight {{ {NUMBERS} Colour colour = 5; '
                  "optional int32 y = 6; Paint paint = 7; }")  # fmt: skip

USER = {"type": "object", "properties": {"numbers": {"type": "array"}}}
OUTCOME = {"type": "object", "properties": {"y": {"type": "integer"}}}
JSON_ROW = {"title": "Row", "type": "object", "properties": {"user": USER, "outcome": OUTCOME}}


def framed(number: int, datum: bytes) -> bytes:
    return b"\0" + struct.pack(">I", number) + datum


def registered(client: SchemaRegistryClient, subject: str, schema: Any, *references: SchemaReference) -> int:
    """The id of an Avro schema, or of a .proto's text."""
    text, kind = (schema, "PROTOBUF") if isinstance(schema, str) else (json.dumps(schema), "AVRO")
    return int(client.register_schema(subject, Schema(text, kind, list(references))))


def referring(client: SchemaRegistryClient, subject: str, kind: str) -> int:
    """The id of a schema that refers to two, one of which refers to the other."""
    of_kind = {"avro": ("shop.Colour", COLOUR, "shop.Paint", PAINT, REFERRING),
               "protobuf": ("colour.proto", COLOUR_FILE, "paint.proto", PAINT_FILE, REFERRING_FILE)}  # fmt: skip
    first, first_schema, second, second_schema, schema = of_kind[kind]
    colour = SchemaReference(first, f"{subject}-{first}", 1)
    paint = SchemaReference(second, f"{subject}-{second}", 1)
    registered(client, colour.subject, first_schema)
    registered(client, paint.subject, second_schema, colour)
    return registered(client, f"{subject}-referring", schema, paint, colour)


def numbers_of(row: dict[str, Any], begin: int = 1) -> bytes:
    return b"".join(bytes([i << 3 | 1]) + struct.pack("<d", row[f"x{i}"]) for i in range(begin, 5))


def newer_flight(row: dict[str, Any]) -> bytes:
    colour = COLOURS.index(row["colour"])
    fields = b"\x0d" + struct.pack("<f", row["x1"]) + numbers_of(row, 2) + (bytes([5 << 3, colour]) if colour else b"")
    return b"\0" + fields + bytes([6 << 3, row["y"]]) + sized(9, b"\1\2\3")  # the first message of the file


def painted(kind: str, row: dict[str, Any]) -> bytes:
    """A row by the schema that refers to others."""
    if kind == "avro":
        return written(WHOLE, {**row, "paint": {"colour": row["colour"]}})
    colour = bytes([COLOURS.index(row["colour"])])
    fields = numbers_of(row) + bytes([5 << 3]) + colour + bytes([6 << 3, row["y"]])
    return b"\0" + fields + sized(7, bytes([1 << 3]) + colour)


@cache
def flights() -> Any:
    """Google's own class of the message, and what it would have written the .proto from."""
    file = File("flight.proto", "air")
    file.add("Flight", *((f"x{i}", i, "double") for i in range(1, 5)), ("colour", 5, "string"),
             ("y", 6, "int32", "optional"))  # fmt: skip
    return file.message("air.Flight")


SERIALIZERS: dict[str, Callable[[SchemaRegistryClient, dict[str, Any]], Any]] = {
    "avro": lambda client, conf: AvroSerializer(client, json.dumps(ROW), conf=conf),
    "json": lambda client, conf: JSONSerializer(json.dumps(JSON_ROW), client, conf=conf),
    "protobuf": lambda client, conf: ProtobufSerializer(flights(), client, {"use.deprecated.format": False, **conf}),
}


@cache
def _serializer(kind: str, url: str, headers: bool) -> Any:
    conf = {"schema.id.serializer": header_schema_id_serializer} if headers else {}
    return SERIALIZERS[kind](SchemaRegistryClient({"url": url}), conf)


def serialized(kind: str, front: RegistryFront, topic: str, given: Sequence[Any], headers: bool) -> Iterator[Any]:
    """Messages with rows as Confluent's own serializers write them, with the schema's GUID in a header or its id."""
    serialize = _serializer(kind, front.url, headers)
    for row in given:
        pairs: list[tuple[str, bytes | None]] = [TRACE]
        datum = {"avro": lambda row: {"y": None, **row}, "protobuf": lambda row: flights()(**row)}.get(kind, dict)(row)
        yield {"value": serialize(datum, SerializationContext(topic, MessageField.VALUE, pairs)), "headers": pairs}


def registry_job(kafka: Any, folder: Path, url: str, kind: str = "avro", schema: Any = ROW, **settings: Any) -> LiveJob:
    """A job whose schema is a file; of the newest in the registry where `schema` is None."""
    text = schema if isinstance(schema, str) else json.dumps(schema, indent=2)
    (folder / "row.schema").write_text(text)
    named = {"format": f'{kind}"\nschema = "row.schema' if schema is not None else kind,
             "max_dead_letter_share": f'0.9\n[registry]\nurl = "{url}"'}  # fmt: skip
    return LiveJob(kafka, folder, **{"batch_rows": 16, **named, **settings})


def answers_later(front: RegistryFront) -> None:
    """Answers 503 until there was a question."""
    front.mode = 503
    front.paths.clear()

    def come_back() -> None:
        wait_for(lambda: front.paths)
        front.mode = "through"

    threading.Thread(target=come_back, daemon=True).start()


MORE = {"when": 1, "note": ""}  # of NEWER


@pytest.fixture
def front(registry: Any) -> Iterator[RegistryFront]:
    server = RegistryFront(registry.url)
    yield server
    server.close()


@pytest.fixture
def client(registry: Any) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": registry.url})


def by(number: int, schema: Any, row: Any) -> bytes:
    return framed(number, written(schema, row))


# -- trainers that wait -----------------------------------------------------------------------------------------------


def test_partitions_of_known_schemas_go_on(
    kafka: Any, client: SchemaRegistryClient, front: RegistryFront, tmp_path: Path
) -> None:
    """The others go on from where they were once the schema is there, in a bounded run too."""
    job = registry_job(kafka, tmp_path, front.url)
    known = registered(client, f"{job.records}-value", ROW)
    newer = registered(client, f"{job.records}-newer", NEWER)
    for partition in (0, 2):
        job.produce_values((by(newer, NEWER, {**row, **MORE}) for row in rows(50)), partition=partition)
        job.produce_values((by(known, ROW, row) for row in rows(50)), partition=partition)
    job.produce_values((by(known, ROW, row) for row in rows(400)), partition=1)
    front.away = {str(newer)}
    running = job.start("train", "--until-end")
    try:
        running.wait_rows(400)
        running.wait_event("progress", waiting_for_schema=True)
        front.away = set()
        assert running.finish() == 0
    finally:
        running.process.kill()
    assert running.events[-1]["rows"] == 600
    job.check(600)


@pytest.mark.full
def test_every_log_tells_the_schemas_of_its_own_rounds(
    kafka: Any, client: SchemaRegistryClient, front: RegistryFront, tmp_path: Path
) -> None:
    """Also of a record that one round begins and another ends, and of an id that nobody knew at first."""
    schema, newer = ({"type": "array", "items": each} for each in (ROW, NEWER))
    job = registry_job(kafka, tmp_path, front.url, schema=schema, partitions=1, workers=1, batch_rows=1,
                       averaging_frequency=1, publish_interval="20ms")  # fmt: skip
    known = registered(client, f"{job.records}-value", schema)
    late = registered(client, f"{job.records}-late", newer)
    front.unknown = {str(late)}

    def produced(seed: int) -> None:
        job.produce_values(
            [by(known, schema, list(rows(5000, seed))), by(late, newer, [{**row, **MORE} for row in rows(5)])]
        )

    produced(1)
    assert job.train("--until-end")[-1]["rows"] == 5000
    front.unknown = set()
    produced(2)
    assert job.train("--until-end")[-1]["rows"] == 10_005
    front.mode = "away"
    front.paths.clear()
    job.check(10_005, 1)
    assert not front.paths
    logs = [logs.first for logs in round_logs(job.job.kafka_consumer(), f"{job.name}.rounds")]
    texts = [{number: bool(text) for number, (text, _) in log.named_schemas.items()} for log in logs if len(log.rounds)]
    old, new = str(known), str(late)
    assert len(texts) > 3 and all(log and log.get(old, True) for log in texts), texts
    lately = [log[new] for log in texts if new in log]  # its rows may be in several logs
    assert texts[0] == {old: True} and lately == sorted(lately) and set(lately) == {False, True}


@pytest.mark.full
def test_a_stop_is_heard_while_a_schema_is_waited_for(kafka: Any, tmp_path: Path) -> None:
    job = registry_job(kafka, tmp_path, "http://127.0.0.1:9", partitions=1, workers=1)
    job.produce_values([by(1, ROW, row) for row in rows(1)])
    running = job.start("train")
    running.wait_event("progress", waiting_for_schema=True)
    assert running.end() == 0


# -- starts and `check` -----------------------------------------------------------------------------------------------


def found(job: LiveJob) -> tuple[str, str]:
    (finding,) = [each for each in findings(job.job, job.admin, None) if each.what == "registry"]
    return finding.state, finding.text


def test_check_asks_the_registry(
    kafka: Any, client: SchemaRegistryClient, front: RegistryFront, tmp_path: Path
) -> None:
    job = registry_job(kafka, tmp_path, front.url)
    subject = f"{job.records}-value"
    assert found(job) == ("ok", f"{front.url} answers, {subject} has no schema that records name")
    number = registered(client, subject, NEWER)
    assert found(job) == ("ok", f"{front.url} answers, the newest of {subject} is {number}, which the columns take")
    number = registered(client, subject, OTHER)
    problem = f"$.x2: schema {number}: expected a double, got text"
    assert found(job) == ("warning", f"{front.url} answers, {problem}")
    front.mode = 503
    state, text = found(job)
    assert state == "warning" and text.startswith(front.url) and "does not answer" in text


def test_a_start_without_a_schema_says_so(
    kafka: Any, client: SchemaRegistryClient, front: RegistryFront, tmp_path: Path
) -> None:
    job = registry_job(kafka, tmp_path, front.url, schema=None)
    subject = f"{job.records}-value"
    refused = f"records.schema: expected a file with an Avro schema, or its text, or a schema of {subject}"
    with pytest.raises(UserMistake, match=refused):
        with_schema(job.job)
    state, text = found(job)
    assert state == "mistake" and f"a schema of {subject} in the registry, got none" in text
    registered(client, subject, record(("x1", "double")))
    with pytest.raises(UserMistake, match=r"columns\.colour: expected a field of the schema's"):
        with_schema(job.job)
    assert "columns.colour: " in found(job)[1]


def test_without_a_registry_a_schema_is_given(kafka: Any, front: RegistryFront, tmp_path: Path) -> None:
    """A manifest too has the schema: nobody asks for it again."""
    with pytest.raises(UserMistake, match=r"records.schema: missing, expected a file with an Avro schema, or its text"):
        LiveJob(kafka, tmp_path, format="avro")
    job = registry_job(kafka, tmp_path, front.url, schema=None)
    with pytest.raises(UserMistake, match=r"records.schema: missing"):
        Job.from_effective(job.job.effective())


# -- writers ----------------------------------------------------------------------------------------------------------


DOES_NOT_ANSWER, DOES_NOT_TAKE = "the registry does not answer", "records-value: the registry does not take the schema"


@pytest.mark.parametrize(
    ("kind", "schema", "answer", "error", "text"),
    [
        ("avro", None, 503, KafkaUnreachable, f"{DOES_NOT_ANSWER}: .*said so.*; waited for 3 s"),
        ("avro", ROW, 503, KafkaUnreachable, f"{DOES_NOT_TAKE}: .*said so.*503"),
        ("avro", ROW, 409, UserMistake, f"{DOES_NOT_TAKE}: .*said so.*409"),
        ("json", None, "through", UserMistake, r"records.schema: expected a file with a JSON Schema, .*got none"),
    ],
    ids=["no schema comes", "it does not answer", "it refuses", "there is no schema"],
)
def test_a_writer_without_a_schema_says_so(
    kafka: Any, front: RegistryFront, tmp_path: Path, kind: str, schema: Any, answer: Any, error: type[Exception],
    text: str, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(schemas, "_PATIENCE_S", 3.0)
    job = registry_job(kafka, tmp_path, front.url, kind=kind, schema=schema)
    front.mode = answer
    with pytest.raises(error, match=text):
        RecordWriter(job.job)
    assert answer != 503 or len(front.paths) > 1


def test_what_goes_on_from_records_with_headers(kafka: Any, front: RegistryFront, tmp_path: Path) -> None:
    """A record that is sent again as it was keeps the header that names its schema. A writer takes no such one."""
    job = registry_job(kafka, tmp_path, front.url)
    given = [*rows(30), {**next(rows(1)), "y": 5}]
    turns = enumerate(serialized("avro", front, job.records, given, headers=True))
    job.produce_messages({**message, "partition": number % 3} for number, message in turns)
    assert job.train("--until-end")[-1]["rows"] == 30
    analyzed = json.loads(job.here("analyze", "--topic", "--json").stdout)
    assert analyzed["columns"]["x1"]["rows"] == 31 and analyzed["columns"]["x1"]["missing"] == 0
    job.path.write_text(job.path.read_text().replace("[model]", '[model]\nloss = "mean_squared_error"'))
    mended = Job.load(job.path)
    (sent,) = Resender(mended).send(job.records)
    assert (sent.rows, sent.refused) == (1, [])
    messages = job.messages()
    first, again = (each for each in messages if sum(each.value == other.value for other in messages) == 2)
    assert again.headers == first.headers and {name for name, _ in again.headers} == {TRACE[0], HEADER}
    with RecordWriter(job.job) as writer:
        with pytest.raises(UserMistake, match=f"expected headers without {HEADER}"):
            writer.write(next(rows(1)), headers={HEADER: b"\1" + UNKNOWN.bytes})
        assert writer.write(next(rows(1)), headers={"trace": b"t"}) == 1


# -- what is asked ----------------------------------------------------------------------------------------------------


def test_the_arrival_of_a_schema_is_reported_to_all(client: SchemaRegistryClient, front: RegistryFront) -> None:
    """A record that waits for it is read again though another of its schema was the first to find it there."""
    number = str(registered(client, f"came-{id(front)}-value", ROW))
    ours = SchemaRegistry({"url": front.url}, "came", "avro")
    front.away = {number}
    assert ours.ask(number) is None and not ours.ask_again()
    front.away = set()
    wait_for(lambda: ours.ask(number) is not None)
    assert ours.ask_again() and not ours.ask_again()


def test_an_id_is_requested_once(client: SchemaRegistryClient, front: RegistryFront) -> None:
    number = registered(client, f"asked-{id(front)}-value", ROW)
    ours = SchemaRegistry({"url": front.url}, "asked", "avro")
    for schema_id in (number, number, 0x7FFFFE, 0x7FFFFE):
        assert ours.ask(str(schema_id)) is not None
    paths = [path.rpartition("/")[2].partition("?")[0] for path in front.paths if "/schemas/ids/" in path]
    assert paths == [str(number), str(0x7FFFFE)]


def test_what_a_schema_refers_to_is_waited_for(client: SchemaRegistryClient, front: RegistryFront) -> None:
    number = referring(client, f"waits-{id(front)}", "avro")
    front.away = {"subjects"}
    ours = SchemaRegistry({"url": front.url}, "waits", "avro")
    assert ours.ask(str(number)) is None
    front.away = set()
    text, why_not = ours.wait(str(number))
    assert not why_not and "shop.Paint" in text


def test_a_registry_that_knows_no_guids_is_waited_for(front: RegistryFront, caplog: pytest.LogCaptureFixture) -> None:
    """A log line reports it; nothing is dead lettered for it."""
    front.guids = False
    ours = SchemaRegistry({"url": front.url}, "orders", "avro")
    assert ours.ask(str(UNKNOWN)) is None
    assert "knows no GUIDs, as Confluent Platform 8's does: " in caplog.text
    front.guids = True
    assert ours.wait(str(UNKNOWN))[0] == "" and [each for each in front.paths if str(UNKNOWN) in each]


# -- a sink for each format that a registry has schemas of ------------------------------------------------------------

COUNT = Plan().request_rows
ROUND = 64  # rows: 2 workers, 2 batches of 16


def answers(sink: Sink) -> list[Answer]:
    return list(read_predictions(sink.live.name, bootstrap=sink.live.bootstrap, until_end=True))


def narrowed(message_rows: list[Row]) -> list[Row]:
    """The rows as they come out of NEWER and its like, whose x1 is a float."""
    return [{**row, "x1": float(np.float32(row["x1"]))} for row in message_rows]


class Registered:
    """Features of a sink whose records of one format name their schemas in the registry behind `front`."""

    def __init__(self, kind: str, front: RegistryFront) -> None:
        self.kind, self.front = kind, front
        self.client = SchemaRegistryClient({"url": front.url})

    def subject(self, sink: Sink) -> str:
        return f"{sink.live.records}-value"

    def encode(self, sink: Sink, message_rows: Sequence[Row], number: int, is_request: bool) -> Iterator[Message]:
        """Names the schema in a header and before the value, by turns."""
        topic = f"{sink.live.name}.requests" if is_request else sink.live.records
        yield from serialized(self.kind, self.front, topic, message_rows, headers=number % 2 == 0)

    def plan(self, records: str = "", **more: Any) -> Plan:
        base = {"records": f'format = "{self.kind}"\nmax_dead_letter_share = 0.9\n{records}',
                "registry": f'url = "{self.front.url}"', **more.pop("base", {})}  # fmt: skip
        return Plan(base, count=600, sizes=(1,), encode=self.encode, **more)

    # -- names in headers -----------------------------------------------------------------------------------------

    def headers(self) -> Feature:
        return Feature("schemas in headers", then=self._send_headers, check=self._check_headers)

    def _send_headers(self, sink: Sink) -> None:
        message_rows = sink.filled(rows(1), 0)
        (ours,), (before,) = (list(sink.encoded(message_rows, number)) for number in (0, 1))
        header, datum, place = dict(ours["headers"])[HEADER], ours["value"], b"\0" * (self.kind == "protobuf")
        assert header[:1] == b"\1" and before["value"][:1] == b"\0" and HEADER not in dict(before["headers"])
        newest = self.client.get_latest_version(self.subject(sink))
        frame = f"{HEADER}: expected a registry's frame (0 and a schema id, or 1 and a GUID), got"
        unknown = (f"schema {UNKNOWN}: the registry knows no such schema; the newest of {self.subject(sink)} is "
                   f"{newest.guid}")  # fmt: skip
        bad = [(b"\1" + UNKNOWN.bytes + place, unknown)] * 5
        for name, reason in [*bad, (b"\2" + header[1:], f"{frame} byte 2"), (header[:9], f"{frame} 9 bytes")]:
            sink.send([Sent({"value": datum, "headers": [(HEADER, name)]}, dead=[("$", reason)])])
        for value, headers in ((before["value"], [(HEADER, None)]),
                            (datum, [(HEADER, b"\0\0\0\0\0"), (HEADER, header)])):  # the last one counts  # fmt: skip
            sink.send([Sent({"value": value, "headers": headers}, message_rows)])

    def _check_headers(self, sink: Sink) -> None:
        logs = [logs.first for logs in round_logs(sink.live.job.kafka_consumer(), f"{sink.live.name}.rounds")]
        schemas = {each: bool(text) for log in logs for each, (text, _) in log.named_schemas.items()}
        first = self.client.get_version(self.subject(sink), 1)
        assert schemas[str(first.guid)] and schemas[str(first.schema_id)] and not schemas[str(UNKNOWN)], schemas
        found = answers(sink)
        assert not any(each.error for each in found)
        assert {each.headers for each in found} <= {(TRACE,), ()}  # an answer has no schema
        assert sum(each.headers == (TRACE,) for each in found) == len(sink.requests)
        done = sink.live.here("read", "records", "--until-end", "--json")
        documents = [json.loads(line) for line in done.stdout.splitlines()]
        unreadable = sum(
            rows for (path, reason), rows in sink.expected.items() if path == "$" or reason.startswith("schema ")
        )
        assert sum("error" in each for each in documents) == unreadable >= 7, documents[:2]
        ((_, messages),) = sink.live.admin.spans(sink.live.records) or []
        assert sum("rows" in each for each in documents) == messages - unreadable

    # -- other schemas --------------------------------------------------------------------------------------------

    def other_schemas(self, newer: Any, by_newer: Any, other: Any) -> Feature:
        """Writers of a newer schema, of one that refers to others, of one that does not fit, and of none."""

        def send(sink: Sink) -> None:
            subject = self.subject(sink)
            number = registered(self.client, f"{subject}-newer", newer)
            message_rows = narrowed(sink.filled(rows(2 * ROUND, seed=1), 0))
            sink.send([Sent({"value": framed(number, by_newer(row))}, [row]) for row in message_rows])
            number = referring(self.client, subject, self.kind)
            message_rows = sink.filled(rows(ROUND, seed=2), 0)
            sink.send([Sent({"value": framed(number, painted(self.kind, row))}, [row]) for row in message_rows])
            number = registered(self.client, f"{subject}-other", other)
            got = "text" if self.kind == "avro" else "a string"
            wrong = ("$.x2", f"schema {number}: expected a double, got {got}")
            one = next(rows(1))
            datum = by_newer(one) if self.kind == "protobuf" else written(OTHER, {**one, "x2": "bad"})
            sink.send([Sent({"value": framed(number, datum)}, dead=[wrong])] * 5)

        return Feature("other schemas", then=send)

    def no_schemas(self) -> Feature:
        """An id that nobody knows, and one of another type."""

        def send(sink: Sink) -> None:
            subject, other = self.subject(sink), "AVRO" if self.kind != "avro" else "JSON"
            newest = self.client.get_latest_version(subject).schema_id
            text = '"string"' if other == "AVRO" else json.dumps(JSON_ROW)
            number = self.client.register_schema(f"{subject}-type", Schema(text, other))
            of_type = f"schema {number}: expected a schema of type {self.kind.upper()}, got {other}; the newest of"
            unknown = f"schema {UNKNOWN_ID}: the registry knows no such schema; the newest of"
            for named, reason in ((number, of_type), (UNKNOWN_ID, unknown)):
                sent = Sent({"value": framed(named, b"\0\0")}, dead=[("$", f"{reason} {subject} is {newest}")])
                sink.send([sent] * 5)

        return Feature("no schemas", then=send)

    def unasked(self) -> Feature:
        """The round log has which schema was read by: `verify` and `replay` need no registry."""

        @contextmanager
        def away(sink: Sink) -> Iterator[None]:
            self.front.mode = "away"
            self.front.paths.clear()
            yield
            assert not self.front.paths
            self.front.mode = "through"

        return Feature("nobody asks afterwards", verifying=away)

    def writer(self) -> Feature:
        """Our own writer of records and of requests, which registers the job's schema for their topic."""

        def then(sink: Sink) -> None:
            message_rows = sink.filled(rows(ROUND, seed=8), 0)
            with RecordWriter(Job.load(sink.live.path)) as writer:
                assert writer.write([sink.wired(row) for row in message_rows]) == ROUND
            sink.rows += message_rows

        def check(sink: Sink) -> None:
            with RecordWriter(Job.load(sink.live.path), to="requests") as writer:
                writer.write([{"y": None, **sink.wired(row)} for row in sink.request_rows[:3]])
            newest = self.client.get_latest_version(f"{sink.live.name}.requests-value")
            assert newest.schema.schema_type == self.kind.upper()
            assert sink.live.here("predict", "--until-end").returncode == 0
            found = answers(sink)
            assert not any(each.error for each in found)
            assert sum(len(each.prediction) if isinstance(each.prediction, list) else 1 for each in found) == COUNT + 3

        return Feature("a writer", then=then, check=check)

    # -- a registry that does not answer --------------------------------------------------------------------------

    def waited_for(self, faults: Sequence[Any], schema: Any, encode: Any) -> Feature:
        """Earlier records are trained; nothing is dead lettered. A server that is no registry has its 404s too."""

        def during(sink: Sink, first: Running) -> None:
            for fault in faults:
                number = schema(sink, fault)
                message_rows = narrowed(sink.filled(rows(ROUND, seed=7), 0))
                self.front.paths.clear()
                self.front.mode = fault
                sink.send([Sent({"value": framed(number, encode(row, fault))}, [row]) for row in message_rows])
                first.wait_event("progress", waiting_for_schema=True)
                wait_for(lambda: len(self.front.paths) >= 2)
                self.front.mode = "through"
                first.wait_rows(len(sink.rows) // ROUND * ROUND)
                assert self.kind != "json" or not any("/versions/1" in path for path in self.front.paths)  # referred to
            assert 1 <= first.errors().count("is not known yet, so its records wait") <= len(faults)

        return Feature("a registry that is away", during=during)


def test_protobuf(kafka: Any, front: RegistryFront, tmp_path: Path) -> None:
    ours = Registered("protobuf", front)
    (tmp_path / "flight.proto").write_text(FLIGHT)
    others = ours.other_schemas(NEWER_FLIGHT, newer_flight, OTHER_FLIGHT)
    features = [ours.writer(), ours.headers(), others, ours.no_schemas(), ours.unasked()]
    run_sink(kafka, tmp_path, features, ours.plan('schema = "flight.proto"', once=True))


# -- JSON -----------------------------------------------------------------------------------------------------------

FLAT = {"columns": '"x{1..4}" = { kind = "number", standardize = true }\n'
                   'colour = { kind = "category", buckets = 16, embed = 4 }\ny = { role = "label" }'}  # fmt: skip
NESTED = {
    "columns": '"x{1..4}" = { path = "user.numbers[{0..3}]", kind = "number", standardize = true }\n'
               "colour = { path = 'user[\"a.b\"].colour', kind = \"category\", buckets = 16, embed = 4 }\n"
               'y = { path = "outcome.y", role = "label" }',
}  # fmt: skip


def nested(row: Row) -> Row:
    user = {"name": "Ann", "numbers": [row[f"x{i}"] for i in range(1, 5)], "a.b": {"colour": row["colour"]}}
    others = {name: cell for name, cell in row.items() if name not in {"x1", "x2", "x3", "x4", "colour", "y"}}
    outcome = {"outcome": {"y": row["y"]}} if "y" in row else {}
    return {"user": user, "colour": {"not": "this"}, **outcome, **others}


def written_nested(sink: Sink) -> None:
    """Rows of a program, nested one by one and together, and flat as columns."""
    message_rows = sink.filled(rows(3 * ROUND, seed=3), 0)
    direct = Job.load(sink.live.path)
    with RecordWriter(direct) as writer:
        for row in message_rows[:ROUND]:
            writer.write(nested(row))
        writer.write([nested(row) for row in message_rows[ROUND : 2 * ROUND]])
        names = {name for row in message_rows for name in row}
        writer.write({name: [row.get(name) for row in message_rows[2 * ROUND :]] for name in names})
    sink.rows += message_rows


def check_nested(sink: Sink) -> None:
    """A program may give a model rows as records are, or columns by their names."""
    one = sink.request_rows[0]
    with sink.live.model() as model:
        answer = model.predict(nested(one))
        assert model.predict({name: [one[name]] for name in one}) == [answer]
    again = streamtrain.fit(Job.load(sink.live.path), map(nested, sink.rows)).parameters
    assert all(array.tobytes() == again[name].tobytes() for name, array in sink.newest.parameters.items())


def frameless(sink: Sink) -> None:
    error = "expected a registry's frame (0 and a schema id, or 1 and a GUID), got"
    sink.send([Sent({"value": b"\0\0\0"}, dead=[("$", f"{error} 3 bytes")])])
    sink.send([Sent({"value": json.dumps(row).encode()}, dead=[("$", f"{error} byte 123")]) for row in rows(4)])


def test_json(kafka: Any, front: RegistryFront, tmp_path: Path) -> None:
    """Rows in rows, from paths."""
    ours = Registered("json", front)
    (tmp_path / "row.json").write_text(json.dumps(JSON_ROW))

    def refers(sink: Sink, fault: Any) -> int:
        subject = ours.subject(sink)
        newer = {**JSON_ROW, "properties": {"note": {"type": "string"}, "row": {"$ref": "row.json"}}}
        schema = Schema(json.dumps(newer), "JSON", [SchemaReference("row.json", subject, 1)])
        return int(ours.client.register_schema(f"{subject}-newer", schema))

    def noted(row: Row, fault: Any) -> bytes:
        return json.dumps({**nested(row), "note": "é"}).encode()

    wrong = Bad({"x3": "bad"}, "$.user.numbers[2]", 'got "bad"')
    features = [
        LIST_FEATURE, Feature("paths", wire=nested, bad=[wrong], check=check_nested),
        Feature("rows of rows", then=written_nested), ours.writer(), ours.headers(), ours.no_schemas(),
        Feature("no frame", then=frameless),
        ours.unasked(), ours.waited_for(["away"], refers, noted),
    ]  # fmt: skip
    run_sink(kafka, tmp_path, features, ours.plan('schema = "row.json"', base=NESTED, twin=FLAT))


# -- Avro -----------------------------------------------------------------------------------------------------------

SECOND = record(*FIELDS.items(), ("extra", nullable("long")))
SECOND["fields"][-1]["default"] = None
FAULTS = ["away", 500, 401, 404]


def newest(ours: Registered) -> Feature:
    """The newest schema is the reader's from a start on, which waits for the registry; then it is pinned."""
    pinned = []

    def pin(sink: Sink, *_: Any) -> None:
        pinned.append(sink.live.newest().manifest.job_settings["records"]["schema"])

    def second(sink: Sink) -> None:
        registered(ours.client, ours.subject(sink), SECOND)
        answers_later(ours.front)

    def check(sink: Sink) -> None:
        pin(sink)
        assert pinned[-2:] == [canonical(json.dumps(schema)) for schema in (ROW, SECOND)]

    return Feature("the newest schema", during=pin, then=second, check=check)


def validation_set(ours: Registered, topic: str) -> Feature:
    """Rows of a validation set name their schemas too, and `check` does not wait for them."""

    def before(sink: Sink) -> None:
        ours.front.mode = "through"
        sink.live.admin.ensure([TopicWish("held", topic, 1)])
        number = registered(ours.client, f"{topic}-value", ROW)
        message = [{"value": framed(number, written(ROW, row)), "partition": 0} for row in rows(10)]
        sink.live.produce_messages(message, topic)
        path = sink.live.path.with_suffix(".check.toml")  # with a schema, which a job needs to check rows
        text = sink.live.path.read_text()
        path.write_text(text.replace("[records]", f"[records]\nschema = '''{json.dumps(ROW)}'''"))
        job, found = Job.load(path), []
        for ours.front.mode in ("away", "through"):
            found += [each for each in findings(job, sink.live.admin, None) if each.what == "held out"]
        assert [each.state for each in found] == ["warning", "ok"], found
        assert "the registry does not answer" in found[0].text and found[1].text == "10 rows"

    def check(sink: Sink) -> None:
        assert sink.newest.manifest.metrics["held_out"]["rows"] == 10

    settings = f'no_improvement = 1000\nheld_out = {{ topic = "{topic}" }}'
    return Feature("a validation set", {"train.early_stopping": settings}, twin={}, before=before, check=check)


def predictors(ours: Registered) -> Feature:
    """A request that waits for its schema stops those behind it in its partition, and no other; each has one answer.
    A predictor that waits stops when it is told to."""
    newer = record(("for", "string"), *FIELDS.items())

    def check(sink: Sink) -> None:
        front, asking = ours.front, Bench(sink.live.bootstrap, sink.live.name)
        known = registered(ours.client, f"{sink.live.records}-known", ROW)
        expected = len(answers(sink))
        for delivery in ("exactly_once", "at_least_once"):
            late = registered(ours.client, f"{sink.live.records}-{delivery}", {**newer, "doc": delivery})
            front.away = {str(late)}
            config = replace(predictor.Config.of(sink.live.job), delivery=delivery)
            for row in rows(10):
                asking.ask(framed(known, written(ROW, row)), "before", partition=0)
                asking.ask(framed(late, written(newer, {**row, "for": ""})), "new")
                asking.ask(framed(known, written(ROW, row)), "beside", partition=1)
            asking.flush()
            with running(config) as counters:
                wait_for(lambda: counters["requests"] == 11 and counters["waiting"] == 1)
            with running(config) as counters:  # the one before has stopped
                wait_for(lambda: counters.get("waiting") == 1)
                front.away = set()
                wait_for(lambda: counters["requests"] == 19 and counters["waiting"] == 0)
            expected += 30
            found = answers(sink)
            assert len(found) == expected and all(answer.error is None for answer in found)

    return Feature("predictors that wait", check=check)


def test_avro(kafka: Any, front: RegistryFront, tmp_path: Path) -> None:
    """The job file has no schema."""
    ours = Registered("avro", front)

    def schema(sink: Sink, fault: Any) -> int:
        return registered(ours.client, f"{ours.subject(sink)}-{fault}", {**NEWER, "doc": str(fault)})

    def by_newer(row: Row, fault: Any = "") -> bytes:
        return written(NEWER, {**row, "when": 1, "note": ""})

    away = ours.waited_for(FAULTS, schema, by_newer)
    features = [
        validation_set(ours, kafka.fresh_name("held")), newest(ours), ours.writer(), away, ours.headers(),
        ours.other_schemas(NEWER, by_newer, OTHER), ours.no_schemas(), ours.unasked(), predictors(ours),
        Feature("starts that wait", before=lambda sink: answers_later(front), then=lambda sink: answers_later(front)),
    ]  # fmt: skip
    run_sink(kafka, tmp_path, features, ours.plan())
