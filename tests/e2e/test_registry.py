"""Registries of schemas beyond what a sink shows: starts, stops, writers, `check`, and what goes on from records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from avro_schemas import record, written
from confluent_kafka.schema_registry import SchemaRegistryClient
from registry_front import RegistryFront
from waiting import wait_for

from streamtrain import Job, RecordWriter, schemas
from streamtrain.clients.dead_letters import Resender
from streamtrain.clients.repacking import Repacker
from streamtrain.errors import KafkaUnreachable, UserMistake
from streamtrain.kafka.clients import KafkaConsumer, Message
from streamtrain.kafka.reader import read_all
from streamtrain.kafka.round_logs import round_logs
from streamtrain.kafka.settings import Purpose
from streamtrain.run.findings import findings
from streamtrain.schemas import SchemaRegistry, with_schema
from streamtrain.topics.topic import TopicWish
from tests.e2e.harness import LiveJob, rows
from tests.e2e.registry_records import (
    HEADER,
    NEWER,
    OTHER,
    ROW,
    TRACE,
    UNKNOWN,
    framed,
    referring,
    registered,
    registry_job,
    serialized,
)

MORE = {"when": 1, "note": ""}  # of NEWER


@pytest.fixture
def front(registry: Any) -> Iterator[RegistryFront]:
    made = RegistryFront(registry.url)
    yield made
    made.close()


@pytest.fixture
def client(registry: Any) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": registry.url})


def by(number: int, schema: Any, row: Any) -> bytes:
    return framed(number, written(schema, row))


# -- trainers that wait -----------------------------------------------------------------------------------------------


def test_partitions_of_known_schemas_go_on(
    kafka: Any, client: SchemaRegistryClient, front: RegistryFront, tmp_path: Path
) -> None:
    """Those whose next record has to wait come again from where they were, in a bounded run too."""
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
    assert job.verified()["rows"] == {"trained": 600, "dead_lettered": 0, "filtered": 0}
    job.replayed()


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
        job.produce_values([by(known, schema, list(rows(5000, seed))),
                            by(late, newer, [{**row, **MORE} for row in rows(5)])])

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


@pytest.mark.full
def test_a_stop_is_heard_while_a_schema_is_waited_for(kafka: Any, tmp_path: Path) -> None:
    job = registry_job(kafka, tmp_path, "http://127.0.0.1:9", partitions=1, workers=1)
    job.produce_values([by(1, ROW, row) for row in rows(1)])
    running = job.start("train")
    running.wait_event("progress", waiting_for_schema=True)
    running.process.terminate()
    assert running.finish() == 0


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
    told = f"$.x2: schema {number}: expected a double, got text"
    assert found(job) == ("warning", f"{front.url} answers, {told}")
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


def test_without_a_registry_a_schema_is_given(kafka: Any, tmp_path: Path) -> None:
    with pytest.raises(UserMistake, match=r"records.schema: missing, expected a file with an Avro schema, or its text"):
        LiveJob(kafka, tmp_path, format="avro")


def test_a_manifest_without_its_schema_is_refused(kafka: Any, front: RegistryFront, tmp_path: Path) -> None:
    """What is pinned is never asked for again."""
    job = registry_job(kafka, tmp_path, front.url, schema=None)
    with pytest.raises(UserMistake, match=r"records.schema: missing"):
        Job.from_effective(job.job.effective())


# -- writers ----------------------------------------------------------------------------------------------------------


def test_a_writer_gives_up_in_the_end(
    kafka: Any, front: RegistryFront, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schemas, "_PATIENCE_S", 1.0)
    front.mode = 503
    job = registry_job(kafka, tmp_path, front.url, schema=None)
    with pytest.raises(KafkaUnreachable, match=r"the registry does not answer: .*said so.*; waited for 1 s"):
        RecordWriter(job.job)
    assert len(front.asked) > 1


@pytest.mark.parametrize(("answer", "error"), [(409, UserMistake), (503, KafkaUnreachable)])
def test_a_writer_whose_schema_is_not_taken_says_so(
    kafka: Any, front: RegistryFront, tmp_path: Path, answer: int, error: type[Exception],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(schemas, "_PATIENCE_S", 0.5)
    job = registry_job(kafka, tmp_path, front.url)
    front.mode = answer
    with pytest.raises(error, match=rf"records-value: the registry does not take the schema: .*said so.*{answer}"):
        RecordWriter(job.job)


def test_framed_records_are_written_under_a_schema(kafka: Any, registry: Any, tmp_path: Path) -> None:
    job = registry_job(kafka, tmp_path, registry.url, kind="json", schema=None)
    with pytest.raises(UserMistake, match=r"records.schema: expected a file with a JSON Schema, .*got none"):
        RecordWriter(job.job)


def messages(job: Job, topic: str, spans: dict[int, tuple[int, int]]) -> list[Message]:
    with KafkaConsumer.open(Purpose.READ, job.kafka_consumer(), "test") as consumer:
        return list(read_all(consumer, topic, spans))  # type: ignore[arg-type]


def test_what_goes_on_from_records_with_headers(kafka: Any, front: RegistryFront, tmp_path: Path) -> None:
    """Rows packed again or sent again are of other bytes: no header names their schema. A writer takes no such one."""
    job = registry_job(kafka, tmp_path, front.url)
    given = [*rows(30), {**next(rows(1)), "y": 5}]
    turns = enumerate(serialized("avro", front, job.records, given, headers=True))
    job.produce_messages({**message, "partition": number % 3} for number, message in turns)
    assert job.train("--until-end")[-1]["rows"] == 30
    analyzed = json.loads(job.here("analyze", "--topic", "--json").stdout)
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


# -- what is asked ----------------------------------------------------------------------------------------------------


def test_that_a_schema_came_is_told_whoever_asked(client: SchemaRegistryClient, front: RegistryFront) -> None:
    """A record that waits for it is read again though another of its schema was the first to find it there."""
    number = str(registered(client, f"came-{id(front)}-value", ROW))
    ours = SchemaRegistry({"url": front.url}, "came", "avro")
    front.away = {number}
    assert ours.ask(number) is None and not ours.ask_again()
    front.away = set()
    wait_for(lambda: ours.ask(number) is not None)
    assert ours.ask_again() and not ours.ask_again()


def test_an_id_is_asked_for_once(client: SchemaRegistryClient, front: RegistryFront) -> None:
    number = registered(client, f"asked-{id(front)}-value", ROW)
    ours = SchemaRegistry({"url": front.url}, "asked", "avro")
    for schema_id in (number, number, 0x7ffffe, 0x7ffffe):
        assert ours.ask(str(schema_id)) is not None
    paths = [path.rpartition("/")[2].partition("?")[0] for path in front.asked if "/schemas/ids/" in path]
    assert paths == [str(number), str(0x7ffffe)]


def test_what_a_schema_refers_to_is_waited_for(client: SchemaRegistryClient, front: RegistryFront) -> None:
    number = referring(client, f"waits-{id(front)}", "avro")
    front.away = {"subjects"}
    ours = SchemaRegistry({"url": front.url}, "waits", "avro")
    assert ours.ask(str(number)) is None
    front.away = set()
    text, why_not = ours.wait(str(number))
    assert not why_not and "shop.Paint" in text


def test_a_registry_that_knows_no_guids_is_waited_for(front: RegistryFront, caplog: pytest.LogCaptureFixture) -> None:
    """It says so; nothing is dead lettered for it."""
    front.guids = False
    ours = SchemaRegistry({"url": front.url}, "orders", "avro")
    assert ours.ask(str(UNKNOWN)) is None
    assert "knows no GUIDs, as Confluent Platform 8's does: " in caplog.text
    front.guids = True
    assert ours.wait(str(UNKNOWN))[0] == "" and [each for each in front.asked if str(UNKNOWN) in each]
