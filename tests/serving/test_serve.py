"""`streamtrain serve` on a real Kafka: ready, swapped while it answers, refused, drained; beside a trainer, under load
for a while, while Kafka is away; limits of a connection in time."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import numpy as np
import psutil
import pytest
from prediction_bench import Bench
from prometheus_client.parser import text_string_to_metric_families
from publisher import Publisher
from served_http import ROW, Served, answered, job_file, serving
from served_model import ServedModel
from small_model import SmallModel
from waiting import wait_for

from streamtrain.cli import main
from streamtrain.clients.live_model import LiveModel
from streamtrain.errors import KafkaUnreachable
from streamtrain.serving.config import BODY_S, HEAD_S, STALLED_S
from streamtrain.serving.server import protocol
from tests.e2e import commands, threaded
from tests.e2e.harness import LiveJob, rows

MODEL = SmallModel.make()
NUMBER = SmallModel.make(loss="mean_squared_error")
ANSWERED = {"prediction", "version", "digest", "run", "lineage", "age_s"}
HEAD = b"POST /predict/%b HTTP/1.1\r\nhost: localhost\r\n"


def now_ms() -> int:
    return int(time.time() * 1000)


def published(kafka: Any, folder: Path) -> tuple[str, Path]:
    """The name and the file of a job with a snapshot."""
    name = kafka.fresh_name("served")
    MODEL.put(Publisher(kafka.bootstrap, name), 1, created_ms=now_ms())
    return name, job_file(folder, name, kafka.bootstrap)


@pytest.fixture(scope="module")
def flights(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    """A server of a published job that tests leave running, and the job."""
    name, path = published(kafka, tmp_path_factory.mktemp("serve"))
    with serving(path, options=("--most-bytes", "1000000", "--most-requests", "8")) as server:
        server.wait_ready()
        yield server, name


def test_snapshots_of_two_jobs_are_waited_for_and_swapped(kafka: Any, tmp_path: Path) -> None:
    first, second = kafka.fresh_name("first"), kafka.fresh_name("second")
    one, other = Publisher(kafka.bootstrap, first), Publisher(kafka.bootstrap, second)
    MODEL.put(one, 1)
    with serving(*(job_file(tmp_path, name, kafka.bootstrap) for name in (first, second))) as server:
        wait_for(lambda: server.get(f"/v2/models/{first}/ready").status_code == 200)
        waiting = server.get("/v2/health/ready")
        assert waiting.status_code == 503 and [*waiting.json()["waits_for"]] == [second]
        NUMBER.put(other, 1, untrained=True)
        wait_for(lambda: "trained snapshot" in server.get("/v2/health/ready").text)
        assert server.get("/v2/health/live").status_code == 200
        refused = server.post(f"/predict/{second}", ROW)
        assert refused.status_code == 503 and f"{second}.snapshots" in refused.json()["error"]
        assert refused.headers["retry-after"] == "1"
        assert server.get(f"/v2/models/{second}/ready").status_code == 503
        publication = NUMBER.put(other, 2, created_ms=now_ms())
        server.wait_ready()
        answer = server.post(f"/predict/{second}", ROW).json()
        assert answer.keys() == ANSWERED
        assert (answer["version"], answer["digest"]) == (2, publication.digest.hex()) and 0 <= answer["age_s"] < 600
        with LiveModel(second, kafka.bootstrap) as model:
            model.wait_ready(120)
            assert answer["prediction"] == model.predict(ROW)["prediction"]
        of_first = server.post(f"/predict/{first}", ROW).json()
        assert of_first["version"] == 1 and of_first["prediction"] != answer["prediction"]
        unknown = server.post(f"/predict/{first[:-1]}", ROW)
        assert unknown.status_code == 404 and f"did you mean {first}" in unknown.json()["error"]
        NUMBER.put(other, 3)
        wait_for(lambda: server.post(f"/predict/{second}", ROW).json()["version"] == 3)
        assert server.get(f"/v2/models/{second}").json()["versions"] == ["3"]
        assert server.get(f"/v2/models/{second}/versions/2/ready").status_code == 404

        no_answer_mixes(server, first, one)
        assert server.stop() == 0
        lines = [line for line in server.lines() if line.get("path") == f"/predict/{second}"]
        assert {line["status"] for line in lines} == {200, 503}
        assert {line["version"] for line in lines} >= {0, 2, 3} and all(line["job"] == second for line in lines)


def no_answer_mixes(server: Served, name: str, publisher: Publisher) -> None:
    """While ten snapshots come after the first."""
    rows = [ROW] * 2_000  # of more than a slot, and answered in another thread
    seen: dict[int, set[float]] = {}
    stop = threading.Event()

    def ask() -> None:
        with httpx.Client(base_url=server.event["url"], timeout=60) as client:
            while not stop.is_set():
                answer = client.post(f"/predict/{name}", json=rows).json()
                seen.setdefault(answer["version"], set()).update(a["prediction"] for a in answer["predictions"])

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    wait_for(lambda: 1 in seen)
    for version in range(2, 12):
        MODEL.put(publisher, version)
        wait_for(lambda version=version: version in seen)
    stop.set()
    for thread in threads:
        thread.join()
    assert all(len(values) == 1 for values in seen.values())
    assert len({value for values in seen.values() for value in values}) == len(seen) == 11


@pytest.mark.full
def test_tritons_client(flights: tuple[Served, str]) -> None:
    triton = pytest.importorskip("tritonclient.http")
    server, name = flights
    with triton.InferenceServerClient(f"127.0.0.1:{server.port}") as client:
        assert client.is_server_live() and client.is_server_ready() and client.is_model_ready(name)
        assert not client.is_model_ready(name, "2")
        assert client.get_server_metadata()["extensions"] == ["binary_tensor_data"]
        datatypes = {each["name"]: each["datatype"] for each in client.get_model_metadata(name, "1")["inputs"]}
        rows = 300
        expected = server.post(f"/predict/{name}", [{**ROW, "hour": at} for at in range(rows)]).json()["predictions"]
        for binary in (True, False):
            inputs = []
            for column, cell in {**ROW, "hour": None}.items():
                cells = [*range(rows)] if cell is None else [cell] * rows
                of_text = datatypes[column] == "BYTES"
                inputs.append(triton.InferInput(column, [rows], datatypes[column]))
                inputs[-1].set_data_from_numpy(np.array(cells, object if of_text else np.float32), binary)
            outputs = None if binary else [triton.InferRequestedOutput("prediction", binary_data=False)]
            answer = client.infer(name, inputs, request_id="7", outputs=outputs)
            assert answer.as_numpy("prediction").tolist() == [np.float32(each["prediction"]) for each in expected]
            assert answer.get_response()["model_version"] == "1" and answer.get_response()["id"] == "7"
        for job, version in ((name, "2"), ("nobody", "")):
            with pytest.raises(triton.InferenceServerException) as raised:
                client.infer(job, inputs, version)
            assert raised.value.status() == "404"


def test_forms_of_bodies_and_what_is_refused(flights: tuple[Served, str]) -> None:
    server, name = flights
    path = f"/predict/{name}"
    alone = server.post(path, ROW).json()["prediction"]
    columns = {key: [value] * 3 for key, value in ROW.items()}
    assert server.post(path, columns).json()["predictions"] == [{"prediction": alone}] * 3
    many = server.post(path, [ROW, {**ROW, "hour": "x"}])
    assert many.status_code == 200 and many.json()["predictions"][0] == {"prediction": alone}
    assert many.json()["predictions"][1]["error"]["path"] == "$[1].hour"
    for body, code in ((b"", 400), (b"{", 400), (b"\xff", 400), (b"[" * 100_000, 400), ({}, 422), ([], 200)):
        assert server.post(path, body).status_code == code, body
    assert server.post(path, b"{}", headers={"content-encoding": "gzip"}).status_code == 415
    assert server.get(path).status_code == 405
    assert server.get("/nothing").status_code == 404
    assert server.post(f"/v2/models/{name}/infer", b"{").status_code == 400
    wrong = {"inference-header-content-length": "x"}
    assert server.post(f"/v2/models/{name}/infer", b"{}", headers=wrong).status_code == 400
    assert server.post(path, ROW).json()["prediction"] == alone


def test_bodies_that_are_too_large(flights: tuple[Served, str]) -> None:
    server, name = flights
    peak = psutil.Process(server.process.pid).memory_info().rss
    whole = server.post(f"/predict/{name}", b"[" + b" " * 100_000_000)
    assert whole.status_code == 413 and "at most 1,000,000 bytes" in whole.json()["error"]
    with server.connect() as client:  # in chunks: nobody has said how much there is
        client.sendall(HEAD % name.encode() + b"transfer-encoding: chunked\r\n\r\n")
        with suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(100):
                client.sendall(b"%x\r\n" % 1_000_000 + b" " * 1_000_000 + b"\r\n")
        assert b"HTTP/1.1 413" in answered(client)
    assert psutil.Process(server.process.pid).memory_info().rss - peak < 50_000_000
    with server.connect() as client:  # all is sent before it reads: to end the connection at once would break that
        client.sendall(HEAD % name.encode() + b"content-length: 20000000\r\n\r\n" + b" " * 20_000_000)
        assert answered(client).startswith(b"HTTP/1.1 413")
    with server.connect() as client:  # refused by its head alone
        client.sendall(HEAD % name.encode() + b"expect: 100-continue\r\ncontent-length: 1000000000000\r\n\r\n")
        found = answered(client)
        assert found.startswith(b"HTTP/1.1 413") and b"100 Continue" not in found
    assert server.post(f"/predict/{name}", ROW).status_code == 200


def test_hostile_paths_leave_the_log_whole(flights: tuple[Served, str]) -> None:
    server, name = flights
    path = "/predict/%22,%22x%22:1%0a{%22level%22:%22error%22}%00%1b[2J"
    assert server.post(path, ROW).status_code == 404
    assert server.get("/%0a%22").status_code == 404
    wait_for(lambda: any(line.get("path") == '/\n"' for line in server.lines()))
    (line,) = [line for line in server.lines() if '"level"' in line.get("path", "")]
    assert (line["job"], line["status"], line["level"]) == ("", 404, "info")
    figures = server.get("/metrics").text.splitlines()
    labels = {line.partition("{")[2].partition("}")[0] for line in figures if line.startswith("streamtrain_requests_")}
    assert labels == {f'job="{name}"', 'job=""'}


def test_slow_and_half_open_clients(flights: tuple[Served, str]) -> None:
    """Each gets its time and its answer, and holds up nobody: the ninth body at once is refused."""
    server, name = flights
    head = HEAD % name.encode()
    silent, half, slow = server.connect(), server.connect(), [server.connect() for _ in range(8)]
    half.sendall(head[:20])
    for client in slow:
        client.sendall(head + b"content-length: 100\r\n\r\n[")
    wait_for(lambda: server.post(f"/predict/{name}", ROW).status_code == 429)
    assert server.post(f"/predict/{name}", ROW).headers["retry-after"] == "1"
    assert server.get("/v2/health/live").status_code == 200
    begun_s = time.monotonic()
    for client in slow:
        assert b"HTTP/1.1 408" in answered(client)
    assert time.monotonic() - begun_s < BODY_S + 4  # to the connection's end
    assert answered(silent) == b"" and answered(half) == b""
    assert server.post(f"/predict/{name}", ROW).status_code == 200
    with server.connect() as client:
        client.sendall(head + b"x: " + b"a" * 1_000_000)
        assert b"HTTP/1.1 400" in answered(client)
    assert server.get("/v2", headers={"x": "a" * 60_000}).status_code == 200
    assert server.get("/v2", headers={"x": "a" * 100_000}).status_code == 400
    for foreign in ({"host": "evil.example"}, {"origin": "http://evil.example"}):
        assert server.post(f"/predict/{name}", ROW, headers=foreign).status_code == 403
    with server.connect() as client:  # leaves in the middle of its body
        client.sendall(head + b"content-length: 100\r\n\r\n[")
    with server.connect() as client:
        client.sendall(b"\x16\x03\x01\x02\x00 no HTTP at all\r\n\r\n")
        assert b"HTTP/1.1 400" in answered(client)
    assert server.post(f"/predict/{name}", ROW).status_code == 200


def test_its_pages_show_how_to_ask_it_and_its_metrics_one_process(flights: tuple[Served, str]) -> None:
    server, name = flights
    found = server.taken()
    assert found.keys() == {"serve"}
    assert found["serve"]["cpu_seconds_total"] > 0.1 and found["serve"]["pss_bytes"] > 1 << 20
    document = server.get("/openapi.json").json()
    content = document["paths"][f"/predict/{name}"]["post"]["requestBody"]["content"]
    example = content["application/json"]["example"]
    assert example.keys() == ROW.keys()
    assert server.post(f"/predict/{name}", example).status_code == 200
    page = server.get("/").text
    assert f":{server.port}/predict/{name}" in page and "http://" not in page.replace(server.event["url"], "")


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit, match="2"):
        main(["serve", *arguments])
    return capsys.readouterr().err


def test_a_token_is_required(kafka: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, path = published(kafka, tmp_path)
    (tmp_path / "token").write_text("let-me-in-12\n")
    for given, said in (
        (["--host", "0.0.0.0"], "expected a token"), (["--token-file", str(tmp_path / "none")], "holds a token"),
        ([str(path)], "expected each job once"), (["--version", "7"], "a version it holds (1), got 7"),
        (["--snapshot", "best"], "the best by train.early_stopping, found none yet"),
    ):  # fmt: skip
        assert said in refusal(capsys, str(path), "--port", "0", *given)
    with serving(path, options=("--host", "0.0.0.0", "--token-file", str(tmp_path / "token"))) as server:
        assert "in use" in refusal(capsys, str(path), "--port", str(server.port))
        server.wait_ready()  # health is for everybody
        right, wrong = {"authorization": "Bearer let-me-in-12"}, {"authorization": "Bearer let-me-in-13"}
        for ask in ("/metrics", "/", "/openapi.json", "/v2", f"/v2/models/{name}"):
            assert server.client.get(ask, headers=wrong).status_code == 401, ask
            assert server.client.get(ask, headers=right).status_code == 200, ask
        assert server.post(f"/predict/{name}", ROW).status_code == 401
        assert server.post(f"/predict/{name}", ROW, headers=right).status_code == 200
        assert "let-me-in" not in server.log.read_text()


def test_it_stays_at_a_version(kafka: Any, tmp_path: Path) -> None:
    name, path = published(kafka, tmp_path)
    publisher = Publisher(kafka.bootstrap, name)
    with serving(path, options=("--version", "1")) as stays, serving(path) as follows:
        MODEL.put(publisher, 2)
        wait_for(lambda: follows.post(f"/predict/{name}", ROW).json().get("version") == 2)
        stays.wait_ready()
        assert stays.post(f"/predict/{name}", ROW).json()["version"] == 1 == stays.event["stays_at"]
        assert stays.get("/v2/health/ready").json() == {"ready": True, "stays_at": {name: 1}}
        assert stays.get(f"/v2/models/{name}").json()["stays_at"] == 1 and "stays at snapshot 1" in stays.get("/").text
        assert follows.get("/v2/health/ready").json() == {"ready": True} and follows.event["stays_at"] is None


def test_sigterm_answers_what_runs_and_a_second_one_does_not(kafka: Any, tmp_path: Path) -> None:
    name, path = published(kafka, tmp_path)
    body = json.dumps([ROW] * 100).encode()
    head = HEAD % name.encode() + b"content-length: %d\r\n\r\n" % len(body)
    for signals, code in ((1, 0), (2, 130)):
        with serving(path) as server:
            server.wait_ready()
            clients = [server.connect() for _ in range(8)]
            for client in clients:
                client.sendall(head + body[:100])
            ready = threading.Event()
            threading.Thread(target=load, args=(server, name, ready), daemon=True).start()
            assert ready.wait(60)
            server.process.send_signal(signal.SIGTERM)
            wait_for(lambda server=server: is_refused(server))  # nothing new is taken
            if signals == 2:
                server.process.send_signal(signal.SIGTERM)
            else:
                for client in clients:
                    client.sendall(body[100:])
                    found = answered(client)
                    assert found.startswith(b"HTTP/1.1 200") and found.count(b'"prediction":') == 100
            assert server.process.wait(60) == code


def load(server: Served, name: str, ready: threading.Event) -> None:
    """Requests until the server ends; each answer that comes is whole."""
    with httpx.Client(base_url=server.event["url"], timeout=60) as client, suppress(httpx.TransportError):
        while True:
            assert client.post(f"/predict/{name}", json=ROW).json().keys() == ANSWERED
            ready.set()


def is_refused(server: Served) -> bool:
    try:
        server.connect().close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:  # it waited in the queue of a socket that was closed
        pass
    return False


def test_the_extra_is_required(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "uvicorn" else found(name))
    assert "streamtrain[serve]" in refusal(capsys, "none.toml")


def named(server: Served) -> dict[str, psutil.Process]:
    """The workers, by their names as `ps` shows them."""
    found = {}
    for child in psutil.Process(server.process.pid).children():
        with suppress(OSError):  # it has ended
            found[Path(f"/proc/{child.pid}/comm").read_text().strip()] = child
    return {comm.removeprefix("st-"): child for comm, child in found.items() if comm.startswith("st-")}


def spent_s(process: psutil.Process) -> float:
    """Until now; with a tick more, in which sums of decimals may differ."""
    return sum(process.cpu_times()[:2]) + 0.01


def of_predictions(server: Served, name: str) -> list[dict[str, Any]]:
    return [line for line in server.lines() if line.get("path") == f"/predict/{name}"]


def test_workers_share_a_port_and_show_the_figures_of_all(kafka: Any, tmp_path: Path) -> None:
    name, path = published(kafka, tmp_path)
    of = f'{{job="{name}"}}'
    with serving(path, options=("--workers", "2")) as server:
        wait_for(lambda: server.figure(f"streamtrain_ready{of}") == 1)
        workers = named(server)
        assert workers.keys() == {"serve-0", "serve-1"}
        found = server.taken()
        assert {"serve", *workers} <= found.keys()
        for process, worker in workers.items():
            assert 0.1 < found[process]["cpu_seconds_total"] <= spent_s(worker)
            assert found[process]["pss_bytes"] > 1 << 20

        processes: set[str] = set()
        count = 0
        while len(processes) < 2:  # a connection goes to whichever the kernel gives it to
            with httpx.Client(base_url=server.event["url"], timeout=60) as client:
                assert client.post(f"/predict/{name}", json=[ROW, {}]).status_code == 200
            count += 1
            wait_for(lambda count=count: len(of_predictions(server, name)) == count)
            processes = {line["process"] for line in of_predictions(server, name)}
        assert processes == {"serve-0", "serve-1"}
        wait_for(lambda: server.figure(f"streamtrain_requests_total{of}") == count)
        counted = [server.figure(f"streamtrain_{each}{of}") for each in ("rows_total", "row_errors_total")]
        assert counted == [count, count] and server.figure(f"streamtrain_request_seconds_count{of}") == count

        workers["serve-0"].kill()
        wait_for(lambda: (now := named(server).get("serve-0")) is not None and now.pid != workers["serve-0"].pid)
        wait_for(lambda: server.figure("streamtrain_serving_processes") == 2)
        wait_for(lambda: server.figure(f"streamtrain_ready{of}") == 1)
        assert named(server).keys() == {"serve-0", "serve-1"}
        assert server.taken()["serve-0"]["cpu_seconds_total"] <= spent_s(named(server)["serve-0"])  # begun again
        assert server.figure(f"streamtrain_requests_total{of}") == count  # what it had counted is not lost
        assert server.stop() == 0


FLAT = 1.05  # memory of the last third, of the first's
SLACK_BYTES = 8 << 20  # what an allocator keeps, which counts for little in a long run


class Asking:
    """Clients that ask one after the other until they are stopped; every answer must be whole."""

    def __init__(self, server: Served, path: str, body: Any, pause_s: float, clients: int = 2) -> None:
        self._server, self._path, self._body, self._pause_s = server, path, body, pause_s
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(clients)]
        self.versions: set[int] = set()
        self.answers, self.failures = 0, list[str]()

    def _ask(self) -> None:
        with httpx.Client(base_url=self._server.event["url"], timeout=60) as client:
            while not self._stop.is_set():
                try:
                    answer = client.post(self._path, json=self._body)
                    assert answer.status_code == 200, answer.text
                    self.versions.add(answer.json()["version"])
                    self.answers += 1
                except Exception as error:
                    self.failures.append(repr(error))
                time.sleep(self._pause_s)

    @contextmanager
    def going(self) -> Iterator[None]:
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join()


def test_a_trainers_snapshots_are_served_as_they_come(kafka: Any, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, prefix="served")
    job.produce(2_000)
    trainer = threaded.Run(job.path)
    trainer.wait_event("published", rows=2_000)
    row = {name: cell for name, cell in next(rows(1, seed=9)).items() if name != "y"}
    with serving(job.path) as server:
        server.wait_ready()
        asking = Asking(server, f"/predict/{job.name}", row, 0.0)
        with asking.going():
            for part in range(1, 6):
                seen = len(asking.versions)
                job.produce(2_000, seed=part)
                wait_for(lambda seen=seen: len(asking.versions) > seen)
            assert trainer.drain() == 0
            newest = job.newest().manifest.version
            wait_for(lambda: newest in asking.versions)
        assert asking.failures == [] and len(asking.versions) >= 5
        with LiveModel(job.name, kafka.bootstrap) as model:
            wait_for(lambda: model.version == newest)
            assert server.post(f"/predict/{job.name}", row).json()["prediction"] == model.predict(row)["prediction"]
        assert server.stop() == 0
    job.verified()


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_load_and_publications(kafka: Any, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    seconds = request.config.getoption("--load-seconds")
    name = kafka.fresh_name("served")
    publisher = Publisher(kafka.bootstrap, name)
    MODEL.put(publisher, 1)
    with serving(job_file(tmp_path, name, kafka.bootstrap), options=("-q",)) as server:
        server.wait_ready()
        process, taken = psutil.Process(server.process.pid), list[int]()
        one = Asking(server, f"/predict/{name}", ROW, 0.002)
        many = Asking(server, f"/predict/{name}", [ROW] * 1_000, 0.02, clients=1)
        with one.going(), many.going():
            version, until_s = 1, time.monotonic() + seconds
            while time.monotonic() < until_s:
                begun_s = time.monotonic()
                version += 1
                MODEL.put(publisher, version)
                wait_for(lambda version=version: max(one.versions, default=0) >= version)
                taken.append(process.memory_info().rss)
                time.sleep(max(0.0, begun_s + 1 - time.monotonic()))
        assert one.failures + many.failures == []
        assert one.answers > 0 and many.answers > 0 and max(one.versions) == version
        _is_flat(taken)
        assert server.stop() == 0


def _is_flat(taken: list[int]) -> None:
    """Medians, for one publication is under way at some of the looks. The first look is before all has been used."""
    third = max(1, len(taken) // 3)
    first, last = np.median(taken[1 : 1 + third]), np.median(taken[-third:])
    assert last <= first * FLAT + SLACK_BYTES, taken


def test_memory_that_grows_is_seen() -> None:
    _is_flat([100 << 20] * 60)
    with pytest.raises(AssertionError):
        _is_flat([(100 << 20) + at * (3 << 20) for at in range(60)])


uvicorn = pytest.importorskip("uvicorn")


def transport_of(stalled: bool) -> Any:
    """Keeps the bytes written, which nobody takes while it is `stalled`, and how it ended."""
    transport, written = Mock(spec=asyncio.Transport, stalled=stalled, ended=""), bytearray()
    transport.write.side_effect = written.extend
    transport.get_write_buffer_size.side_effect = lambda: len(written) if transport.stalled else 0
    transport.close.side_effect = lambda: setattr(transport, "ended", "closed")
    transport.abort.side_effect = lambda: setattr(transport, "ended", "aborted")
    transport.is_closing.side_effect = lambda: bool(transport.ended)
    transport.get_extra_info.side_effect = lambda name, default=None: default
    return transport


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    with asyncio.Runner() as runner:
        yield runner.get_loop()


def connection(transport: Any, loop: asyncio.AbstractEventLoop) -> Any:
    async def never(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.Event().wait()

    settings = uvicorn.Config(never, log_config=None)
    settings.load()
    conn = protocol()(settings, uvicorn.server.ServerState(), {}, loop)
    conn.connection_made(transport)
    return conn


def test_an_answer_that_nobody_takes_is_let_go(loop: asyncio.AbstractEventLoop) -> None:
    transport = transport_of(stalled=True)
    conn = connection(transport, loop)
    conn.data_received(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    transport.write(b"an answer")
    conn.look(1000.0)
    conn.look(1000.0 + STALLED_S)
    assert transport.ended == ""
    transport.stalled = False
    conn.look(1001.0 + STALLED_S)
    transport.stalled = True
    conn.look(1002.0 + STALLED_S)  # it begins anew
    assert transport.ended == ""
    conn.look(1003.0 + 2 * STALLED_S)
    assert transport.ended == "aborted"


def test_a_head_has_its_time_and_an_idle_connection_none_of_it(loop: asyncio.AbstractEventLoop) -> None:
    transport = transport_of(stalled=False)
    conn = connection(transport, loop)
    begun_s = conn.waits_since_s
    conn.look(begun_s + HEAD_S)
    assert transport.ended == ""
    conn.data_received(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    conn.look(begun_s + 100 * HEAD_S)  # its answer takes as long as it takes
    assert transport.ended == "" and conn.waits_since_s is None
    conn.data_received(b"GET")
    conn.look(conn.waits_since_s + HEAD_S + 1)
    assert transport.ended == "closed"


JOB = """
name = "outage"
[kafka]
bootstrap.servers = "{bootstrap}"
[columns]
"{{a,b}}" = {{}}
y = {{ role = "label" }}
"""


class Predicting:
    """A running `streamtrain predict` with metrics."""

    def __init__(self, path: Path) -> None:
        self.log = path.with_suffix(".log")
        with self.log.open("w") as errors:
            arguments = ["predict", str(path), "--metrics-port", "0", "--log-format", "json"]
            self.process = commands.start(arguments, errors, {})
        self.port = wait_for(lambda: next((log["port"] for log in self.logs() if "port" in log), None))

    def logs(self) -> list[Any]:
        return [json.loads(line) for line in self.log.read_text().splitlines(True) if line.endswith("\n")]

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{self.port}{path}", timeout=60)

    def is_ready(self) -> bool:
        return self.get("/ready").status_code == 200

    def values(self) -> Counter[str]:
        found = Counter[str]()
        for family in text_string_to_metric_families(self.get("/metrics").text):
            for sample in family.samples:
                found[sample.name] += sample.value
        return found

    def lag(self) -> float:
        return self.values()["streamtrain_lag_offsets"]


def test_all_go_on_with_what_they_have_and_with_newer_ones_then(private_kafka: Any, tmp_path: Path) -> None:
    broker = private_kafka(data=tmp_path / "kafka")
    path = tmp_path / "outage.toml"
    path.write_text(JOB.format(bootstrap=broker.bootstrap))
    bench = Bench(broker.bootstrap, "outage")
    MODEL.put(Publisher(broker.bootstrap, "served"), 1)
    predict = Predicting(path)
    try:
        becomes_ready(predict, bench)
        with (
            serving(job_file(tmp_path, "served", broker.bootstrap)) as server,
            LiveModel("served", bootstrap=broker.bootstrap) as model,
        ):
            server.wait_ready()
            model.wait_ready(240)
            before = model.predict(ROW)

            broker.kill()
            wait_for(lambda: not predict.is_ready())
            wait_for(lambda: not model.connected)
            assert isinstance(model.error, KafkaUnreachable) and repr(model).endswith("no connection>")
            model.wait_ready(0)  # it has one
            assert model.predict(ROW) == before
            wait_for(lambda: "expected an answer from Kafka" in server.log.read_text())
            assert server.post("/predict/served", ROW).json()["version"] == 1
            assert server.get("/v2/health/ready").status_code == 200

            broker.start()
            wait_for(predict.is_ready)
            wait_for(lambda: model.connected)
            assert model.error is None
            MODEL.put(Publisher(broker.bootstrap, "served"), 2)
            wait_for(lambda: model.version == 2)
            assert model.predict(ROW) != before
            wait_for(lambda: server.post("/predict/served", ROW).json()["version"] == 2)
            assert server.stop() == 0
        bench.ask({"a": 1, "b": 1}, "after")
        bench.flush()
        wait_for(lambda: predict.values()["streamtrain_requests_total"] == 11)
        predict.process.send_signal(signal.SIGTERM)
        assert predict.process.wait(240) == 0
    finally:
        predict.process.kill()


def becomes_ready(predict: Predicting, bench: Bench) -> None:
    """The predictor is ready with the first snapshot, and answers earlier requests."""
    waiting = "waiting for the first snapshot of outage"
    wait_for(lambda: any(log["message"].startswith(waiting) for log in predict.logs()))
    assert not predict.is_ready()
    for i in range(10):
        bench.ask({"a": i, "b": 1} if i else "bad", str(i))
    bench.flush()
    wait_for(lambda: predict.lag() == 10)
    ServedModel(bench.bootstrap, "outage").put()
    wait_for(predict.is_ready)
    wait_for(lambda: predict.values()["streamtrain_requests_total"] == 10)
    wait_for(lambda: predict.lag() == 0)
    found = predict.values()
    assert (found["streamtrain_request_errors_total"], found["streamtrain_snapshot_version"]) == (1, 1)
