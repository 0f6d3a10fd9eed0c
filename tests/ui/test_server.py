"""`streamtrain ui` over a real Kafka, asked as a browser asks: its numbers are the topics', and it changes nothing; it
answers its own pages and holders of the token; over broken topics it says so, and the others go on. The system page:
metrics over time, of trainers that are idle or dead."""

from __future__ import annotations

import asyncio
import csv
import html
import json
import os
import re
import signal
import socket
import threading
import time
import urllib.parse
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from copied_jobs import copy_job
from prometheus_client import generate_latest
from trained_job import NO_RECORD, TRAINED, TrainedJob
from waiting import wait_for

from streamtrain.cli import main
from streamtrain.clients.dead_letters import Resender, Stray, letter_at, read_dead_letters
from streamtrain.errors import CheckFailed, StreamtrainError, UserMistake
from streamtrain.job.kafka_settings import KafkaSettings
from streamtrain.kafka.admin import Admin, TopicWish
from streamtrain.serving.asgi import LOOPBACK
from streamtrain.telemetry.metrics_server import Telemetry
from streamtrain.telemetry.predictor_metrics import PredictorMeters
from streamtrain.telemetry.serving import ServingTable
from streamtrain.telemetry.trainer_metrics import TrainerMeters
from streamtrain.topics.predictions import DIGEST_HEADER, VERSION_HEADER
from streamtrain.ui import charts, drawing, examining, followed_job, metric_values, pages, scraping, system
from streamtrain.ui.cluster import Cluster
from streamtrain.ui.followed_job import Following
from streamtrain.ui.guard import COOKIE, Guard
from streamtrain.ui.points import Points
from streamtrain.ui.sampling import Sampling
from streamtrain.ui.scraping import Given, Scraping, given
from streamtrain.ui.system import System
from tests.e2e import threaded
from tests.e2e.harness import LiveJob
from tests.test_telemetry import PUBLISHED, STARTED, answered, known, progress


def trained(kafka: Any, tmp_path: Path, rows: int = 2000, **settings: Any) -> LiveJob:
    job = LiveJob(kafka, tmp_path, **settings)
    more(job, rows)
    return job


def more(job: LiveJob, rows: int, seed: int = 0) -> None:
    """Trains on so many rows more."""
    job.produce(rows, seed)
    threaded.rows_after(job.path)


def line_of(found: Any, chart: str, name: str) -> list[list[float]]:
    lines = [line for job in found["charts"][chart] for line in job["lines"] if line["name"] == name]
    return lines[0]["points"] if lines else []


def test_what_is_drawn_is_what_the_topics_say(kafka: Any, tmp_path: Path, page_of: Any) -> None:
    job = trained(kafka, tmp_path)
    page = page_of(job.job)
    found = wait_for(lambda: (got := page.points(job.name))["charts"]["progressive_loss"][0]["lines"] and got)
    manifest = job.newest().manifest
    chart = found["charts"]["progressive_loss"][0]
    assert chart["title"] == "log loss" and chart["anew"]
    assert line_of(found, "progressive_loss", "in total")[-1] == [
        manifest.created_ms, manifest.metrics["total"]["log_loss"]
    ]  # fmt: skip
    by_rows = page.points(job.name, x="rows")
    assert line_of(by_rows, "progressive_loss", "in total")[-1][0] == manifest.rows_seen
    assert by_rows["charts"]["lag"][0]["lines"] == []  # over time alone
    marks = wait_for(lambda: page.points(job.name)["marks"][0]["marks"])
    assert [mark["kind"] for mark in marks] == ["run began", "run stopped"]

    # only what is new, once it is drawn
    drawn = {f"{job.name} {name}": of[0]["after"] for name, of in found["charts"].items()}
    after = urllib.parse.quote(json.dumps(drawn))
    again = page.points(job.name, after=after)["charts"]["progressive_loss"][0]
    assert again["lines"] == [] and not again["anew"]
    more(job, 1000, seed=1)
    newest = job.newest().manifest

    def new() -> Any:
        chart = page.points(job.name, after=after)
        points = line_of(chart, "progressive_loss", "in total")
        return points if points and points[-1][0] == newest.created_ms else None

    points = wait_for(new)
    assert points[-1][1] == newest.metrics["total"]["log_loss"] and points[0][0] > manifest.created_ms

    status, text = page.get(f"/api/csv/progressive_loss?job={job.name}")
    last = [*csv.DictReader(text.splitlines())][-1]
    assert status == 200 and [*last][:2] == ["time_ms", "rows"] and int(last["rows"]) == newest.rows_seen
    assert float(last["total.log_loss"]) == newest.metrics["total"]["log_loss"]
    job.verified()


