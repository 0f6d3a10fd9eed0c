"""Predictions over HTTP against a plain FastAPI endpoint with scikit-learn: one row and 256 a request; p99 at 500/s.

Both are logistic regression over 28 numbers, and uvicorn with uvloop and httptools in one process; the rival writes no
access log, ours does.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import psutil
from served_model import ServedModel
from waiting import wait_for

from tests.bench.bed import STREAMTRAIN, fresh_name, job_text
from tests.bench.harness import LIMIT, Line, Run, Sides, bench, in_turns
from tests.bench.live_model import COLUMNS, NUMBERS

MANY, RATE = 256, 500
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
        head = f"POST {path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
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
    asked = take(server, path, rows, seconds, folder)
    return {"cpu": asked / max(server.cpu_s() - before, 0.01), "clock": asked / seconds}


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
        for i in range(at, int(seconds * RATE), 4):
            due = begin + i / RATE
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
        Line(f"p99 at {RATE}/s", "p99", f"{FASTAPI}, p99", 10.0, LIMIT, inverse=True, unit="ms"),
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
