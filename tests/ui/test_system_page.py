"""The metrics of a job's processes: read, kept by process, shown; and which job is taken for idle or dead."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest
from trained_job import TrainedJob
from waiting import wait_for

from streamtrain.errors import CheckFailed, UserMistake
from streamtrain.telemetry import PredictorMeters, Telemetry, TrainerMeters
from streamtrain.telemetry.serving import ServingTable
from streamtrain.ui import charts, metrics, scraping, system
from streamtrain.ui.scraping import Given, Scraping, given
from streamtrain.ui.system import System
from tests.e2e.harness import LiveJob
from tests.test_telemetry import PUBLISHED, STARTED, answered, progress
from tests.test_watch import known

URL, OTHER = "http://127.0.0.1:9400/metrics", "http://127.0.0.1:9401/metrics"


def trainer(*events: Any, job: str = "flights") -> TrainerMeters:
    meters = TrainerMeters(job, 24)
    for event in (STARTED, progress(1000), *events):
        meters(event)
    return meters


def exposed(meters: Any) -> Any:
    return metrics.read(generate_latest(meters.registry).decode())


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock of the page, to move on."""
    seconds = [100.0]
    monkeypatch.setattr(system.time, "monotonic", lambda: seconds[0])
    return seconds


def values(cpu_s: float = 1.0, transactions: int = 0, **more: float) -> dict[str, dict[str, float]]:
    return {
        metrics.CPU_S: {"worker-0": cpu_s}, metrics.PSS_BYTES: {"worker-0": 5e6}, metrics.RING: {"": 24.0},
        metrics.RING_USED: {"": 3.0}, metrics.READY: {"": more.get("ready", 1.0)},
        metrics.LAG: {"0": more.get("lag", 0.0)},
        metrics.TRANSACTIONS: {"": float(transactions)}, metrics.TRANSACTIONS_S: {"": transactions * 0.02},
    }  # fmt: skip


def test_every_metric_that_the_page_names_exists() -> None:
    gpus = {metrics.GPU_USED, metrics.GPU_HELD_BYTES, metrics.GPU_BYTES}
    assert set(metrics.NAMES) <= known()
    found = exposed(trainer(PUBLISHED))["flights"]
    assert set(metrics.NAMES) - set(found) - gpus == {metrics.LAG, metrics.REQUESTS, metrics.SERVING}
    assert found[metrics.PSS_BYTES]["supervisor"] > 1 << 20
    predictor = PredictorMeters("flights")
    predictor(answered(requests=3))
    predictor.behind({0: 4, 1: 2})
    asked = exposed(predictor)["flights"]
    assert asked[metrics.REQUESTS] == {"": 3.0} and asked[metrics.LAG] == {"0": 4.0, "1": 2.0}


def test_metrics_of_serve_without_a_job_are_of_each_of_its_jobs() -> None:
    table = ServingTable(["flights", "taxis"], 2)
    table.row(0).listens(True)
    found = metrics.read(table.exposition().decode())
    assert set(found) == {"flights", "taxis"}
    for job in found:
        assert found[job][metrics.PSS_BYTES]["serve"] > 1 << 20 and found[job][metrics.SERVING] == {"": 1.0}
        serving = System()
        serving.take(URL, found[job])
        (process,) = serving.told
        assert process.role == "serve" and "pss.serve" in process.figures and serving.state(1.0) == ""


@pytest.mark.parametrize(
    "text",
    ["", "hello", "<html>", "streamtrain_ready", "streamtrain_ready{job=", 'streamtrain_ready{job="x"} much',
     "# HELP x", "streamtrain_ready 1"],
)  # fmt: skip
def test_what_is_none_of_our_metrics(text: str) -> None:
    with pytest.raises(CheckFailed, match="expected"):
        metrics.read(text)


