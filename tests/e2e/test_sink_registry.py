"""Records that name their schema in a registry: a sink for each format that can, before a registry that fails."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from avro_schemas import nullable, record, written
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from prediction_bench import Bench, running
from registry_front import RegistryFront
from waiting import wait_for

import streamtrain
from streamtrain import Job, LiveModel, RecordWriter, read_predictions
from streamtrain.columns.formats.avro_schema import canonical
from streamtrain.kafka.round_logs import round_logs
from streamtrain.run.findings import findings
from streamtrain.run.roles import predictor
from streamtrain.topics.predictions import Answer
from streamtrain.topics.topic import TopicWish
from tests.e2e.harness import Running, rows
from tests.e2e.registry_records import (
    FIELDS,
    FLIGHT,
    HEADER,
    JSON_ROW,
    NEWER,
    NEWER_FLIGHT,
    OTHER,
    OTHER_FLIGHT,
    ROW,
    TRACE,
    UNKNOWN,
    UNKNOWN_ID,
    answers_later,
    framed,
    newer_flight,
    painted,
    referring,
    registered,
    serialized,
)
from tests.e2e.sink import Bad, Feature, Message, Plan, Row, Sent, Sink, run_sink
from tests.e2e.test_sink_formats import LIST_FEATURE

ASKED = Plan().asked
ROUND = 64  # rows: 2 workers, 2 batches of 16


@pytest.fixture
def front(registry: Any) -> Iterator[RegistryFront]:
    made = RegistryFront(registry.url)
    yield made
    made.close()


def answers(sink: Sink) -> list[Answer]:
    return list(read_predictions(sink.live.name, bootstrap=sink.live.bootstrap, until_end=True))


class Registered:
    """Features of a sink whose records of one format name their schemas in the registry behind `front`."""

    def __init__(self, kind: str, front: RegistryFront) -> None:
        self.kind, self.front = kind, front
        self.client = SchemaRegistryClient({"url": front.url})

    def subject(self, sink: Sink) -> str:
        return f"{sink.live.records}-value"

    def encode(self, sink: Sink, held: Sequence[Row], number: int, asked: bool) -> Iterator[Message]:
        """By turns with the schema's name in a header and before the value."""
        topic = f"{sink.live.name}.requests" if asked else sink.live.records
        yield from serialized(self.kind, self.front, topic, held, headers=number % 2 == 0)

    def plan(self, records: str = "", **more: Any) -> Plan:
        base = {"records": f'format = "{self.kind}"\nmax_dead_letter_share = 0.9\n{records}',
                "registry": f'url = "{self.front.url}"', **more.pop("base", {})}  # fmt: skip
        return Plan(base, count=600, sizes=(1,), encode=self.encode, **more)

    # -- names in headers -----------------------------------------------------------------------------------------

    def headers(self) -> Feature:
        return Feature("schemas in headers", then=self._send_headers, check=self._check_headers)

    def _send_headers(self, sink: Sink) -> None:
        held = sink.filled(rows(1), 0)
        (ours,), (before,) = (list(sink.encoded(held, number)) for number in (0, 1))
        header, datum, place = dict(ours["headers"])[HEADER], ours["value"], b"\0" * (self.kind == "protobuf")
        assert header[:1] == b"\1" and before["value"][:1] == b"\0" and HEADER not in dict(before["headers"])
        newest = self.client.get_latest_version(self.subject(sink))
        frame = f"{HEADER}: expected a registry's frame (0 and a schema id, or 1 and a GUID), got"
        unknown = (f"schema {UNKNOWN}: the registry knows no such schema; the newest of {self.subject(sink)} is "
                   f"{newest.guid}")  # fmt: skip
        bad = [(b"\1" + UNKNOWN.bytes + place, unknown)] * 5
        for name, reason in [*bad, (b"\2" + header[1:], f"{frame} byte 2"), (header[:9], f"{frame} 9 bytes")]:
            sink.send([Sent({"value": datum, "headers": [(HEADER, name)]}, dead=[("$", reason)])])
        for value, told in ((before["value"], [(HEADER, None)]),
                            (datum, [(HEADER, b"\0\0\0\0\0"), (HEADER, header)])):  # the last one counts  # fmt: skip
            sink.send([Sent({"value": value, "headers": told}, held)])

    def _check_headers(self, sink: Sink) -> None:
        logs = round_logs(sink.live.job.kafka_consumer(), f"{sink.live.name}.rounds")
        told = {each: bool(text) for log in logs for each, (text, _) in log.named_schemas.items()}
        first = self.client.get_version(self.subject(sink), 1)
        assert told[str(first.guid)] and told[str(first.schema_id)] and not told[str(UNKNOWN)], told
        found = answers(sink)
        assert not any(each.error for each in found)
        assert {each.headers for each in found} <= {(TRACE,), ()}  # an answer has no schema
        assert sum(each.headers == (TRACE,) for each in found) == len(sink.requests)
        done = sink.live.here("read", "records", "--until-end", "--json")
        shown = [json.loads(line) for line in done.stdout.splitlines()]
        unreadable = sum(rows for (path, _), rows in sink.expected.items() if path == "$")
        assert sum("error" in each for each in shown) == unreadable >= 7, shown[:2]
        ((_, messages),) = sink.live.admin.spans(sink.live.records) or []
        assert sum("rows" in each for each in shown) == messages - unreadable

    # -- other schemas --------------------------------------------------------------------------------------------

    def other_schemas(self, newer: Any, by_newer: Any, other: Any) -> Feature:
        """Writers of a newer schema, of one that refers to others, of one that does not fit, and of none."""

        def send(sink: Sink) -> None:
            subject = self.subject(sink)
            number = registered(self.client, f"{subject}-newer", newer)
            held = sink.filled(rows(2 * ROUND, seed=1), 0)
            for row in held:
                row["x1"] = float(np.float32(row["x1"]))
            sink.send([Sent({"value": framed(number, by_newer(row))}, [row]) for row in held])
            number = referring(self.client, subject, self.kind)
            held = sink.filled(rows(ROUND, seed=2), 0)
            sink.send([Sent({"value": framed(number, painted(self.kind, row))}, [row]) for row in held])
            number = registered(self.client, f"{subject}-other", other)
            got = "text" if self.kind == "avro" else "a string"
            wrong = ("$.x2", f"schema {number}: expected a double, got {got}")
            one = next(rows(1))
            datum = by_newer(one) if self.kind == "protobuf" else written(OTHER, {**one, "x2": "n/a"})
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
        """What was read by which schema is in the round log: `verify` and `replay` need no registry."""

        @contextmanager
        def away(sink: Sink) -> Iterator[None]:
            self.front.mode = "away"
            self.front.asked.clear()
            yield
            assert not self.front.asked
            self.front.mode = "through"

        return Feature("nobody asks afterwards", verifying=away)

    def writer(self) -> Feature:
        """Our own writer of records and of requests, which registers the job's schema for their topic."""

        def then(sink: Sink) -> None:
            held = sink.filled(rows(ROUND, seed=8), 0)
            with RecordWriter(Job.load(sink.live.path)) as writer:
                assert writer.write([sink.wired(row) for row in held]) == ROUND
            sink.rows += held

        def check(sink: Sink) -> None:
            with RecordWriter(Job.load(sink.live.path), to="requests") as writer:
                writer.write([{"y": None, **sink.wired(row)} for row in sink.asked[:3]])
            newest = self.client.get_latest_version(f"{sink.live.name}.requests-value")
            assert newest.schema.schema_type == self.kind.upper()
            assert sink.live.here("predict", "--until-end").returncode == 0
            found = answers(sink)
            assert not any(each.error for each in found)
            assert sum(len(each.prediction) if isinstance(each.prediction, list) else 1 for each in found) == ASKED + 3

        return Feature("a writer", then=then, check=check)

    # -- a registry that does not answer --------------------------------------------------------------------------

    def waited_for(self, faults: Sequence[Any], schema: Any, encode: Any) -> Feature:
        """What came before is trained; nothing is dead lettered. A server that is no registry has its 404s too."""

        def during(sink: Sink, first: Running) -> None:
            for fault in faults:
                number = schema(sink, fault)
                held = sink.filled(rows(ROUND, seed=7), 0)
                self.front.asked.clear()
                self.front.mode = fault
                sink.send([Sent({"value": framed(number, encode(row, fault))}, [row]) for row in held])
                first.wait_event("progress", waiting_for_schema=True)
                wait_for(lambda: len(self.front.asked) >= 2)
                self.front.mode = "through"
                first.wait_rows(len(sink.rows) // ROUND * ROUND)
                assert self.kind != "json" or not any("/versions/1" in path for path in self.front.asked)  # referred to
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
    held = sink.filled(rows(3 * ROUND, seed=3), 0)
    direct = Job.load(sink.live.path)
    with RecordWriter(direct) as writer:
        for row in held[:ROUND]:
            writer.write(nested(row))
        writer.write([nested(row) for row in held[ROUND : 2 * ROUND]])
        names = {name for row in held for name in row}
        writer.write({name: [row.get(name) for row in held[2 * ROUND :]] for name in names})
    sink.rows += held


def check_nested(sink: Sink) -> None:
    """A program may give a model rows as records are, or columns by their names."""
    one = sink.asked[0]
    with LiveModel(sink.live.name, bootstrap=sink.live.bootstrap) as model:
        model.wait_ready(60)
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

    wrong = Bad({"x3": "n/a"}, "$.user.numbers[2]", 'got "n/a"')
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


def held_out(ours: Registered, topic: str) -> Feature:
    """Rows of a validation set name their schemas too, and `check` does not wait for them."""

    def before(sink: Sink) -> None:
        ours.front.mode = "through"
        sink.live.admin.ensure([TopicWish("held", topic, 1)])
        number = registered(ours.client, f"{topic}-value", ROW)
        message = [{"value": framed(number, written(ROW, row)), "partition": 0} for row in rows(10)]
        sink.live.produce_messages(message, topic)
        path = sink.live.path.with_suffix(".check.toml")  # with a schema, which a job needs to check rows
        text = sink.live.path.read_text()
        path.write_text(text.replace("[records]", f"[records]\nschema = \'\'\'{json.dumps(ROW)}\'\'\'"))
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
        asked = len(answers(sink))
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
            asked += 30
            found = answers(sink)
            assert len(found) == asked and all(answer.error is None for answer in found)

    return Feature("predictors that wait", check=check)


def test_avro(kafka: Any, front: RegistryFront, tmp_path: Path) -> None:
    """Whose job file has no schema."""
    ours = Registered("avro", front)

    def schema(sink: Sink, fault: Any) -> int:
        return registered(ours.client, f"{ours.subject(sink)}-{fault}", {**NEWER, "doc": str(fault)})

    def by_newer(row: Row, fault: Any = "") -> bytes:
        return written(NEWER, {**row, "when": 1, "note": ""})

    away = ours.waited_for(FAULTS, schema, by_newer)
    features = [
        held_out(ours, kafka.fresh_name("held")), newest(ours), ours.writer(), away, ours.headers(),
        ours.other_schemas(NEWER, by_newer, OTHER), ours.no_schemas(), ours.unasked(), predictors(ours),
        Feature("starts that wait", before=lambda sink: answers_later(front), then=lambda sink: answers_later(front)),
    ]  # fmt: skip
    run_sink(kafka, tmp_path, features, ours.plan())
