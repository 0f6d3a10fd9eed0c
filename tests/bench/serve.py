"""Answers of predictors and of `serve`, against the smallest Python loops over the same library and a FastAPI endpoint
with scikit-learn; each side is a process of its own."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgpack
import numpy as np
import psutil
from confluent_kafka import Consumer, Producer, TopicPartition
from prediction_bench import Bench
from served_model import ServedModel
from waiting import wait_for

from streamtrain.run.roles import predictor
from tests.bench.bed import PARTITIONS, STREAMTRAIN, fresh_name, job_text, spawn
from tests.bench.harness import LIMIT, Line, Run, Sides, bench, in_turns
from tests.bench.live_model import COLUMNS, NAMES, NUMBERS, layers_of, logits
from tests.oracles.msgpack import encode

RATE = 1000  # requests a second
FAST = {"retry.backoff.ms": 1, "retry.backoff.max.ms": 20, "linger.ms": 0}
ECHO, LOOP = "Python loop without a model", "consume, msgpack, NumPy, produce"


def group_of(job: str, bootstrap: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap, "group.id": f"{job}.predict", "auto.offset.reset": "earliest",
        "enable.auto.commit": False, "isolation.level": "read_committed", "fetch.wait.max.ms": 5,
    }  # fmt: skip


def python_echo(job: str, bootstrap: str, exactly_once: bool, stop: Any) -> None:
    """The latency's rival: what was asked is the answer."""
    consumer = Consumer(group_of(job, bootstrap))
    more = {"transactional.id": job} if exactly_once else {"enable.idempotence": True}
    producer = Producer({"bootstrap.servers": bootstrap, **FAST, **more})
    if exactly_once:
        producer.init_transactions(20)
    consumer.subscribe([f"{job}.requests"])
    while not stop.is_set():
        first = consumer.poll(0.1)
        batch = [first, *consumer.consume(1000, 0)] if first else []
        batch = [message for message in batch if not message.error()]
        if not batch:
            producer.poll(0)
            continue
        if exactly_once:
            producer.begin_transaction()
        for message in batch:
            producer.produce(f"{job}.predictions", message.value(), message.key())
        if exactly_once:
            ends = {message.partition(): message.offset() + 1 for message in batch}
            offsets = [TopicPartition(f"{job}.requests", partition, end) for partition, end in ends.items()]
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata())
            producer.commit_transaction()
        else:
            producer.poll(0)
            consumer.commit(asynchronous=True)
    consumer.close()


def python_predict(job: str, bootstrap: str, parameters: dict[str, Any], digest: bytes, stop: Any) -> None:
    """The throughput's rival: consume, msgpack, a forward pass in NumPy, produce; the same answers and headers."""
    consumer = Consumer(group_of(job, bootstrap))
    producer = Producer({"bootstrap.servers": bootstrap, **FAST, "queue.buffering.max.messages": 1_000_000})
    consumer.subscribe([f"{job}.requests"])
    layers = layers_of(parameters)
    ours = [("streamtrain-version", b"1"), ("streamtrain-digest", digest)]
    while not stop.is_set():
        batch = [message for message in consumer.consume(1000, 0.1) if not message.error()]
        if not batch:
            producer.poll(0)
            continue
        rows = [msgpack.unpackb(message.value()) for message in batch]
        x = np.array([[row[name] for name in NAMES] for row in rows], np.float32)
        y = 1 / (1 + np.exp(-logits(layers, x)))
        for message, value in zip(batch, y[:, 0].tolist(), strict=True):
            answer = json.dumps({"prediction": value})
            producer.produce(f"{job}.predictions", answer, message.key(), headers=(message.headers() or []) + ours)
        producer.poll(0)
    producer.flush(20)
    consumer.close()


