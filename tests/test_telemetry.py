"""Metrics, readiness and health over HTTP; spans, where the environment asks for them; dashboards and alerts ask for
what there is."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import closing, nullcontext
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from prediction_bench import Bench
from publisher import Publisher
from served_http import ROW, job_file, serving
from served_model import ServedModel
from small_model import SmallModel
from waiting import wait_for

from streamtrain import __version__
from streamtrain._native import BodyForm
from streamtrain.errors import KafkaBroken, KafkaUnreachable, UserMistake
from streamtrain.log import logger_without_repeats
from streamtrain.run import request_spans
from streamtrain.run.kafka_publisher import KafkaPublisher
from streamtrain.run.request_spans import RequestSpans
from streamtrain.run.roles import predictor
from streamtrain.run.unpublished_dead_letters import Letters
from streamtrain.serving.application import Application
from streamtrain.serving.config import Config
from streamtrain.telemetry import devices, metrics_server, process_usage, tracing
from streamtrain.telemetry.metrics_server import Telemetry
from streamtrain.telemetry.predictor_metrics import PredictorMeters
from streamtrain.telemetry.serving import ServingTable
from streamtrain.telemetry.tracing import Tracing, find_exporter, opened
from streamtrain.telemetry.trainer_metrics import TrainerMeters
from streamtrain.topics.dead_letters import Causes, DeadLetter, DeadRange
from streamtrain.topics.topic import all_topics
from tests.checks.verify.topics_in_memory import GoodJob
from tests.docs.test_pages import free_port
from tests.e2e.harness import LiveJob

DEAD = 'streamtrain_dead_letters_total{reason="%s"}'
STARTED = {"event": "started", "resumed": True, "version": 3, "rows": 10, "run": 2}
PUBLISHED = {
    "event": "published",
    "version": 4,
    "digest": "00",
    "round": 9,
    "rows": 5_000,
    "bytes": 100,
    "transaction_s": 0.03,
    "event_age_s": 0.3,
    "metrics": {
        "held_out": {"log_loss": 0.5, "rows": 7},
        "total": {
            "log_loss": 0.25,
            "constant_log_loss": 0.5,
            "rows": 5_000,
            "weight": 4.5,
            "confusion_matrix": [[1, 2], [3, 4]],
        },
        "window": None,
        "updates": 40,
        "rate_left": 0.5,
        "clipped": {"x1": 2},
    },
    "dead_letters": {"$[*].a: expected number": 3},
    "positions": [[100, 0], [50, 3]],
}


def progress(rows: int, **more: Any) -> dict[str, Any]:
    event = {"event": "progress", "unreachable": False, "unpublished_bytes": 7, "finished_round": rows // 100}
    event |= {"rows": rows, "records": rows // 2, "bytes": rows * 8, "slots_filled": 12, "slots_released": 4}
    return {**event, **more}


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def values(telemetry: Telemetry) -> dict[str, float]:
    code, text = get(telemetry.port, "/metrics")
    assert code == 200
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    found = {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}
    assert all('job="flights"' in name for name in found)
    return {name.replace('job="flights",', "").replace('{job="flights"}', ""): value for name, value in found.items()}


def test_metrics_follow_the_events() -> None:
    with Telemetry(0, TrainerMeters("flights", 24)) as telemetry:
        assert values(telemetry)[DEAD % "other"] == 0
        for event in (STARTED, progress(1_000), PUBLISHED, progress(3_000)):
            telemetry(event)
        assert values(telemetry)[DEAD % "$[*].a: expected number"] == 0, "a rate begins there"
        found = values(telemetry)
    expected = {
        "streamtrain_rows_total": 3_000,
        "streamtrain_records_total": 1_500,
        "streamtrain_ring_slots_used": 8,
        "streamtrain_ring_slots": 24,
        "streamtrain_snapshot_version": 4,
        "streamtrain_snapshot_rows": 5_000,
        "streamtrain_transaction_seconds_count": 1,
        "streamtrain_event_to_snapshot_seconds_sum": 0.3,
        "streamtrain_unpublished_bytes": 7,
        DEAD % "$[*].a: expected number": 3,
        DEAD % "other": 0,
        'streamtrain_quality{name="log_loss",span="total"}': 0.25,
        'streamtrain_quality{name="constant_log_loss",span="total"}': 0.5,
        'streamtrain_quality{name="log_loss",span="held_out"}': 0.5,
        "streamtrain_runs_total": 1,
        "streamtrain_ready": 1,
    }
    assert {name: found[name] for name in expected} == expected
    assert 0 <= found["streamtrain_snapshot_age_seconds"] < 600
    assert [name for name in found if "quality" in name] == [name for name in expected if "quality" in name]
    assert found[f'streamtrain_info{{run="2",version="{__version__}"}}'] == 1


def test_readiness() -> None:
    """A trainer that another run has replaced is not ready either."""
    expected = [
        (None, 503),
        (STARTED, 200),
        (progress(1, unreachable=True), 503),
        (progress(2), 200),
        ({"event": "restarting", "reason": "x"}, 503),
        (STARTED, 200),
        (progress(5, waiting_for_schema=True), 503),
        (progress(5), 200),
        (PUBLISHED, 200),
        ({"event": "replaced"}, 503),
    ]
    with Telemetry(0, TrainerMeters("flights", 24)) as telemetry:
        states = []
        for event, _ in expected:
            if event is not None:
                telemetry(event)
            states.append((event, get(telemetry.port, "/ready")[0]))
        assert states == expected
        assert get(telemetry.port, "/else")[0] == 404


def test_a_new_run_counts_on_and_reasons_do_not_grow_with_the_data() -> None:
    meters = TrainerMeters("flights", 24)
    for rows in (100, 300, 50, 60):  # of two runs
        meters(progress(rows))
    assert meters.registry.get_sample_value("streamtrain_rows_total", {"job": "flights"}) == 360
    causes = Causes()
    for number in range(200):
        causes.add(letter(DeadRange(number, number + 2, f"$[{number}].a", f'expected number, got "{number}" at [7]')))
        causes.add(letter(DeadRange(0, 1, "$", f"nested deeper than 256 levels at byte {number}"), left_out=1))
    assert causes.rows == {"$[*].a: expected number": 400, "other": 200,
                           "$: nested deeper than 256 levels at byte *": 200}  # fmt: skip
    assert causes.letters["$[*].a: expected number"] == 200 and causes.most_common(1)["other"] == 400
    assert causes.describe().startswith('400 x $[*].a: expected number, the first got "0" at [7]; ')
    for number in range(200):
        causes.add(letter(DeadRange(0, 1, f"$.c{number}", "expected number, got nothing (missing)")))
    meters({**PUBLISHED, "dead_letters": causes.rows})
    for _ in range(2):
        families = {family.name: family.samples for family in meters.registry.collect()}
    samples = [sample for sample in families["streamtrain_dead_letters"] if sample.name.endswith("_total")]
    assert len(samples) == 50 and sum(sample.value for sample in samples) == 1000


def letter(part: DeadRange, left_out: int = 0) -> DeadLetter:
    return DeadLetter("t", 0, 0, (part,), 1, 1, rows_left_out=left_out)


def test_lag_is_read_from_kafka_whose_absence_ends_readiness(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "ASK_EVERY_S", 0.01)
    meters, ends = TrainerMeters("flights", 24), [[130, 60, 5]]

    def lag() -> dict[int, int]:
        if not ends:
            raise KafkaUnreachable("away")
        return meters.lag(ends[0])

    with Telemetry(0, meters, lag) as telemetry:
        for event in (STARTED, PUBLISHED):
            telemetry(event)
        by_partition = {f'streamtrain_lag_offsets{{partition="{at}"}}': lag for at, lag in enumerate((30, 10, 5))}
        wait_for(lambda: by_partition.items() <= values(telemetry).items())
        assert get(telemetry.port, "/ready")[0] == 200
        gone = ends.pop()
        wait_for(lambda: get(telemetry.port, "/ready")[0] == 503)
        assert by_partition.items() <= values(telemetry).items()
        ends.append(gone)
        wait_for(lambda: values(telemetry)["streamtrain_ready"] == 1)


def answered(**more: int) -> dict[str, Any]:
    names = ("requests", "rows", "errors", "row_errors", "batches", "rewinds", "version", "snapshot_made_ms",
             "waiting")  # fmt: skip
    return {"event": "answered", **dict.fromkeys(names, 0), "newest_request_ms": -1, **more}


def test_a_predictor_is_ready_with_its_first_snapshot() -> None:
    with Telemetry(0, PredictorMeters("flights")) as telemetry:
        telemetry(answered())
        assert get(telemetry.port, "/ready")[0] == 503
        created_ms = int(time.time() * 1_000) - 7_000
        counters = {"requests": 20, "rows": 50, "errors": 2, "row_errors": 5, "batches": 3, "rewinds": 1}
        telemetry(answered(**counters, version=4, snapshot_made_ms=created_ms, waiting=2))
        assert get(telemetry.port, "/ready")[0] == 503, "a schema is waited for"
        telemetry(answered(**counters, version=4, snapshot_made_ms=created_ms))
        assert get(telemetry.port, "/ready")[0] == 200
        found = values(telemetry)
    expected = {
        "streamtrain_requests_total": 20,
        "streamtrain_rows_total": 50,
        "streamtrain_request_errors_total": 2,
        "streamtrain_row_errors_total": 5,
        "streamtrain_batches_total": 3,
        "streamtrain_rewinds_total": 1,
        "streamtrain_snapshot_version": 4,
        "streamtrain_ready": 1,
    }
    assert {name: found[name] for name in expected} == expected
    assert 7 <= found["streamtrain_snapshot_age_seconds"] < 600


def test_an_address_that_cannot_be_taken_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UserMistake, match=f"--metrics-port {port} of --metrics-host 127.0.0.1: Address already in"):
            Telemetry(port, TrainerMeters("flights", 24))
    with pytest.raises(UserMistake, match=r"--metrics-host 192\.0\.2\.1: "):
        Telemetry(0, PredictorMeters("flights"), host="192.0.2.1")


def test_only_this_machine_is_answered_unless_a_host_is_set() -> None:
    for settings, end in (({}, pytest.raises(OSError)), ({"host": "0.0.0.0"}, nullcontext())):
        with Telemetry(0, PredictorMeters("flights"), **settings) as telemetry, end:
            socket.create_connection(("127.0.0.2", telemetry.port), timeout=60).close()


def test_head_is_answered_without_a_body() -> None:
    with Telemetry(0, PredictorMeters("flights")) as telemetry:
        for path, code in (("/metrics", 200), ("/ready", 503)):
            with closing(http.client.HTTPConnection("127.0.0.1", telemetry.port, timeout=60)) as connection:
                connection.request("HEAD", path)
                answer = connection.getresponse()
                assert answer.status == code and int(answer.headers["Content-Length"]) > 0 and answer.read() == b""


BUSY = """
import sys
from streamtrain.run.process_settings import show_as
show_as("worker-7")
held = bytearray(b"x" * (64 << 20))
total = sum(at * at for at in range(4_000_000))
print("ready", flush=True)
sys.stdin.read()
"""


def test_processes_are_reported_by_name() -> None:
    """A child of a child too, for workers are that."""
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}])"
    with subprocess.Popen([sys.executable, "-c", nested], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        with Telemetry(0, TrainerMeters("flights", 24)) as telemetry:
            found = values(telemetry)
        child.communicate()
    assert found['streamtrain_process_pss_bytes{process="worker-7"}'] > 64 << 20
    assert found['streamtrain_process_cpu_seconds_total{process="worker-7"}'] > 0
    assert found['streamtrain_process_pss_bytes{process="supervisor"}'] > 1 << 20
    with Telemetry(0, TrainerMeters("flights", 24)) as telemetry:
        assert not [name for name in values(telemetry) if "worker-7" in name]


def test_a_process_that_ends_meanwhile_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_usage, "family", lambda process: [process, (1 << 22) + 1])  # above any kernel's pid_max
    with Telemetry(0, PredictorMeters("flights")) as telemetry:
        found = [name for name in values(telemetry) if "process_pss" in name]
    assert found == ['streamtrain_process_pss_bytes{process="predictor"}']


def test_children_are_of_each_thread_that_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A thread that ends while it is looked at hides no child of the others; a process that ends, none of the rest."""
    listed = {(10, at): f"{10 + at} " for at in range(1, 9)} | {(11, 11): "21 22 ", (12, 12): ""}
    for (process, thread), children in listed.items():
        task = tmp_path / str(process) / "task"
        (task / str(thread)).mkdir(parents=True)
        (task / str(thread) / "children").write_text(children)
        (task / str(100 + thread)).mkdir()  # has ended
    monkeypatch.setattr(process_usage, "_PROC", tmp_path)
    assert sorted(process_usage.family(10)) == [*range(10, 19), 21, 22]


