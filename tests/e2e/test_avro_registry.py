"""Avro through Kafka: by a schema beside the job file, and framed, by schemas that a real registry holds."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from avro_schemas import nullable, record, written
from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from prediction_bench import Bench, running
from registry_front import RegistryFront
from waiting import wait_for

from streamtrain import RecordWriter, read_predictions, schemas
from streamtrain.clients.dead_letters import read_dead_letters
from streamtrain.errors import KafkaUnreachable, UserMistake
from streamtrain.job import Job
from streamtrain.kafka.round_logs import round_logs
from streamtrain.run.findings import findings
from streamtrain.run.roles import predictor
from streamtrain.schemas import SchemaRegistry
from streamtrain.topics.topic import TopicWish
from tests.e2e.harness import LiveJob, rows

FIELDS: dict[str, Any] = {**{f"x{i}": "double" for i in range(1, 5)}, "colour": "string", "y": nullable("int")}
ROW = record(*FIELDS.items())
NEWER = record(("when", "long"), *{**FIELDS, "x1": "float", "colour": nullable("string")}.items(), ("note", "string"))
OTHER = record(*{**FIELDS, "x2": "string"}.items())


def avro_job(kafka: Any, folder: Path, url: str = "", schema: Any = ROW, **settings: Any) -> LiveJob:
    (folder / "row.avsc").write_text(json.dumps(schema, indent=2))
    registry = f'\n[registry]\nurl = "{url}"' if url else ""
    named = {"format": 'avro"\nschema = "row.avsc', "max_dead_letter_share": f"0.9{registry}"}
    return LiveJob(kafka, folder, **{"batch_rows": 16, **named, **settings})


def test_a_schema_beside_the_job_file(kafka: Any, tmp_path: Path) -> None:
    job = avro_job(kafka, tmp_path)
    with RecordWriter(job.job) as writer:
        assert writer.write(list(rows(1000))) == 1000
    assert job.train("--until-end")[-1]["rows"] == 1000
    (tmp_path / "row.avsc").unlink()  # what reads has the text
    job.path.write_text(job.path.read_text().replace('"row.avsc"', f"'''{json.dumps(ROW)}'''"))
    assert job.verified()["rows"] == {"trained": 1000, "dead_lettered": 0, "filtered": 0}
    job.replayed()
    with RecordWriter(Job.load(job.path), to="requests") as writer:
        writer.write([{**row, "y": None} for row in rows(3)])
    assert job.command("predict", "--until-end").returncode == 0
    answers = list(read_predictions(job.name, bootstrap=job.bootstrap, until_end=True))
    assert len(answers) == 3 and all(answer.error is None for answer in answers)


@pytest.fixture
def front(registry: Any) -> Iterator[RegistryFront]:
    made = RegistryFront(registry.url)
    yield made
    made.close()


def framed(number: int, schema: Any, row: dict[str, Any]) -> bytes:
    return b"\0" + struct.pack(">I", number) + written(schema, row)


@pytest.fixture
def client(registry: Any) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": registry.url})


def registered(client: SchemaRegistryClient, subject: str, schema: Any) -> int:
    return int(client.register_schema(subject, Schema(json.dumps(schema), "AVRO")))


def test_writers_of_several_schemas(
    kafka: Any, registry: Any, client: SchemaRegistryClient, front: RegistryFront, tmp_path: Path
) -> None:
    job = avro_job(kafka, tmp_path, front.url)
    subject = f"{job.records}-value"
    serialize = AvroSerializer(client, json.dumps(ROW))  # Confluent's own, which registers what it writes
    context = SerializationContext(job.records, MessageField.VALUE)
    newer = {"when": 1, "note": "new"}
    first = [serialize(row, context) for row in rows(400)]
    number = registered(client, f"{subject}-newer", NEWER)
    second = [framed(number, NEWER, {**row, **newer}) for row in rows(400, seed=1)]
    other = registered(client, f"{subject}-other", OTHER)
    bad = [framed(other, OTHER, {**row, "x2": "n/a"}) for row in rows(5)]
    unknown = [b"\0\0\x7f\xff\xff" + written(ROW, row) for row in rows(5)]
    job.produce_values(value for pair in zip(first, second, strict=True) for value in pair)
    job.produce_values([*bad, *unknown])
    assert job.train("--until-end")[-1]["rows"] == 800
    report = job.verified()
    assert report["rows"] == {"trained": 800, "dead_lettered": 10, "filtered": 0}
    job.replayed()
    told = {(part.path, part.reason) for found in read_dead_letters(Job.load(job.path)) for part in found.letter.rows}
    newest = client.get_latest_version(subject).schema_id
    assert told == {
        ("$.x2", f"schema {other}: expected a double, got text"),
        ("$", f"schema {0x7fffff}: the registry knows no such schema; the newest of {subject} is {newest}"),
    }
    assert registered(client, subject, record(*FIELDS.items(), ("extra", "int"))) != newest
    front.mode = "away"  # what was read by which schema is in the round log
    front.asked.clear()
    assert job.verified()["rows"] == report["rows"]
    job.replayed()
    assert not front.asked
    front.mode = "through"
    direct = Job.load(job.path, environment={"STREAMTRAIN_REGISTRY__URL": registry.url})
    with RecordWriter(direct, to="requests") as writer:  # registers the job's schema for the topic
        writer.write({**next(rows(1)), "y": None})
    assert job.command("predict", "--until-end").returncode == 0
    assert [answer.error for answer in read_predictions(job.name, bootstrap=job.bootstrap, until_end=True)] == [None]
    shown = job.command("read", "records", "--until-end", "--json", "--limit", "1")
    assert "x1" in json.loads(shown.stdout.splitlines()[0])["rows"][0], shown.stdout


@pytest.mark.parametrize("fault", ["away", 500, 401, 404])
def test_a_registry_that_is_away_is_waited_for(
    kafka: Any, registry: Any, client: SchemaRegistryClient, front: RegistryFront, tmp_path: Path, fault: Any
) -> None:
    """What came before is trained and published; nothing is dead lettered, and nothing is ready. A 404 of a server that
    is no registry says nothing of a schema."""
    job = avro_job(kafka, tmp_path, front.url, partitions=1, workers=1)
    known = registered(client, f"{job.records}-value", ROW)
    newer = registered(client, f"{job.records}-newer", NEWER)
    job.produce_values(framed(known, ROW, row) for row in rows(300))
    with_front = job.start("train")
    try:
        with_front.wait_rows(300)
        front.mode = fault
        job.produce_values(framed(newer, NEWER, {**row, "when": 1, "note": ""}) for row in rows(200))
        with_front.wait_event("progress", waiting_for_schema=True)
        asked = len(front.asked)
        front.mode = "through"
        with_front.wait_rows(500)
        assert asked >= 2 and with_front.events[-1].get("dead_letters", {}) == {}
    finally:
        with_front.process.terminate()
        assert with_front.finish() == 0
    assert job.verified()["rows"] == {"trained": 500, "dead_lettered": 0, "filtered": 0}
    assert with_front.errors().count("is not known yet, so its records wait") == 1
    job.replayed()


def test_partitions_of_known_schemas_go_on(
    kafka: Any, registry: Any, client: SchemaRegistryClient, front: RegistryFront, tmp_path: Path
) -> None:
    """Those whose next record has to wait come again from where they were, in a bounded run too."""
    job = avro_job(kafka, tmp_path, front.url, partitions=3, workers=2)
    known = registered(client, f"{job.records}-value", ROW)
    newer = registered(client, f"{job.records}-newer", NEWER)
    more = {"when": 1, "note": ""}
    for partition in (0, 2):
        job.produce_values((framed(newer, NEWER, {**row, **more}) for row in rows(50)), partition=partition)
        job.produce_values((framed(known, ROW, row) for row in rows(50)), partition=partition)
    job.produce_values((framed(known, ROW, row) for row in rows(400)), partition=1)
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
    assert job.verified()["rows"] == {"trained": 600, "dead_lettered": 0, "filtered": 0}
    job.replayed()


def test_every_log_tells_the_schemas_of_its_own_rounds(
    kafka: Any, client: SchemaRegistryClient, front: RegistryFront, tmp_path: Path
) -> None:
    """Also of a record that one round begins and another ends, and of an id that nobody knew at first."""
    schema = {"type": "array", "items": ROW}
    job = avro_job(kafka, tmp_path, front.url, schema, partitions=1, workers=1, batch_rows=1, averaging_frequency=1,
                   publish_interval="20ms")  # fmt: skip
    known = registered(client, f"{job.records}-value", schema)
    late = registered(client, f"{job.records}-late", {"type": "array", "items": NEWER})
    front.unknown = {str(late)}
    more = {"when": 1, "note": ""}

    def produced(seed: int) -> None:
        job.produce_values([framed(known, schema, list(rows(5000, seed))),
                            framed(late, {"type": "array", "items": NEWER}, [{**row, **more} for row in rows(5)])])

    produced(1)
    assert job.train("--until-end")[-1]["rows"] == 5000
    front.unknown = set()
    produced(2)
    assert job.train("--until-end")[-1]["rows"] == 10_005
    front.mode = "away"
    front.asked.clear()
    assert job.verified()["rows"] == {"trained": 10_005, "dead_lettered": 1, "filtered": 0}
    job.replayed()
    assert not front.asked
    logs = list(round_logs(job.job.kafka_consumer(), f"{job.name}.rounds"))
    told = [{number: bool(text) for number, (text, _) in log.named_schemas.items()} for log in logs if len(log.rounds)]
    old, new = str(known), str(late)
    assert len(told) > 3 and all(log and log.get(old, True) for log in told), told
    lately = [log[new] for log in told if new in log]  # its rows may be in several logs
    assert told[0] == {old: True} and lately == sorted(lately) and set(lately) == {False, True}


def test_a_predictor_hears_a_stop_while_it_waits_for_a_schema(
    kafka: Any, registry: Any, client: SchemaRegistryClient, front: RegistryFront, tmp_path: Path
) -> None:
    job = avro_job(kafka, tmp_path, front.url, partitions=1, workers=1)
    known = registered(client, f"{job.records}-value", ROW)
    job.produce_values(framed(known, ROW, row) for row in rows(50))
    job.train("--until-end")
    direct = Job.load(job.path, environment={"STREAMTRAIN_REGISTRY__URL": registry.url})
    with RecordWriter(direct, to="requests") as writer:
        writer.write({**next(rows(1)), "y": None})
    front.mode = 500
    front.asked.clear()
    waiting = job.start("predict")
    try:
        wait_for(lambda: len(front.asked) > 1)
        waiting.process.terminate()
        assert waiting.finish() == 0
    finally:
        waiting.process.kill()
    front.mode = "through"
    assert job.command("predict", "--until-end").returncode == 0
    assert [answer.error for answer in read_predictions(job.name, bootstrap=job.bootstrap, until_end=True)] == [None]


def test_a_predictor_answers_what_it_can_read_meanwhile(
    kafka: Any, client: SchemaRegistryClient, front: RegistryFront, tmp_path: Path
) -> None:
    """What comes behind a request that waits, in its partition, waits too; each is answered once."""
    job = avro_job(kafka, tmp_path, front.url, partitions=3, workers=1)
    known = registered(client, f"{job.records}-value", ROW)
    job.produce_values(framed(known, ROW, row) for row in rows(50))
    job.train("--until-end")
    asking = Bench(job.bootstrap, job.name)
    asked = 0
    for delivery in ("exactly_once", "at_least_once"):
        newer = registered(client, f"{job.records}-{delivery}", record(("for", "string"), *FIELDS.items()))
        front.away = {str(newer)}
        config = replace(predictor.Config.of(job.job), delivery=delivery)
        with running(config) as counters:
            wait_for(lambda: counters["version"] > 0)
            for row in rows(10):
                asking.ask(framed(known, ROW, row), f"{delivery} before", partition=0)
                asking.ask(framed(newer, record(("for", "string"), *FIELDS.items()), {**row, "for": ""}), "new")
                asking.ask(framed(known, ROW, row), f"{delivery} beside", partition=1)
            asking.flush()
            wait_for(lambda: counters["requests"] == 11 and counters["waiting"] == 1)
            front.away = set()
            wait_for(lambda: counters["requests"] == 30 and counters["waiting"] == 0)
        asked += 30
        answers = list(read_predictions(job.name, bootstrap=job.bootstrap, until_end=True))
        assert len(answers) == asked and all(answer.error is None for answer in answers)


def test_a_stop_is_heard_while_a_schema_is_waited_for(kafka: Any, tmp_path: Path) -> None:
    job = avro_job(kafka, tmp_path, "http://127.0.0.1:9", partitions=1, workers=1)
    job.produce_values([framed(1, ROW, row) for row in rows(1)])
    running = job.start("train")
    running.wait_event("progress", waiting_for_schema=True)
    running.process.terminate()
    assert running.finish() == 0


def test_check_asks_the_registry(
    kafka: Any, client: SchemaRegistryClient, front: RegistryFront, tmp_path: Path
) -> None:
    job = avro_job(kafka, tmp_path, front.url)
    subject = f"{job.records}-value"

    def found() -> tuple[str, str]:
        (finding,) = [each for each in findings(job.job, job.admin, None) if each.what == "registry"]
        assert finding.text.startswith(front.url)
        return finding.state, finding.text

    assert found() == ("ok", f"{front.url} answers, {subject} has no schema that records name")
    number = registered(client, subject, NEWER)
    assert found() == ("ok", f"{front.url} answers, the newest of {subject} is {number}, which the columns take")
    number = registered(client, subject, OTHER)
    told = f"$.x2: schema {number}: expected a double, got text"
    assert found() == ("warning", f"{front.url} answers, {told}")
    front.mode = 503
    assert found()[0] == "warning" and "does not answer" in found()[1]


def test_rows_held_out_name_their_schemas_and_check_does_not_wait_for_them(
    kafka: Any, client: SchemaRegistryClient, front: RegistryFront, tmp_path: Path
) -> None:
    held = kafka.fresh_name("held")
    job = avro_job(kafka, tmp_path, front.url)
    told = f'[train.early_stopping]\nno_improvement = 5\nheld_out = {{ topic = "{held}" }}\n'
    job.path.write_text(f"{job.path.read_text()}\n{told}")
    job.admin.ensure([TopicWish("held", held, 1)])
    number = registered(client, f"{held}-value", ROW)
    producer = Producer({"bootstrap.servers": job.bootstrap})
    for row in rows(10):
        producer.produce(held, framed(number, ROW, row))
    assert producer.flush(30) == 0
    front.mode = "away"
    looked = Job.load(job.path)
    (finding,) = [each for each in findings(looked, job.admin, None) if each.what == "held out"]
    assert finding.state == "warning" and "the registry does not answer" in finding.text
    front.mode = "through"
    (finding,) = [each for each in findings(looked, job.admin, None) if each.what == "held out"]
    assert (finding.state, finding.text) == ("ok", "10 rows")
    job.produce_values([framed(number, ROW, row) for row in rows(200, seed=1)])
    job.train("--until-end")
    assert job.newest().manifest.metrics["held_out"]["rows"] == 10
    job.verified()


@pytest.mark.parametrize(("answer", "error"), [(409, UserMistake), (503, KafkaUnreachable)])
def test_a_writer_whose_schema_is_not_taken_says_so(
    kafka: Any, front: RegistryFront, tmp_path: Path, answer: int, error: type[Exception],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(schemas, "_PATIENCE_S", 0.5)
    job = avro_job(kafka, tmp_path, front.url)
    front.mode = answer
    with pytest.raises(error, match=rf"records-value: the registry does not take the schema: .*said so.*{answer}"):
        RecordWriter(job.job)


def test_that_a_schema_came_is_told_whoever_asked(client: SchemaRegistryClient, front: RegistryFront) -> None:
    """A record that waits for it is read again though another of its schema was the first to find it there."""
    number = str(registered(client, f"came-{id(front)}-value", ROW))
    ours = SchemaRegistry({"url": front.url}, "came", "avro")
    front.away = {number}
    assert ours.ask(number) is None and not ours.ask_again()
    front.away = set()
    wait_for(lambda: ours.ask(number) is not None)
    assert ours.ask_again() and not ours.ask_again()


def test_an_id_is_asked_for_once(registry: Any, client: SchemaRegistryClient, front: RegistryFront) -> None:
    number = registered(client, f"asked-{id(front)}-value", ROW)
    ours = SchemaRegistry({"url": front.url}, "asked", "avro")
    for schema_id in (number, number, 0x7ffffe, 0x7ffffe):
        assert ours.ask(str(schema_id)) is not None
    paths = [path.rpartition("/")[2].partition("?")[0] for path in front.asked if "/schemas/ids/" in path]
    assert paths == [str(number), str(0x7ffffe)]