class Job(Bench):
    """Topics, a published network and requests for one measurement, and the process that answers them."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap, fresh_name(), PARTITIONS)
        self.name, self._stop = self.job, spawn.Event()
        self.served = ServedModel(bootstrap, self.name, COLUMNS, (64, 64))
        self.digest = self.served.put().digest.hex().encode()
        random = np.random.default_rng(0).standard_normal((256, NUMBERS), np.float32)
        self._requests = [encode(self.served.schema, dict(zip(COLUMNS, row[:, None], strict=False))) for row in random]

    @contextlib.contextmanager
    def answered(self, target: Any, *arguments: Any) -> Iterator[None]:
        process = spawn.Process(target=target, args=(*arguments, self._stop))
        process.start()
        try:
            yield
        finally:
            self._stop.set()
            process.join(60)

    def ours(self, delivery: str) -> tuple[Any, ...]:
        consumer = {"bootstrap.servers": self.bootstrap}
        return predictor.answer, self.config(delivery, format={"name": "msgpack"}, kafka_consumer=consumer)

    def reader(self) -> Consumer:
        consumer = Consumer(group_of(f"{self.name}.reader", self.bootstrap))
        consumer.assign([TopicPartition(f"{self.name}.predictions", p, 0) for p in range(PARTITIONS)])
        return consumer

    def requester(self, linger_ms: int) -> Producer:
        return Producer({
            "bootstrap.servers": self.bootstrap, "queue.buffering.max.messages": 1_000_000, "linger.ms": linger_ms,
        })  # fmt: skip

    def request(self, producer: Producer, i: int, key: bytes, partition: int = -1) -> None:
        producer.produce(self.requests, self._requests[i % len(self._requests)], key, partition=partition)


def percentiles_ms(job: Job, seconds: float) -> dict[str, float]:
    """Milliseconds from produce() to the answer read, at RATE, without the first second."""
    sent: dict[bytes, float] = {}
    found: list[tuple[float, float]] = []
    done = threading.Event()

    def read() -> None:
        consumer = job.reader()
        while not done.is_set() or len(found) < len(sent):
            message = consumer.poll(0.1)
            if message and not message.error():
                found.append((sent[message.key()], time.perf_counter()))
        consumer.close()

    reader = threading.Thread(target=read)
    reader.start()
    producer = job.requester(0)
    while not found:  # the other side is up
        key = b"first%d" % len(sent)
        sent[key] = time.perf_counter()
        job.request(producer, 0, key)
        producer.flush(10)
        time.sleep(0.1)
    begin = time.perf_counter()
    for i in range(int((seconds + 1) * RATE)):
        while (ahead := begin + i / RATE - time.perf_counter()) > 0:
            time.sleep(ahead)
        key = b"%d" % i
        sent[key] = time.perf_counter()
        job.request(producer, i, key)
        producer.poll(0)
    producer.flush(20)
    done.set()
    reader.join(60)
    took = [(end - start) * 1e3 for start, end in found if start > begin + 1]
    return {f"p{at}": float(np.percentile(took, at)) for at in (50, 99)}


def answers_per_s(job: Job, count: int, *answerer: Any) -> float:
    """Answers a second of requests that lie ready, by timestamps of the first and the last answer."""
    producer = job.requester(20)
    for i in range(count):
        job.request(producer, i, b"%d" % i, i % PARTITIONS)
        if i % 10_000 == 0:
            producer.poll(0)
    producer.flush(60)
    consumer, stamps = job.reader(), []
    ends = [TopicPartition(f"{job.name}.predictions", partition) for partition in range(PARTITIONS)]
    with job.answered(*answerer):  # nothing else takes the machine's time meanwhile
        while sum(consumer.get_watermark_offsets(end, 10)[1] for end in ends) < count:
            time.sleep(0.2)
    while len(stamps) < count:
        stamps += [message.timestamp()[1] for message in consumer.consume(10_000, 1) if not message.error()]
    consumer.close()
    return count / max((max(stamps) - min(stamps)) / 1e3, 1e-3)


def warmed(calls: Any, run: Run) -> Any:
    """The median of the turns; a first turn of the latency warms the broker and does not count."""
    for call in calls.values() if ECHO in calls else ():
        call()
    return in_turns(calls, run)


@bench(
    "prediction",
    {
        (delivery,): [
            Line(f"latency p99, {delivery}", "predict:p99", f"{ECHO}:p99", 1.0, inverse=True, unit="ms"),
            Line(f"latency p50, {delivery}", "predict:p50", f"{ECHO}:p50", inverse=True, unit="ms"),
        ]
        for delivery in ("at_least_once", "exactly_once")
    }
    | {(): [Line("throughput, at_least_once", "predict", LOOP, 5.0)]},
    warmed, "requests/s", {"seconds": 3.0}, seconds=15.0, turns=3,
)  # fmt: skip
def prediction(run: Run, delivery: str = "") -> Sides:
    """Request to answer at 1,000/s against a loop without a model; answers a second against a loop with NumPy."""
    kafka, seconds = run.kafka, run.seconds / run.turns

    def ours() -> dict[str, float]:
        job = Job(kafka)
        with job.answered(*job.ours(delivery)):
            return percentiles_ms(job, seconds)

    def echo() -> dict[str, float]:
        job = Job(kafka)
        with job.answered(python_echo, job.name, kafka, delivery == "exactly_once"):
            return percentiles_ms(job, seconds)

    def ours_per_s() -> float:
        job = Job(kafka)
        return answers_per_s(job, int(300_000 * seconds), *job.ours("at_least_once"))

    def loop_per_s() -> float:
        job = Job(kafka)
        its = (job.name, kafka, job.served.parameters(1), job.digest)
        return answers_per_s(job, int(80_000 * seconds), python_predict, *its)

    return {"predict": ours, ECHO: echo} if delivery else {"predict": ours_per_s, LOOP: loop_per_s}


MANY, OFFERED = 256, 500
JOB_COLUMNS = """
"x{0..27}" = { kind = "number" }
y = { role = "label" }
"""
CONNECTIONS = 16
RIVAL = f"""
import numpy as np
from fastapi import FastAPI
from pydantic import create_model
from sklearn.linear_model import LogisticRegression