NVML = """
#include <string.h>
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 3; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned at, void **handle) { *handle = (void *)(unsigned long)(at + 1); return 0; }
int nvmlDeviceGetName(void *handle, char *name, unsigned length) { strncpy(name, "Some GPU", length); return 0; }
int nvmlDeviceGetMemoryInfo(void *handle, unsigned long long *memory) {
    memory[0] = 80; memory[1] = 50; memory[2] = 30; return (unsigned long)handle == 2 ? 15 : 0;  /* one is lost */
}
int nvmlDeviceGetUtilizationRates(void *handle, unsigned *percent) { percent[0] = 25; percent[1] = 7; return 0; }
"""


def test_gpus_are_reported_where_their_driver_is(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here")
    source, library = tmp_path / "nvml.c", tmp_path / "libnvidia-ml.so.1"
    source.write_text(NVML)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    assert devices.devices(str(library)) == [
        devices.Device("0 Some GPU", 0.25, 30, 80), devices.Device("2 Some GPU", 0.25, 30, 80)
    ]  # fmt: skip
    assert devices.devices(str(tmp_path / "none.so")) == []
    figures = {
        sample.name: sample.value for family in devices.Devices("flights", str(library)).collect()
        for sample in family.samples if sample.labels == {"job": "flights", "device": "2 Some GPU"}
    }  # fmt: skip
    assert figures == {
        "streamtrain_gpu_utilization": 0.25, "streamtrain_gpu_memory_used_bytes": 30, "streamtrain_gpu_memory_bytes": 80
    }  # fmt: skip


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
    assert find_exporter(environment) == exporter
    monkeypatch.setattr(tracing, "find_spec", lambda name: None)
    assert find_exporter(environment) == "", "without the extra there are none"


def test_an_exporter_that_is_not_there_is_a_mistake_and_whoever_asks_for_none_imports_nothing(spans: Any) -> None:
    with pytest.raises(UserMistake, match="OTEL_TRACES_EXPORTER: expected an exporter that is installed, got 'zipper'"):
        opened("zipper")
    code = (
        "import sys; from streamtrain.telemetry.tracing import opened, find_exporter; import "
        "streamtrain.serving.application, streamtrain.run.roles.predictor, streamtrain.run.roles.coordinator; "
        "assert opened(find_exporter({})) is None; "
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
    tracing, ended = spans
    gathered = []

    def request(name: str, carrier: Any, *rest: Any, **more: Any) -> None:
        gathered.append(carrier)
        Tracing.request(tracing, name, carrier, *rest, **more)

    monkeypatch.setattr(tracing, "request", request)
    begun_ns = time.time_ns()
    config = bench.config(delivery, until_end=True)
    predictor.answer_traced(config, threading.Event(), lambda counters: None, tracing)
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
    tracing, ended = spans
    done = predictor.answer_traced(bench.config(), stop, report, tracing)
    assert done["requests"] > count and done["errors"] == 0
    offsets = [each.attributes["messaging.kafka.offset"] for each in ended()]
    assert offsets[: MOST_TRACED + 1] == [*range(MOST_TRACED), count]
    fields = [each.__dict__["fields"] for each in caplog.records if each.name == "of one turn"]
    assert fields == [{"left_out": 700}]


def test_what_is_left_out_in_many_turns_is_counted_to_the_last(
    spans: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log holds back what it has said a moment ago."""
    caplog.set_level("INFO")
    monkeypatch.setattr(request_spans, "log", logger_without_repeats("of many turns"))
    recorder = RequestSpans(spans[0], "flights", "flights.requests")
    for left_out in (0, 5, 12, 12, 40):
        recorder.take(SimpleNamespace(drain_traced=lambda left_out=left_out: ([], left_out)))  # type: ignore[arg-type]
    recorder.close()
    lines = [(each.levelname, each.__dict__["fields"]["left_out"]) for each in caplog.records]
    assert lines == [("WARNING", 5), ("INFO", 40)]


def fetch_status(app: Application, path: str, headers: dict[str, str]) -> int:
    """Returns the HTTP status of the answer."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    raw = [(name.encode(), value.encode()) for name, value in {"host": "127.0.0.1:1", **headers}.items()]
    scope = {"type": "http", "method": "POST", "path": path, "headers": raw, "client": ("127.0.0.1", 1)}
    asyncio.run(app(scope, receive, send))
    return int(sent[0]["status"])


def test_a_server_continues_its_clients_traces(spans: Any) -> None:
    tracing, ended = spans
    answer = SimpleNamespace(form=BodyForm.ROW, errors=0, rows=1, text=b'{"prediction":0.5}')
    scorer = SimpleNamespace(
        version=3, lineage=b'"version":3,"age_s":', created_ms=0, is_quick=lambda size: True,
        answer_body=lambda body, released: answer,
    )  # fmt: skip
    models: Any = {"flights": SimpleNamespace(scorer=scorer, job="flights")}
    row = SimpleNamespace(answered=lambda *rest: None)
    with closing(Application(Config((), "127.0.0.1", 1), models, None, row, None, tracing)) as app:  # type: ignore[arg-type]
        assert fetch_status(app, "/predict/flights", {"traceparent": SAMPLED, "tracestate": "a=1"}) == 200
        assert fetch_status(app, "/predict/flights", {"traceparent": UNSAMPLED}) == 200
        assert fetch_status(app, "/predict/flights", {}) == 200
        assert fetch_status(app, "/predict/other", {"traceparent": SAMPLED}) == 404
        models["flights"].scorer = SimpleNamespace(is_quick=lambda size: 1 / 0)
        assert fetch_status(app, "/predict/flights", {"traceparent": SAMPLED}) == 500
    first, root, unknown, failed = ended()
    assert continues(first)
    assert first.parent.trace_state.get("a") == "1" and root.parent is None
    assert (first.name, first.kind.name, first.attributes["streamtrain.version"]) == ("predict flights", "SERVER", 3)
    assert unknown.attributes["http.response.status_code"] == 404 and unknown.status.is_ok
    assert not failed.status.is_ok and failed.status.description == "status 500"


def test_a_publication_is_a_span_and_so_is_one_that_fails(spans: Any) -> None:
    tracing, ended = spans
    job = GoodJob(clean=True)
    job.produce()
    job.begin()
    job.train()
    failing: Any = SimpleNamespace(publish=lambda batch: (_ for _ in ()).throw(KafkaBroken("a new run")))
    for transactions in (SimpleNamespace(publish=lambda batch: 7), failing):
        names = {key: key for key in all_topics()}
        publisher = KafkaPublisher(None, transactions, None, names, tracing)  # type: ignore[arg-type]
        try:
            assert publisher.publish(job.assembled, Letters.none()) == 7
        except KafkaBroken:
            assert transactions is failing
    good, bad = ended()
    assert (good.name, good.kind.name, good.status.is_ok) == ("publish good", "PRODUCER", True)
    values = {name: good.attributes[f"streamtrain.{name}"] for name in ("version", "run", "rounds", "rows", "round")}
    log = job.assembled.logs
    assert values == {
        "version": 2, "run": 1, "rounds": len(log.rounds), "rows": log.rows_trained,
        "round": job.assembled.snapshot.manifest.round,
    }  # fmt: skip
    assert not bad.status.is_ok and [event.name for event in bad.events] == ["exception"]


def read_spans(text: str, name: str) -> list[dict[str, Any]]:
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
    found = read_spans(done.stderr, f"publish {job.name}")
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
        (found,) = read_spans(server.log.read_text(), f"predict {name}")
    assert (found["parent_id"], found["context"]["trace_id"]) == (f"0x{PARENT}", f"0x{TRACE}")
    assert found["resource"]["attributes"]["service.name"] == "flights"


ROOT = Path(__file__).resolve().parents[1]
PROMETHEUS, GRAFANA = ROOT / "deploy" / "prometheus", ROOT / "deploy" / "grafana" / "dashboards"
DASHBOARDS = sorted(GRAFANA.glob("*.json"))
RULES: list[dict[str, Any]] = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())["groups"][0]["rules"]
METRIC = re.compile(r"\bstreamtrain_\w+")
OF_ROLE = re.compile(r'\b(streamtrain_\w+)\{[^}]*role="(\w+)"')


@cache
def known(role: str = "") -> set[str]:
    """Every series our processes have; of a role: its."""
    registries = {
        "trainer": TrainerMeters("job", 4).registry, "predictor": PredictorMeters("job").registry,
        "serve": ServingTable(["job"], 1).registry(),
    }  # fmt: skip
    families = [family for name, each in registries.items() if role in ("", name) for family in each.collect()]
    return {f"{family.name}{suffix}" for family in families for suffix in ("", *SUFFIXES[family.type])}


SUFFIXES = {
    "counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "info": ("_info",), "gauge": (), "unknown": (),
}  # fmt: skip


def expressions(dashboard: Any) -> list[str]:
    """Returns the expressions of a dashboard's panels, variables and annotations."""
    found = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    found += [each["definition"] for each in dashboard["templating"]["list"] if each["type"] == "query"]
    return found + [each["expr"] for each in dashboard["annotations"]["list"]]


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_asks_for_what_there_is(path: Path) -> None:
    dashboard = json.loads(path.read_text())
    names = {name for text in expressions(dashboard) for name in METRIC.findall(text)}
    assert names and names - known() == set()
    for name, role in (found for text in expressions(dashboard) for found in OF_ROLE.findall(text)):
        assert name in known(role), role
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [panel["gridPos"] for panel in panels]
    cells = [
        (x, y) for at in places for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
    ]  # fmt: skip
    assert len(set(cells)) == len(cells) and all(0 <= x < 24 for x, _ in cells)  # none lies over another
    variables = {each["name"] for each in dashboard["templating"]["list"]}
    assert set(re.findall(r"\$\{?([a-z]\w*)", path.read_text())) <= variables
    assert dashboard["uid"] not in [json.loads(other.read_text())["uid"] for other in DASHBOARDS if other != path]


@pytest.mark.full
@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_is_one_to_grafanas_schema(path: Path) -> None:
    models = pytest.importorskip("grafana_foundation_sdk.models.dashboard")
    found = models.Dashboard.from_json(json.loads(path.read_text()))
    assert found.uid == f"streamtrain-{path.stem}" and all(panel.targets for panel in found.panels)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_asks_for_what_there_is_is_tried_and_in_the_runbook(rule: dict[str, Any]) -> None:
    assert set(METRIC.findall(rule["expr"])) <= known()
    assert rule["labels"]["severity"] in ("warning", "critical") and rule["annotations"]["description"]
    tried = yaml.safe_load((PROMETHEUS / "alerts.test.yml").read_text())["tests"]
    tests = [each for test in tried for each in test["alert_rule_test"] if each["alertname"] == rule["alert"]]
    assert any(each["exp_alerts"] for each in tests)
    runbook = (ROOT / "docs" / "operate.md").read_text()
    assert re.search(rf"^\| `{rule['alert']}` \| .+ \| .+ \|$", runbook, re.MULTILINE)


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} here (Debian's package prometheus)")
    return found


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "rules", "alerts.yml"],
        ["check", "config", "--syntax-only", "prometheus.yml"],  # the file of serve's token is in the container alone
        ["test", "rules", "alerts.test.yml"],
    ],
    ids=" ".join,
)
def test_promtool_accepts_them(arguments: list[str]) -> None:
    done = subprocess.run([tool("promtool"), *arguments], cwd=PROMETHEUS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.full
def test_a_real_prometheus_scrapes_a_real_trainer_and_server(kafka: Any, tmp_path: Path) -> None:
    prometheus = tool("prometheus")
    job = LiveJob(kafka, tmp_path)
    job.produce(1000)
    trainer = job.start("train", "--metrics-port", "0")
    metrics = wait_for(lambda: re.search(r"are served.*port=(\d+)", trainer.errors()))[1]
    (tmp_path / "token").write_text("a-token-of-ours")
    serve = job.start("serve", "--port", "0", "--host", "0.0.0.0", "--token-file", str(tmp_path / "token"))
    assert serve.process.stdout is not None
    served = json.loads(serve.process.stdout.readline())["port"]
    port = free_port()
    config = (PROMETHEUS / "prometheus.yml").read_text()
    config = config.replace("train:9400", f"127.0.0.1:{metrics}").replace("scrape_interval: 5s", "scrape_interval: 1s")
    config = config.replace("serve:8080", f"127.0.0.1:{served}").replace("/run/streamtrain-token", "token")
    (tmp_path / "prometheus.yml").write_text(config)
    shutil.copy(PROMETHEUS / "alerts.yml", tmp_path)
    with (tmp_path / "prometheus.log").open("wb") as log:
        running = subprocess.Popen(
            [prometheus, f"--config.file={tmp_path / 'prometheus.yml'}", f"--storage.tsdb.path={tmp_path / 'data'}",
             f"--web.listen-address=127.0.0.1:{port}"], stderr=log, stdout=log,
        )  # fmt: skip
    try:
        query = f'streamtrain_snapshot_version{{role="trainer",job="{job.name}"}} > 0'
        wait_for(lambda: answer(port, query))
        wait_for(lambda: answer(port, f'streamtrain_ready{{role="serve",job="{job.name}"}} == 1'))
        for path in DASHBOARDS:
            for text in expressions(json.loads(path.read_text())):
                if not text.startswith("label_values"):
                    answer(port, text.replace("$job", job.name))  # it is PromQL
        assert answer(port, f'streamtrain_quality{{job="{job.name}",name="log_loss",span="total"}}')
    finally:
        running.kill()
        running.wait(60)
        serve.process.kill()
        trainer.process.kill()


def answer(port: int, expression: str) -> Any:
    """Returns the result of an instant query; [] if the server is not up yet.

    Raises AssertionError if the expression is no query.
    """
    url = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
    try:
        with urllib.request.urlopen(url, timeout=30) as found:
            return json.load(found)["data"]["result"]
    except urllib.error.HTTPError as error:
        assert error.code != 400, (expression, error.read())
        return []
    except urllib.error.URLError:
        return []