def test_pages_of_every_state(kafka: Any, trained_job: TrainedJob, tmp_path: Path, page_of: Any) -> None:
    job = LiveJob(kafka, tmp_path)  # topics, and nothing in them
    page = page_of(job.job)
    for path in ("/", f"/overview?job={job.name}", "/overview", "/overview?job=nobody", "/overview?job=%3Cb%3E"):
        status, body = page.get(path)
        assert status == 200 and "streamtrain" in body and "<b>" not in body, path
    assert page.points(job.name)["marks"] == [{"job": job.name, "marks": []}]
    for path, expected in (("/api/csv/loss?job=x", 404), ("/assets/nothing.js", 404), ("/nothing", 404)):
        assert page.get(path)[0] == expected, path
    assert page.get("/assets/..%2Fapp.py")[0] == 404
    for after in ("{", "[]", "7", '{"a":"b"}', '{"a":null}'):
        assert page.get(f"/api/points?job={job.name}&after={urllib.parse.quote(after)}")[0] == 200, after

    page_of(trained_job.job)
    for route in (each.ROUTE for each in pages.in_order()):
        for name in (job.name, trained_job.name):
            status, body = page.get(f"{route}?job={name}")
            assert status == 200 and name in body, (route, name)
    wait_for(lambda: "There is no snapshot yet" in page.get(f"/model?job={job.name}")[1])
    assert "streamtrain train" in page.get(f"/model?job={job.name}")[1]
    assert "<b>none" not in (body := page.get("/model?job=%3Cb%3Enone")[1]) and "There is no job" in body