def test_of_one_metric_only_so_much_is_kept() -> None:
    lines = [f'{metrics.PSS_BYTES}{{job="x",process="{at}"}} 1' for at in range(1000)]
    found = metrics.read("\n".join([*lines, f'{metrics.CPU_S}{{job="x",process="a"}} NaN']))
    assert len(found["x"][metrics.PSS_BYTES]) == metrics.MOST_VALUES and metrics.CPU_S not in found["x"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://h:9400", Given("http://h:9400/metrics")),
        ("taxi=http://h:9400/", Given("http://h:9400/metrics", "taxi")),
        ("h:9400", Given("http://h:9400/metrics")), ("a.b=h", Given("http://h/metrics", "a.b")),
        ("https://h/x?a=b", Given("https://h/x?a=b")), ("t=http://[::1]:9400", Given("http://[::1]:9400/metrics", "t")),
    ],
)  # fmt: skip
def test_addresses(text: str, expected: Given) -> None:
    assert given(text) == expected


@pytest.mark.parametrize("text", ["", "taxi=", "ftp://h", "http://", "http://h:x", "http://h:99999", "taxi=http://h:0"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UserMistake, match=r"--metrics .*expected \[JOB=\]URL"):
        given(text)


def test_figures_over_time(now: list[float]) -> None:
    of = System()
    of.take(URL, values(cpu_s=10, transactions=5))
    now[0] += 2
    of.take(URL, values(cpu_s=13, transactions=5))
    assert of.points.last is not None
    assert of.points.last.figures == {"cpu.worker-0": 1.5, "pss.worker-0": 5.0, "ring.used": 3.0, "ring.slots": 24.0}
    now[0] += 2
    of.take(URL, values(cpu_s=1, transactions=2))  # begun again
    assert of.points.last.figures["transaction_ms"] == pytest.approx(20)
    assert "cpu.worker-0" not in of.points.last.figures
    of.take(OTHER, {metrics.PSS_BYTES: {"worker-0": 7e6}, metrics.REQUESTS: {"": 1.0}})
    assert of.points.last.figures == {"pss.worker-0 at 127.0.0.1:9401": 7.0}
    assert {each.url: each.role for each in of.told} == {URL: "trainer", OTHER: "predictor"}
    drawn = {line.label for line in charts.REGISTRY.get("memory").lines(of.points.last.figures)}
    assert drawn == {"worker-0 at 127.0.0.1:9401"}


def test_an_idle_and_a_dead_trainer(now: list[float]) -> None:
    of = System()
    assert of.state(60) == ""  # nothing is given
    of.take(URL, values())
    assert of.state(60) == "idle"
    of.take(URL, values(lag=3))
    assert of.state(60) == ""
    of.take(URL, values(ready=0))
    assert of.state(60) == ""
    of.take(OTHER, {metrics.REQUESTS: {"": 1.0}})
    of.lost(OTHER, "no answer")
    now[0] += 60
    assert of.state(60) == ""  # a predictor's end is none of the trainer's
    of.lost(URL, "no answer")
    assert of.state(60) == ""  # one question may fail
    now[0] += 10
    of.lost(URL, "no answer")
    assert of.state(60) == "dead"
    assert of.state(1) == ""  # it has published since: it lives, and cannot be asked
    of.take(URL, values())
    assert of.state(60) == "idle"


def test_an_address_is_asked_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scraping, "ASIDE_S", 0.02)
    systems = {"flights": System(), "other": System()}
    with Telemetry(0, trainer(PUBLISHED)) as telemetry:
        url = f"http://127.0.0.1:{telemetry.port}"
        addresses = [given(url), given(f"other={url}"), given("http://127.0.0.1:1")]
        with closing(Scraping(addresses, systems.get)) as asked:
            wait_for(lambda: [each.role for each in systems["flights"].told] == ["trainer"])
            assert wait_for(lambda: systems["flights"].told[0].cores)["supervisor"] >= 0
            # given for a job that it is none of
            wait_for(lambda: asked.addresses[1].jobs == {"flights"})
            assert systems["other"].told == [] and asked.strangers("other") == asked.addresses
            wait_for(lambda: "Connection refused" in asked.addresses[2].error)
            port = telemetry.port
            telemetry.__exit__(None, None, None)
            wait_for(lambda: "refused" in systems["flights"].told[0].error)
            with Telemetry(port, trainer(PUBLISHED)):
                wait_for(lambda: not systems["flights"].told[0].error)