Row = create_model("Row", **{{f"x{{i}}": (float, ...) for i in range({NUMBERS})}})
random = np.random.default_rng(0)
x = random.standard_normal((1000, {NUMBERS}))
model = LogisticRegression().fit(x, x[:, 0] > 0)
app = FastAPI()

@app.post("/one")
async def one(row: Row):
    return {{"prediction": float(model.predict_proba(np.array([list(row.model_dump().values())]))[0, 1])}}

@app.post("/many")
async def many(rows: list[Row]):
    values = model.predict_proba(np.array([list(row.model_dump().values()) for row in rows]))[:, 1]
    return {{"predictions": [{{"prediction": value}} for value in values.tolist()]}}
"""
FASTAPI = "FastAPI, scikit-learn"
Paths = dict[int, str]


def body_of(rows: int) -> bytes:
    random = np.random.default_rng(rows).standard_normal((rows, NUMBERS)).round(4)
    objects = [dict(zip(COLUMNS, row.tolist(), strict=False)) for row in random]
    return json.dumps(objects[0] if rows == 1 else objects).encode()


class Server:
    """A process that serves, and its port."""

    def __init__(self, process: subprocess.Popen[Any], url: str) -> None:
        self.url, self.port, self.process = url, urlsplit(url).port, process
        self._process = psutil.Process(process.pid)

    def cpu_s(self) -> float:
        times = self._process.cpu_times()
        return float(times.user + times.system)

    def listens(self) -> bool:
        assert self.process.poll() is None, "the server has ended"
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0


@contextmanager
def running(command: list[str], port: int = 0, **options: Any) -> Iterator[Server]:
    """A running server. Without a port the first line of the command's output gives it."""
    out = subprocess.DEVNULL if port else subprocess.PIPE
    with subprocess.Popen(command, stdout=out, text=True, **options) as process:
        try:
            line = {"port": port} if port else json.loads(process.stdout.readline())
            server = Server(process, line.get("url") or f"http://127.0.0.1:{line['port']}/")
            wait_for(server.listens)
            yield server
        finally:
            process.kill()  # a browser may keep a connection


def our_server(command: str, *arguments: str, **options: Any) -> Any:
    """A running command of ours that serves."""
    return running([STREAMTRAIN, command, *arguments, "--port", "0", "--json"], **options)


def rival_server(*command: str, **options: Any) -> Any:
    """A rival in Python; `PORT` in its command stands for a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return running([sys.executable, *(str(port) if each == "PORT" else each for each in command)], port, **options)


class Connection:
    """One connection over which requests of so many rows are sent."""

    def __init__(self, server: Server, path: str, rows: int) -> None:
        body = body_of(rows)
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        self._request = head.encode() + b"content-length: %d\r\n\r\n" % len(body) + body
        self._socket = socket.create_connection(("127.0.0.1", server.port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self) -> bytes:
        """A whole answer."""
        self._socket.sendall(self._request)
        found = b""
        while (end := found.find(b"\r\n\r\n")) < 0:
            found += self._received()
        size = int(found[:end].lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        while len(found) < end + 4 + size:
            found += self._received()
        return found

    def _received(self) -> bytes:
        found = self._socket.recv(1 << 20)
        assert found, "the server has ended the connection"
        return found


def load(server: Server, path: str, rows: int, seconds: float, folder: Path) -> dict[str, float]:
    """Requests a second of the server's processor time, for the load takes a core as well; and by the clock."""
    before = server.cpu_s()
    take = by_wrk if shutil.which("wrk") else by_threads
    requests = take(server, path, rows, seconds, folder)
    return {"cpu": requests / max(server.cpu_s() - before, 0.01), "clock": requests / seconds}