def test_pages_say_what_the_topics_do(trained_job: TrainedJob, page_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages as HTML; tests/ui/test_*_page.py read them in a browser."""
    monkeypatch.setattr(Sampling, "renew", lambda sampling: None)  # each look at the page would begin anew
    page, job = page_of(trained_job.job), trained_job
    newest = job.newest()
    version = newest.manifest.version

    def says(route: str, *texts: str, **query: Any) -> bool:
        body = page.get(f"/{route}?{urllib.parse.urlencode({'job': job.name, **query})}")[1]
        body = html.unescape(html.unescape(body))  # HTML in a page's JSON
        return all(text in body for text in texts)

    letter = next(each for each in read_dead_letters(job.job) if each.letter.value == NO_RECORD)
    place = f"{letter.partition}@{letter.offset}"
    headers = f"{VERSION_HEADER}: {version}\n{DIGEST_HEADER}: "
    for route, query, texts in (
        ("data", {}, ("Columns as records give them", "Dead letters", place, "$.delay")),
        ("data", {"letter": place}, (f"Dead letter {place}", "00 ff 20 6e 6f")),
        ("data", {"letter": "0@999"}, ("expected a dead letter at 0@999",)),
        ("lineage", {"headers": headers + newest.digest.hex()},
         (f"prediction was made by version {version}", f"{TRAINED:,} rows trained", f"What version {version} added")),
        ("lineage", {"headers": headers + "5f" * 32}, ("Not made by this job's version",)),
        ("lineage", {"headers": "nothing"}, ("Expected a header streamtrain-version",)),
        ("lineage", {"snapshot": 900}, ("Nothing tells of version 900",)),
        ("lineage", {"snapshot": 1}, ("It begins its lineage", "train.batch_rows")),
        ("model", {}, (f"Blocks of version {version}", "dense0.weight", "carrier.embedding")),
        ("model", {"against": 1}, ("The same blocks in version 1",)),
    ):  # fmt: skip
        wait_for(lambda of=(route, query, texts): says(of[0], *of[2], **of[1]), 60)
    assert says("", job.name, f"{TRAINED:,}", "st-ended")


def test_every_job_of_the_cluster_is_found_and_strangers_are_refused(
    kafka: Any, trained_job: TrainedJob, tmp_path: Path, served: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Each server ends by its signal."""
    before = own_topics(trained_job)
    page = served("--bootstrap", kafka.bootstrap, "--host", "127.0.0.2")
    wait_for(lambda: page.points(trained_job.name)["charts"]["progressive_loss"])
    assert own_topics(trained_job) == before
    assert [page.get("/", {"Host": host})[0] for host in ("127.0.0.2", "127.0.0.1", "evil.example")] == [200, 200, 403]
    assert page.get("/api/points?job=x", {"Origin": "http://evil.example"})[0] == 403
    page.process.send_signal(signal.SIGINT)
    assert page.process.wait(60) == 130

    with pytest.raises(SystemExit, match="2"):
        main(["ui", "--bootstrap", kafka.bootstrap, "--host", "0.0.0.0", "--port", "0"])
    assert "expected a token" in capsys.readouterr().err
    (tmp_path / "token").write_text("s3cret+/6chars==\n")
    monkeypatch.setenv("STREAMTRAIN_TOKEN", "0123456789abcdef")
    guarded = served("--bootstrap", kafka.bootstrap, "--host", "0.0.0.0", "--token-file", str(tmp_path / "token"))
    assert guarded.get("/")[0] == 403 and guarded.get("/?token=0123456789abcdef")[0] == 403
    assert guarded.get("/", {"Authorization": "Bearer s3cret+/6chars=="})[0] == 200
    guarded.process.send_signal(signal.SIGTERM)
    assert guarded.process.wait(60) == 0


def cost(page: Any) -> tuple[int, int, int]:
    """Threads, open files and bytes of a server; not those of libraries, which it shares with other processes."""
    process = Path(f"/proc/{page.process.pid}")
    files, threads = len(list((process / "fd").iterdir())), len(list((process / "task").iterdir()))
    return threads, files, 1024 * int(re.findall(r"RssAnon:\s+(\d+)", (process / "status").read_text())[0])


def test_a_job_that_nobody_looks_at_costs_no_thread(kafka: Any, trained_job: TrainedJob, served: Any) -> None:
    """Two servers of one Kafka, each of the jobs of its prefix."""
    prefix, numbers = kafka.fresh_name("copied"), (4, 16)
    copy_job(trained_job, [f"{prefix}-{'few' if at < numbers[0] else 'more'}-{at}" for at in range(numbers[1])])
    pages = [served("--bootstrap", kafka.bootstrap, "--prefix", each) for each in (f"{prefix}-few", prefix)]
    for page, number in zip(pages, numbers, strict=True):
        body = wait_for(lambda page=page, number=number: (got := page.get("/")[1]).count("st-ended") == number and got)
        assert body.count(f"{TRAINED:,}") == number
    wait_for(lambda: cost(pages[0])[:2] == cost(pages[1])[:2])
    (_, _, few), (_, _, many) = map(cost, pages)
    assert many - few < 500_000 * (numbers[1] - numbers[0])


def test_the_detail_of_a_job_is_let_go(
    trained_job: TrainedJob, page_of: Any, server_here: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, cluster = page_of(trained_job.job), server_here[1]
    job = cluster.of(trained_job.name)
    route = f"/model?job={job.name}"
    wait_for(lambda: job.job_status.get("snapshot"))  # by the reader of all jobs
    assert not job.is_watched and not len(job.publications) and "dead_letters" not in job.job_status
    for _ in range(2):
        wait_for(lambda: f"Blocks of version {trained_job.run_ends[-1]}" in page.get(route)[1])
        csv = page.get(f"/api/csv/progressive_loss?job={job.name}")[1]
        assert job.is_watched and len(csv.splitlines()) > 2 and job.job_status["dead_letters"]
        with monkeypatch.context() as soon:
            soon.setattr(followed_job, "LET_GO_S", 0.0)
            soon.setattr(examining, "_WATCHED_FOR_S", 0.0)
            wait_for(lambda: not (job.is_watched or cluster._beside))
        assert not len(job.publications) and not job.marks
        wait_for(lambda: not any(thread.name.endswith(job.name) for thread in threading.enumerate()))
        wait_for(lambda: "dead_letters" not in job.job_status)
        assert job.state == "ended" and not job.error


def own_topics(job: LiveJob) -> dict[str, Any]:
    """The ends of the job's topics: others make theirs on the tests' Kafka."""
    return {name: job.admin.spans(name) for name in sorted(job.admin.names()) if name.startswith(f"{job.name}.")}


def ask(guard: Guard, headers: dict[str, str], query: str = "", kind: str = "http") -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    raw_headers = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": kind, "headers": raw_headers, "query_string": query.encode(), "path": "/"}
    asyncio.run(guard(scope, None, send))
    return sent


async def application(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({"host": "127.0.0.1:9000"}, True),
        ({"host": "localhost:9000", "origin": "http://localhost:9000"}, True),
        ({"host": "[::1]:9000"}, True),
        ({"host": "evil.example:9000"}, False),  # a name that was made to lead here
        ({"host": "127.0.0.1.evil.example"}, False),
        ({}, False),
        ({"host": "localhost:9000", "origin": "http://evil.example"}, False),
        ({"host": "localhost:9000", "origin": "http://localhost:8000"}, False),  # another server of this machine
        ({"host": "localhost:9000", "origin": "null"}, False),
    ],
)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_only_the_page_itself_asks(headers: dict[str, str], allowed: bool, kind: str) -> None:
    sent = ask(Guard(application, LOOPBACK), headers, kind=kind)
    if allowed:
        assert sent[0]["status"] == 200
    elif kind == "http":
        assert sent[0]["status"] == 403 and b"expected" in sent[1]["body"]
    else:
        assert sent == [{"type": "websocket.close", "code": 1008, "reason": "refused"}]


@pytest.mark.parametrize(
    ("token", "headers", "query", "status"),
    [
        ("a+b/c==", {}, "token=a+b/c==", 303),  # a plus of a token stays one
        ("a+b/c==", {}, "job=x&token=a%2Bb%2Fc%3D%3D", 303),
        ("a+b/c==", {}, "token=a%20b/c==", 403),
        ("s3cret", {}, "", 403),
        ("s3cret", {}, "token=wrong", 403),
        ("s3cret", {"cookie": f"{COOKIE}=wrong"}, "", 403),
        ("s3cret", {"cookie": f"a=b; {COOKIE}=s3cret"}, "", 200),
        ("s3cret", {"cookie": f"{COOKIE}=s3cret"}, "x_token=1", 200),  # no token: it would lead to itself for ever
        ("s3cret", {"authorization": "Bearer s3cret"}, "", 200),
        ("s3cret", {"cookie": f"{COOKIE}=s3cret", "origin": "http://evil.example"}, "", 403),
    ],
)
def test_a_token_is_needed(token: str, headers: dict[str, str], query: str, status: int) -> None:
    sent = ask(Guard(application, (), token), {"host": "trainer.example:9000", **headers}, query)
    reply = dict(sent[0]["headers"])
    assert sent[0]["status"] == status
    assert b"frame-ancestors 'none'" in reply[b"content-security-policy"] and reply[b"x-frame-options"] == b"DENY"
    if status == 303:  # the browser keeps it, and not in an address
        assert reply[b"location"] == (b"./?job=x" if "job" in query else b"./")
        cookie = reply[b"set-cookie"].decode()
        assert cookie == f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict"


@pytest.mark.parametrize(("topic", "key"), [("snapshots", b"s/0003/m"), ("control", b"run/7"), ("rounds", b"9/0")])
def test_messages_not_ours_are_errors_and_publications_stay(kafka: Any, tmp_path: Path, topic: str, key: bytes) -> None:
    job = trained(kafka, tmp_path, rows=600)
    with closing(Following(job.name, job.job.kafka)) as following:
        following.watched()
        wait_for(lambda: len(following.publications))
        known = len(following.publications)
        job.produce_messages([{"key": key, "value": b"\x81\xa4junk\xc0"}], f"{job.name}.{topic}")
        wait_for(lambda: following.error)
        following.watched()
        assert topic in following.error and len(following.publications) == known
        assert following.state == "broken"  # Kafka answers: it is not away


def test_a_dead_letter_that_is_none_is_counted_and_the_others_go_on(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, max_dead_letter_share=1.0)
    job.produce_values([b"\xc1"] * 2, partition=0)
    more(job, 600)
    with closing(Following(job.name, job.job.kafka)) as following:
        following.watched()
        wait_for(lambda: following.job_status.get("dead_letters"))
        strays = [{"key": b"x", "value": value} for value in (b"\x81\xa4junk\xc0", b"")]
        job.produce_messages(strays, f"{job.name}.dead-letters")
        following.watched()
        wait_for(lambda: following.job_status["dead_letters_not_ours"] == 2)
        assert following.state == "ended" and following.error == ""
        job.produce_values([b"\xc1"], partition=0)
        more(job, 0)
        following.watched()
        wait_for(lambda: sum(following.job_status["dead_letters"].values()) == 3)
        assert following.job_status["dead_letters_not_ours"] == 2  # each once
        letters = Sampling(following).letters().result(60)
        assert len(letters.newest) == 3 and letters.strays == 2
    assert [each.letter.rows[0].row_to for each in read_dead_letters(job.job)] == [1, 1, 1]
    found: list[Stray] = []
    list(read_dead_letters(job.job, on_stray=found.append))
    place = found[0]
    with pytest.raises(StreamtrainError, match=rf"\[{place.partition}\]@{place.offset}: dead letter: expected header"):
        letter_at(job.job, f"{place.partition}@{place.offset}")
    assert Resender(job.job).look().letters == 0 and len(list(Resender(job.job).send(f"{job.name}.records"))) == 1


def test_a_failure_of_ours_ends_no_thread(kafka: Any, trained_job: TrainedJob, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [ZeroDivisionError("ours")]

    def failing(self: Following, logs: Any) -> None:
        if failures:
            raise failures.pop()
        real(self, logs)

    real = Following._take_logs
    monkeypatch.setattr(Following, "_take_logs", failing)
    with closing(Following(trained_job.name, trained_job.job.kafka)) as following:
        following.watched()
        wait_for(lambda: not failures)
        wait_for(lambda: len(following.publications) and not following.error)


def test_topics_that_only_look_like_a_jobs(kafka: Any) -> None:
    """Another program's: an empty pair of them is a job that waits."""
    name = kafka.fresh_name("alien")
    Admin(kafka.bootstrap).ensure([TopicWish(key, f"{name}.{key}", 1) for key in ("snapshots", "control")])
    with closing(Cluster(KafkaSettings({"bootstrap.servers": kafka.bootstrap}))) as cluster:
        found = wait_for(lambda: cluster.of(name))
        assert found.ready.wait(60)
        assert (found.state, found.error) == ("waiting", "")


def test_points_that_were_thinned_meanwhile_are_drawn_whole() -> None:
    """A page that was hidden for long gets the older points too, for it draws anew."""
    points = Points(most=10)
    for at in range(4):
        points.add(at, at, {"dead": float(at)})
    job: Any = SimpleNamespace(name="job", publications=points)
    chart = charts.REGISTRY.get("dead")
    after = drawing.drawn(job, chart, drawing.BY_TIME, -1, several=False)["after"]
    for at in range(4, 40):
        points.add(at, at, {"dead": float(at)})
    found = drawing.drawn(job, chart, drawing.BY_TIME, after, several=False)
    assert found["anew"]
    assert found["lines"][0]["points"][:: len(found["lines"][0]["points"]) - 1] == [(0, 0.0), (39, 39.0)]


URL, OTHER = "http://127.0.0.1:9400/metrics", "http://127.0.0.1:9401/metrics"


def trainer(*events: Any, job: str = "flights") -> TrainerMeters:
    meters = TrainerMeters(job, 24)
    for event in (STARTED, progress(1000), *events):
        meters(event)
    return meters


def exposed(meters: Any) -> Any:
    return metric_values.read(generate_latest(meters.registry).decode())


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock of the page, to move on."""
    seconds = [100.0]
    monkeypatch.setattr(system.time, "monotonic", lambda: seconds[0])
    return seconds


def values(cpu_s: float = 1.0, transactions: int = 0, **more: float) -> dict[str, dict[str, float]]:
    return {
        metric_values.CPU_S: {"worker-0": cpu_s}, metric_values.PSS_BYTES: {"worker-0": 5e6},
        metric_values.RING: {"": 24.0}, metric_values.RING_USED: {"": 3.0},
        metric_values.READY: {"": more.get("ready", 1.0)},
        metric_values.LAG: {"0": more.get("lag", 0.0)},
        metric_values.TRANSACTIONS: {"": float(transactions)}, metric_values.TRANSACTIONS_S: {"": transactions * 0.02},
    }  # fmt: skip


def test_every_metric_that_the_page_names_exists() -> None:
    gpus = {metric_values.GPU_USED, metric_values.GPU_MEMORY_USED_BYTES, metric_values.GPU_BYTES}
    assert set(metric_values.NAMES) <= known()
    found = exposed(trainer(PUBLISHED))["flights"]
    assert set(metric_values.NAMES) - set(found) - gpus == {
        metric_values.LAG,
        metric_values.REQUESTS,
        metric_values.SERVING,
    }
    assert found[metric_values.PSS_BYTES]["supervisor"] > 1 << 20
    predictor = PredictorMeters("flights")
    predictor(answered(requests=3))
    predictor.behind({0: 4, 1: 2})
    figures = exposed(predictor)["flights"]
    assert figures[metric_values.REQUESTS] == {"": 3.0} and figures[metric_values.LAG] == {"0": 4.0, "1": 2.0}


def test_metrics_of_serve_without_a_job_are_of_each_of_its_jobs() -> None:
    table = ServingTable(["flights", "taxis"], 2)
    table.row(0).listens(True)
    found = metric_values.read(table.exposition().decode())
    assert set(found) == {"flights", "taxis"}
    for job in found:
        assert found[job][metric_values.PSS_BYTES]["serve"] > 1 << 20 and found[job][metric_values.SERVING] == {"": 1.0}
        serving = System()
        serving.take(URL, found[job])
        (process,) = serving.reports
        assert process.role == "serve" and "pss.serve" in process.figures and serving.state(1.0) == ""


@pytest.mark.parametrize(
    "text",
    ["", "hello", "<html>", "streamtrain_ready", "streamtrain_ready{job=", 'streamtrain_ready{job="x"} much',
     "# HELP x", "streamtrain_ready 1"],
)  # fmt: skip
def test_what_is_none_of_our_metrics(text: str) -> None:
    with pytest.raises(CheckFailed, match="expected"):
        metric_values.read(text)


def test_of_one_metric_only_so_much_is_kept() -> None:
    lines = [f'{metric_values.PSS_BYTES}{{job="x",process="{at}"}} 1' for at in range(1000)]
    found = metric_values.read("\n".join([*lines, f'{metric_values.CPU_S}{{job="x",process="a"}} NaN']))
    assert (
        len(found["x"][metric_values.PSS_BYTES]) == metric_values.MOST_VALUES and metric_values.CPU_S not in found["x"]
    )


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
    of.take(OTHER, {metric_values.PSS_BYTES: {"worker-0": 7e6}, metric_values.REQUESTS: {"": 1.0}})
    assert of.points.last.figures == {"pss.worker-0 at 127.0.0.1:9401": 7.0}
    assert {each.url: each.role for each in of.reports} == {URL: "trainer", OTHER: "predictor"}
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
    of.take(OTHER, {metric_values.REQUESTS: {"": 1.0}})
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


def test_an_address_is_scraped_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scraping, "ASIDE_S", 0.02)
    systems = {"flights": System(), "other": System()}
    with Telemetry(0, trainer(PUBLISHED)) as telemetry:
        url = f"http://127.0.0.1:{telemetry.port}"
        addresses = [given(url), given(f"other={url}"), given("http://127.0.0.1:1")]
        with closing(Scraping(addresses, systems.get)) as scraper:
            wait_for(lambda: [each.role for each in systems["flights"].reports] == ["trainer"])
            assert wait_for(lambda: systems["flights"].reports[0].cores)["supervisor"] >= 0
            # given for a job that it is none of
            wait_for(lambda: scraper.addresses[1].jobs == {"flights"})
            assert systems["other"].reports == [] and scraper.strangers("other") == scraper.addresses
            wait_for(lambda: "Connection refused" in scraper.addresses[2].error)
            port = telemetry.port
            telemetry.__exit__(None, None, None)
            wait_for(lambda: "refused" in systems["flights"].reports[0].error)
            with Telemetry(port, trainer(PUBLISHED)):
                wait_for(lambda: not systems["flights"].reports[0].error)


@pytest.mark.parametrize("begun", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nx: "], ids=["body", "head"])
def test_an_answer_that_never_ends_is_no_answer(monkeypatch: pytest.MonkeyPatch, begun: bytes) -> None:
    """A byte now and then holds no thread for ever."""
    monkeypatch.setattr(scraping, "_ANSWER_S", 0.2)
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        closing(Scraping([given(f"127.0.0.1:{listener.getsockname()[1]}")], {}.get)) as scraper,
    ):
        connection, _ = listener.accept()
        connection.sendall(begun)
        until = time.monotonic() + 10
        while not scraper.addresses[0].error and time.monotonic() < until:
            with suppress(OSError):  # it is let go
                connection.sendall(b"#")
            time.sleep(0.02)
        assert "it was not all there" in scraper.addresses[0].error


def test_a_page_that_is_given_no_address_says_what_to_give(trained_job: TrainedJob, page_of: Any) -> None:
    system = f"/system?job={trained_job.name}"
    body = page_of(trained_job.job).get(system)[1]
    assert "--metrics-port 9400" in body and "--metrics http://127.0.0.1:9400" in body
    wrong = page_of(trained_job.job, "http://127.0.0.1:1")
    wait_for(lambda: "no answer: Connection refused" in wrong.get(system)[1])
    wait_for(lambda: "st-ended" in wrong.get("/")[1])


def test_metrics_that_a_page_is_given_are_drawn(trained_job: TrainedJob, page_of: Any) -> None:
    """This process stands in for a trainer, whose processes are `full`."""
    with Telemetry(0, trainer(PUBLISHED, job=trained_job.name)) as telemetry:
        page = page_of(trained_job.job, f"127.0.0.1:{telemetry.port}")
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