@pytest.mark.parametrize("begun", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nx: "], ids=["body", "head"])
def test_an_answer_that_never_ends_is_no_answer(monkeypatch: pytest.MonkeyPatch, begun: bytes) -> None:
    """A byte now and then holds no thread for ever."""
    monkeypatch.setattr(scraping, "_ANSWER_S", 0.2)
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        closing(Scraping([given(f"127.0.0.1:{listener.getsockname()[1]}")], {}.get)) as asked,
    ):
        connection, _ = listener.accept()
        connection.sendall(begun)
        until = time.monotonic() + 10
        while not asked.addresses[0].error and time.monotonic() < until:
            with suppress(OSError):  # it is let go
                connection.sendall(b"#")
            time.sleep(0.02)
        assert "it was not all there" in asked.addresses[0].error


def test_a_page_that_is_given_no_address_says_what_to_give(trained_job: TrainedJob, shown: Any) -> None:
    system = f"/system?job={trained_job.name}"
    body = shown(trained_job.job).get(system)[1]
    assert "--metrics-port 9400" in body and "--metrics http://127.0.0.1:9400" in body
    wrong = shown(trained_job.job, "http://127.0.0.1:1")
    wait_for(lambda: "no answer: Connection refused" in wrong.get(system)[1])
    wait_for(lambda: "st-ended" in wrong.get("/")[1])


def test_metrics_that_a_page_is_given_are_drawn(trained_job: TrainedJob, shown: Any) -> None:
    """This process stands in for a trainer, whose processes are `full`."""
    with Telemetry(0, trainer(PUBLISHED, job=trained_job.name)) as telemetry:
        page = shown(trained_job.job, f"127.0.0.1:{telemetry.port}")
        wait_for(lambda: "supervisor" in page.lines(trained_job.name, "processor"))
        assert "supervisor" in page.lines(trained_job.name, "memory")
        assert page.lines(trained_job.name, "ring") == {"in use", "there are"}
        body = page.get(f"/system?job={trained_job.name}")[1]
        assert "supervisor" in body and "Processes of the trainer" in body
        status, csv = page.get(f"/api/csv/memory?job={trained_job.name}")
        assert status == 200 and "pss.supervisor" in csv.splitlines()[0]


@pytest.mark.full
def test_a_trainer_that_is_idle_and_then_killed(kafka: Any, tmp_path: Path, served: Any) -> None:
    job = LiveJob(kafka, tmp_path)
    job.produce(1000)
    running = job.start("train", "--metrics-port", "0")
    try:
        port = wait_for(lambda: re.search(r"are served.*port=(\d+)", running.errors()))[1]
        page = served(str(job.path), "--metrics", f"127.0.0.1:{port}")
        running.wait_rows(1000)
        processes = {"supervisor", "coordinator", "ingest", "worker-0", "worker-1"}
        wait_for(lambda: processes <= page.lines(job.name, "processor"))
        assert processes <= page.lines(job.name, "memory")
        assert page.lines(job.name, "transaction") == {"transaction"}
        body = page.get(f"/system?job={job.name}")[1]
        assert all(name in body for name in processes)
        wait_for(lambda: "st-idle" in page.get("/")[1])
        os.kill(running.process.pid, signal.SIGKILL)
        wait_for(lambda: "st-dead" in page.get("/")[1])
        wait_for(lambda: "what is shown of it is from before" in page.get(f"/system?job={job.name}")[1])
    finally:
        running.process.kill()