def by_wrk(server: Server, path: str, rows: int, seconds: float, folder: Path) -> int:
    script = folder / "ask.lua"
    script.write_text(
        f"wrk.method = 'POST'\nwrk.body = [==[{body_of(rows).decode()}]==]\n"
        "wrk.headers['Content-Type'] = 'application/json'\n"
        "done = function(s) io.write('counted ' .. s.requests .. ' ' .. s.errors.status .. '\\n') end\n"
    )
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(seconds))}s", "-s", str(script),
               f"http://127.0.0.1:{server.port}{path}"]  # fmt: skip
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    _, requests, wrong = next(line for line in out.splitlines() if line.startswith("counted")).split()
    assert int(wrong) == 0, out
    return int(requests)


def by_threads(server: Server, path: str, rows: int, seconds: float, folder: Path) -> int:
    counts = [0] * 4
    until = time.monotonic() + seconds

    def work(at: int) -> None:
        connection = Connection(server, path, rows)
        while time.monotonic() < until:
            assert connection.ask().startswith(b"HTTP/1.1 200")
            counts[at] += 1

    with ThreadPoolExecutor(len(counts)) as pool:
        list(pool.map(work, range(len(counts))))
    return sum(counts)


def p99_ms(server: Server, path: str, seconds: float) -> float:
    """Milliseconds from the time when each request was due to its answer, over connections that take turns."""
    found: list[float] = []
    begin = time.perf_counter() + 0.1

    def work(at: int) -> None:
        connection = Connection(server, path, 1)
        for i in range(at, int(seconds * OFFERED), 4):
            due = begin + i / OFFERED
            while (ahead := due - time.perf_counter()) > 0:
                time.sleep(ahead)
            connection.ask()
            found.append((time.perf_counter() - due) * 1e3)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    return float(np.percentile(found, 99))


def medians_and_least(calls: Any, run: Run) -> Any:
    """The median of loads in turns, the least p99: other load on the machine only adds."""
    loads = {name: call for name, call in calls.items() if "p99" not in name}
    return {**in_turns(loads, run), **in_turns({name: calls[name] for name in calls if name not in loads}, run, min)}


@bench(
    "serve",
    [
        Line("1 row a request", "1 row:cpu", f"{FASTAPI}, 1 row:cpu", 3.0),
        Line("1 row a request, by the clock", "1 row:clock", f"{FASTAPI}, 1 row:clock", unit="requests/s"),
        Line("256 rows a request", "256 rows:cpu", f"{FASTAPI}, 256 rows:cpu", 10.0),
        Line("256 rows a request, by the clock", "256 rows:clock", f"{FASTAPI}, 256 rows:clock", unit="requests/s"),
        Line(f"p99 at {OFFERED}/s", "p99", f"{FASTAPI}, p99", 10.0, LIMIT, inverse=True, unit="ms"),
    ],
    medians_and_least, "requests/CPU s", seconds=30.0, turns=3,
)  # fmt: skip
def serve(run: Run) -> Sides:
    """Predictions over HTTP against FastAPI with scikit-learn. The load is wrk's, or threads' where it is not
    installed."""
    folder, kafka, name = run.folder, run.kafka, fresh_name()
    ServedModel(kafka, name, COLUMNS).put()
    job = folder / f"{name}.toml"
    job.write_text(job_text(kafka, name=name, records=f"{name}.records", columns=JOB_COLUMNS))
    (folder / "rival.py").write_text(RIVAL)
    log = run.stack.enter_context((folder / "access.log").open("w"))
    mine = run.stack.enter_context(our_server("serve", str(job), stderr=log))
    quiet = ("--log-level", "error", "--no-access-log")
    rival = run.stack.enter_context(rival_server("-m", "uvicorn", "rival:app", "--port", "PORT", *quiet, cwd=folder))
    path = f"/predict/{name}"
    ways: list[tuple[str, Server, Paths]] = [
        ("", mine, {1: path, MANY: path}), (f"{FASTAPI}, ", rival, {1: "/one", MANY: "/many"})
    ]  # fmt: skip
    each_s, sides = run.seconds / 6, dict[str, Any]()
    for side, server, paths in ways:
        wait_for(lambda server=server, path=paths[1]: Connection(server, path, 1).ask().startswith(b"HTTP/1.1 200"))
        for rows, what in ((1, "1 row"), (MANY, "256 rows")):
            sides[f"{side}{what}"] = lambda server=server, paths=paths, rows=rows: load(
                server, paths[rows], rows, each_s, folder
            )
        sides[f"{side}p99"] = lambda server=server, paths=paths: p99_ms(server, paths[1], max(2.0, each_s))
    return sides
