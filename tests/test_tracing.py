"""Spans of OpenTelemetry: who asks for them, that nobody else pays, and what they say; on Kafka where it is of it."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prediction_bench import Bench
from publisher import Publisher
from served_http import ROW, job_file, serving
from served_model import ServedModel
from small_model import SmallModel

from streamtrain._native import BodyForm
from streamtrain.errors import KafkaBroken, UserMistake
from streamtrain.log import logger_without_repeats
from streamtrain.run import request_spans
from streamtrain.run.dead_letters import Letters
from streamtrain.run.kafka_publisher import KafkaPublisher
from streamtrain.run.request_spans import RequestSpans
from streamtrain.run.roles import predictor
from streamtrain.serving.config import Config
from streamtrain.serving.door import Door
from streamtrain.telemetry import tracing
from streamtrain.telemetry.tracing import Tracing, opened, wanted
from streamtrain.topics.topic import all_topics
from tests.checks.verify.good_job import GoodJob
from tests.e2e.harness import LiveJob

MOST_TRACED = 4096  # of a turn: docs/operate.md
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED, UNSAMPLED = f"00-{TRACE}-{PARENT}-01", f"00-{TRACE}-{PARENT}-00"


@pytest.fixture
def spans() -> Any:
    """(What makes them, those that have ended.)"""
    pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    return Tracing(SimpleSpanProcessor(exporter)), exporter.get_finished_spans


@pytest.mark.parametrize(
    ("environment", "exporter"),
    [
        ({}, ""),
        ({"OTEL_SERVICE_NAME": "flights"}, ""),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, ""),
        ({"OTEL_TRACES_EXPORTER": "console"}, "console"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, "otlp"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318"}, "otlp"),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "true"}, ""),
    ],
)
def test_the_environment_asks_for_them(
    environment: dict[str, str], exporter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "find_spec", lambda name: object())
    assert wanted(environment) == exporter
    monkeypatch.setattr(tracing, "find_spec", lambda name: None)
    assert wanted(environment) == "", "without the extra there are none"


def test_an_exporter_that_is_not_there_is_a_mistake_and_whoever_asks_for_none_imports_nothing(spans: Any) -> None:
    with pytest.raises(UserMistake, match="OTEL_TRACES_EXPORTER: expected an exporter that is installed, got 'zipper'"):
        opened("zipper")
    code = (
        "import sys; from streamtrain.telemetry.tracing import opened, wanted; import streamtrain.serving.door, "
        "streamtrain.run.roles.predictor, streamtrain.run.roles.coordinator; assert opened(wanted({})) is None; "
        "assert 'opentelemetry.sdk' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture
def bench(kafka: Any) -> Bench:
    bench = Bench(kafka.bootstrap, kafka.fresh_name("traced"))
    ServedModel(bench.bootstrap, bench.job).put()
    return bench


def continues(span: Any) -> bool:
    """It is a child of the client's."""
    return (f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE, PARENT)


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_a_predictor_continues_the_traces_that_are_sampled(
    bench: Bench, spans: Any, delivery: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that traces nothing answers all the same."""
    rows = [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    for key, parent in (("yes", SAMPLED), ("no", UNSAMPLED), ("short", "00"), ("none", None)):
        bench.ask(rows, key, [] if parent is None else [("traceparent", parent.encode()), ("tracestate", b"a=1")])
    bench.ask(rows, "long", [("traceparent", SAMPLED.encode() + b"-" * 900)])
    bench.ask(b"{", "broken", [("traceparent", SAMPLED.encode())], partition=1)
    bench.ask(rows, "long state", [("traceparent", SAMPLED.encode()), ("tracestate", b"a=" + b"1" * 900)], partition=1)
    bench.ask(rows, "not one", [("traceparent", b"x" * 54 + b"1")], partition=2)
    bench.flush()
    made, ended = spans
    gathered = []

    def request(name: str, carrier: Any, *told: Any, **more: Any) -> None:
        gathered.append(carrier)
        Tracing.request(made, name, carrier, *told, **more)

    monkeypatch.setattr(made, "request", request)
    begun_ns = time.time_ns()
    config = bench.config(delivery, until_end=True)
    predictor.answer_traced(config, threading.Event(), lambda counters: None, made)
    found = {(each.attributes["messaging.destination.partition.id"], each.attributes["messaging.kafka.offset"]): each
             for each in ended()}  # fmt: skip
    assert sorted(found) == [("0", 0), ("1", 0), ("1", 1), ("2", 0)]
    assert len(gathered) == 4, "of the others Python hears nothing"
    assert max(len(text) for carrier in gathered for text in carrier.values()) <= 512, "what is longer is not kept"
    good, broken, _, begins = (found[key] for key in sorted(found))
    assert continues(good) and continues(broken)
    assert good.parent.trace_state.get("a") == "1"
    assert (good.name, good.kind.name, good.status.is_ok) == (f"predict {bench.job}", "CONSUMER", True)
    assert (good.attributes["streamtrain.version"], good.attributes["streamtrain.rows"]) == (1, 2)
    assert begun_ns <= good.start_time <= good.end_time <= time.time_ns()
    assert not broken.status.is_ok and broken.status.description
    assert begins.parent is None, "what is no traceparent begins a trace of its own"
    answer = bench.answers()["yes"]
    assert dict(answer.headers)["traceparent"] == SAMPLED.encode(), "the answer goes on in the client's trace"
    bench.ask(rows, "untraced", [("traceparent", SAMPLED.encode())])
    bench.flush()
    assert predictor.answer(config, threading.Event())["requests"] == 1 and len(ended()) == 4


def test_of_a_turn_so_many_are_traced_and_the_others_answered(
    bench: Bench, spans: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sampled, count = [("traceparent", SAMPLED.encode())], MOST_TRACED + 700
    for at in range(count):
        bench.ask({"a": 1, "b": 2}, str(at), sampled)
    bench.flush()
    take, stop = RequestSpans.take, threading.Event()

    def in_one_turn(self: RequestSpans, native: Any) -> None:
        if native.counters()["requests"] >= count:
            take(self, native)

    def report(counters: dict[str, int]) -> None:
        if counters["requests"] == count:
            bench.ask({"a": 1, "b": 2}, "of another turn", sampled)
            bench.flush()
        elif counters["requests"] > count:
            stop.set()

    monkeypatch.setattr(RequestSpans, "take", in_one_turn)
    monkeypatch.setattr(request_spans, "log", logger_without_repeats("of one turn"))
    made, ended = spans
    done = predictor.answer_traced(bench.config(), stop, report, made)
    assert done["requests"] > count and done["errors"] == 0
    offsets = [each.attributes["messaging.kafka.offset"] for each in ended()]
    assert offsets[: MOST_TRACED + 1] == [*range(MOST_TRACED), count]
    told = [each.__dict__["fields"] for each in caplog.records if each.name == "of one turn"]
    assert told == [{"left_out": 700}]


def test_what_is_left_out_in_many_turns_is_counted_to_the_last(
    spans: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log holds back what it has said a moment ago."""
    caplog.set_level("INFO")
    monkeypatch.setattr(request_spans, "log", logger_without_repeats("of many turns"))
    made = RequestSpans(spans[0], "flights", "flights.requests")
    for left_out in (0, 5, 12, 12, 40):
        made.take(SimpleNamespace(drain_traced=lambda left_out=left_out: ([], left_out)))  # type: ignore[arg-type]
    made.close()
    told = [(each.levelname, each.__dict__["fields"]["left_out"]) for each in caplog.records]
    assert told == [("WARNING", 5), ("INFO", 40)]


def asked(door: Door, path: str, headers: dict[str, str]) -> int:
    """Its status."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": path, "headers": raw, "client": ("127.0.0.1", 1)}
    asyncio.run(door(scope, receive, send))
    return int(sent[0]["status"])


def test_a_server_continues_its_clients_traces(spans: Any) -> None:
    made, ended = spans
    answer = SimpleNamespace(form=BodyForm.ROW, errors=0, rows=1, text=b'{"prediction":0.5}')
    scorer = SimpleNamespace(
        version=3, lineage=b'"version":3,"age_s":', created_ms=0, is_quick=lambda size: True,
        answer_body=lambda body, released: answer,
    )  # fmt: skip
    models: Any = {"flights": SimpleNamespace(scorer=scorer, job="flights")}
    row = SimpleNamespace(answered=lambda *told: None)
    with closing(Door(Config((), "127.0.0.1", 1), models, None, row, None, made)) as door:  # type: ignore[arg-type]
        assert asked(door, "/predict/flights", {"traceparent": SAMPLED, "tracestate": "a=1"}) == 200
        assert asked(door, "/predict/flights", {"traceparent": UNSAMPLED}) == 200
        assert asked(door, "/predict/flights", {}) == 200
        assert asked(door, "/predict/other", {"traceparent": SAMPLED}) == 404
        models["flights"].scorer = SimpleNamespace(is_quick=lambda size: 1 / 0)
        assert asked(door, "/predict/flights", {"traceparent": SAMPLED}) == 500
    first, root, unknown, failed = ended()
    assert continues(first)
    assert first.parent.trace_state.get("a") == "1" and root.parent is None
    assert (first.name, first.kind.name, first.attributes["streamtrain.version"]) == ("predict flights", "SERVER", 3)
    assert unknown.attributes["http.response.status_code"] == 404 and unknown.status.is_ok
    assert not failed.status.is_ok and failed.status.description == "status 500"


def test_a_publication_is_a_span_and_so_is_one_that_fails(spans: Any) -> None:
    made, ended = spans
    job = GoodJob(clean=True)
    job.produce()
    job.begin()
    job.train()
    failing: Any = SimpleNamespace(publish=lambda batch: (_ for _ in ()).throw(KafkaBroken("a new run")))
    for transactions in (SimpleNamespace(publish=lambda batch: 7), failing):
        names = {key: key for key in all_topics()}
        publisher = KafkaPublisher(None, transactions, None, names, made)  # type: ignore[arg-type]
        try:
            assert publisher.publish(job.assembled, Letters.none()) == 7
        except KafkaBroken:
            assert transactions is failing
    good, bad = ended()
    assert (good.name, good.kind.name, good.status.is_ok) == ("publish good", "PRODUCER", True)
    told = {name: good.attributes[f"streamtrain.{name}"] for name in ("version", "run", "rounds", "rows", "round")}
    log = job.assembled.log
    assert told == {
        "version": 2, "run": 1, "rounds": len(log.rounds), "rows": log.rows_trained,
        "round": job.assembled.snapshot.manifest.round,
    }  # fmt: skip
    assert not bad.status.is_ok and [event.name for event in bad.events] == ["exception"]


def shown(text: str, name: str) -> list[dict[str, Any]]:
    """The spans that the console's exporter wrote among other lines."""
    starts = [found.start() for found in re.finditer(re.escape('{\n    "name": "' + name), text)]
    return [json.JSONDecoder().raw_decode(text, at)[0] for at in starts]


def test_a_trainers_publications_on_kafka(
    kafka: Any, spans: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    job = LiveJob(kafka, tmp_path)
    job.produce(1000)
    done = job.command("train", "--until-end", "--json")
    assert done.returncode == 0, done.stderr
    assert all(json.loads(line) for line in done.stdout.splitlines()), "spans are none of what a command gives"
    found = shown(done.stderr, f"publish {job.name}")
    assert [each["attributes"]["streamtrain.version"] for each in found] == list(range(1, len(found) + 1))
    assert sum(each["attributes"]["streamtrain.rows"] for each in found) == 1000
    assert found[-1]["attributes"]["streamtrain.digest"] == job.newest().digest.hex()
    assert found[0]["resource"]["attributes"]["service.name"] == "streamtrain"


def test_a_server_on_kafka(kafka: Any, spans: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "flights")
    name = kafka.fresh_name("served")
    SmallModel.make().put(Publisher(kafka.bootstrap, name), 1)
    with serving(job_file(tmp_path, name, kafka.bootstrap)) as server:
        server.wait_ready()
        assert server.post(f"/predict/{name}", ROW, headers={"traceparent": SAMPLED}).status_code == 200
        assert server.stop() == 0
        (found,) = shown(server.log.read_text(), f"predict {name}")
    assert (found["parent_id"], found["context"]["trace_id"]) == (f"0x{PARENT}", f"0x{TRACE}")
    assert found["resource"]["attributes"]["service.name"] == "flights"
