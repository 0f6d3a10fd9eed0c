"""Predictions over HTTP against a plain FastAPI endpoint with scikit-learn: one row and 256 a request; p99 at 500/s.

Both are logistic regression over 28 numbers, and uvicorn with uvloop and httptools in one process; the rival writes no
access log, ours does. Ratios are of the server's processor time for a request, for the load takes a core as well;
`wall` is that of requests a second, under wrk where it is installed, else under threads of this process.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

import numpy as np
import psutil
from served_model import ServedModel

from streamtrain.broker import start_broker

FIGURES = 3  # lines of a whole run
SMOKE = ["--seconds", "1", "--turns", "1"]

NUMBERS = 28
COLUMNS = {f"x{i}": {"kind": "number"} for i in range(NUMBERS)} | {"y": {"role": "label"}}
CONNECTIONS = 16
MANY = 256
BARS = {1: 3.0, MANY: 10.0}
RATE, P99_BAR_MS = 500, 10.0
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
JOB = """
name = "{name}"
[kafka]
bootstrap.servers = "{bootstrap}"
[columns]
"x{{0..27}}" = {{ kind = "number" }}
y = {{ role = "label" }}
[model]
layers = []
"""


class Server:
    """A server that runs, and where its predictions are."""

    def __init__(self, process: subprocess.Popen[str], port: int, paths: dict[int, str]) -> None:
        self.port, self.paths = port, paths
        self._process = psutil.Process(process.pid)

    def cpu_s(self) -> float:
        times = self._process.cpu_times()
        return float(times.user + times.system)

    def request(self, rows: int) -> bytes:
        random = np.random.default_rng(rows).standard_normal((rows, NUMBERS)).round(4)
        given = [dict(zip(COLUMNS, row.tolist(), strict=False)) for row in random]
        return json.dumps(given[0] if rows == 1 else given).encode()

    def asked(self, rows: int) -> bytes:
        body = self.request(rows)
        head = f"POST {self.paths[rows]} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
        return head.encode() + b"content-length: %d\r\n\r\n" % len(body) + body


@contextmanager
def ours(bootstrap: str, folder: Path) -> Iterator[Server]:
    name = f"bench-{uuid.uuid4().hex[:8]}"
    ServedModel(bootstrap, name, COLUMNS).put()
    path = folder / f"{name}.toml"
    path.write_text(JOB.format(name=name, bootstrap=bootstrap))
    command = [Path(sys.executable).parent / "streamtrain", "serve", path, "--port", "0", "--json"]
    with (folder / "access.log").open("w") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert process.stdout is not None
        port = json.loads(process.stdout.readline())["port"]
        yield from running(Server(process, port, {1: f"/predict/{name}", MANY: f"/predict/{name}"}), process)


@contextmanager
def rival(folder: Path) -> Iterator[Server]:
    (folder / "rival.py").write_text(RIVAL)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "rival:app", "--port", str(port), "--log-level", "error",
               "--no-access-log"]  # fmt: skip
    process = subprocess.Popen(command, cwd=folder, text=True)
    yield from running(Server(process, port, {1: "/one", MANY: "/many"}), process)


def running(server: Server, process: subprocess.Popen[str]) -> Iterator[Server]:
    """Yields it when it predicts."""
    try:
        until = time.monotonic() + 120
        while not predicts(server):
            assert time.monotonic() < until and process.poll() is None, "the server does not predict"
            time.sleep(0.1)
        yield server
    finally:
        process.terminate()
        process.wait(60)


def predicts(server: Server) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            return ask(connection, server.asked(1)).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def ask(connection: socket.socket, request: bytes) -> bytes:
    """A whole answer."""
    connection.sendall(request)
    found = b""
    while (end := found.find(b"\r\n\r\n")) < 0:
        found += received(connection)
    size = int(found[:end].lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while len(found) < end + 4 + size:
        found += received(connection)
    return found


def received(connection: socket.socket) -> bytes:
    found = connection.recv(1 << 20)
    if not found:
        raise ConnectionError("the server has ended the connection")
    return found


def load(server: Server, rows: int, seconds: float, folder: Path) -> tuple[float, float]:
    """(requests a second, requests a second of processor time)."""
    before = server.cpu_s()
    asked = by_wrk(server, rows, seconds, folder) if shutil.which("wrk") else by_threads(server, rows, seconds)
    return asked / seconds, asked / max(server.cpu_s() - before, 0.01)


def by_wrk(server: Server, rows: int, seconds: float, folder: Path) -> int:
    script = folder / "ask.lua"
    body = server.request(rows).decode()
    script.write_text(
        f"wrk.method = 'POST'\nwrk.body = [==[{body}]==]\nwrk.headers['Content-Type'] = 'application/json'\n"
        "done = function(s) io.write('counted ' .. s.requests .. ' ' .. s.errors.status .. '\\n') end\n"
    )
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds:.0f}s", "-s", str(script),
               f"http://127.0.0.1:{server.port}{server.paths[rows]}"]  # fmt: skip
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    _, requests, wrong = next(line for line in out.splitlines() if line.startswith("counted")).split()
    assert int(wrong) == 0, out
    return int(requests)


def by_threads(server: Server, rows: int, seconds: float) -> int:
    counts = [0] * 4
    until = time.monotonic() + seconds

    def work(at: int) -> None:
        request = server.asked(rows)
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            while time.monotonic() < until:
                assert ask(connection, request).startswith(b"HTTP/1.1 200")
                counts[at] += 1

    threads = [threading.Thread(target=work, args=(at,)) for at in range(len(counts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts)


def at_a_rate(server: Server, seconds: float) -> np.ndarray[Any, Any]:
    """Milliseconds from when each request was due to its answer, over connections that take turns."""
    found: list[float] = []
    threads = 4
    begin = time.perf_counter() + 0.1

    def work(at: int) -> None:
        request = server.asked(1)
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for i in range(at, int(seconds * RATE), threads):
                due = begin + i / RATE
                while (ahead := due - time.perf_counter()) > 0:
                    time.sleep(ahead)
                ask(connection, request)
                found.append((time.perf_counter() - due) * 1e3)

    running = [threading.Thread(target=work, args=(at,)) for at in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    bootstrap = os.environ.get("STREAMTRAIN_TEST_BOOTSTRAP")
    with tempfile.TemporaryDirectory() as folder:
        if bootstrap:
            measure(bootstrap, Path(folder), given.seconds, given.turns)
        else:
            with start_broker() as broker:
                measure(broker.bootstrap, Path(folder), given.seconds, given.turns)


def measure(bootstrap: str, folder: Path, seconds: float, turns: int) -> None:
    with ours(bootstrap, folder) as mine, rival(folder) as theirs:
        for rows in (1, MANY):
            found = [[load(side, rows, seconds, folder) for side in (mine, theirs)] for _ in range(turns)]
            wall, cpu = np.median(np.array(found).transpose(2, 0, 1), axis=1)
            name = f"serve_{rows}_rows_a_request"
            figure = {"bench": name, "ours": cpu[0], "rival": cpu[1], "ratio": cpu[0] / cpu[1]}
            more = {"bar": BARS[rows], "unit": "requests/CPU s", "wall": wall[0] / wall[1], "per_s": wall[0]}
            print(json.dumps({**figure, **more}), flush=True)
        # the least of the turns: what else the machine does only adds
        p99 = [min(float(np.percentile(at_a_rate(side, max(2.0, seconds)), 99)) for _ in range(turns))
               for side in (mine, theirs)]  # fmt: skip
        figure = {"bench": f"serve_p99_at_{RATE}", "ours": p99[0], "rival": p99[1], "ratio": p99[1] / p99[0]}
        print(json.dumps({**figure, "bar": P99_BAR_MS, "unit": "ms"}))


if __name__ == "__main__":
    main()
