"""`streamtrain serve` as a user starts it, with the jobs' files, and clients that do what clients should not."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from waiting import wait_for

from tests.e2e import commands
from tests.e2e.commands import Command

JOB = """
name = "{name}"
[kafka]
bootstrap.servers = "{bootstrap}"
[columns]
dep_delay = {{ standardize = true, missing = 0 }}
distance = {{ standardize = true }}
hour = {{}}
carrier = {{ kind = "category", buckets = 64, embed = 4 }}
origin = {{ kind = "category", buckets = 16, embed = 2, missing = "" }}
late = {{ role = "label", missing = "skip" }}
[model]
layers = [ {{ dense = 8, activation = "relu" }} ]
"""
OF_A_PROCESS = re.compile(r'^streamtrain_process_(\w+)\{process="([^"]+)"\} (\S+)$', re.MULTILINE)
ROW: dict[str, Any] = {"dep_delay": 3.5, "distance": 7, "hour": 2, "carrier": "UA", "origin": "JFK"}


def job_file(folder: Path, name: str, bootstrap: str) -> Path:
    """Writes the job of small_model.FLIGHTS."""
    path = folder / f"{name}.toml"
    path.write_text(JOB.format(name=name, bootstrap=bootstrap))
    return path


class Served:
    """A server that runs."""

    def __init__(self, process: Command | subprocess.Popen[str], event: dict[str, Any], log: Path) -> None:
        self.process, self.event, self.log = process, event, log
        self.port: int = event["port"]
        self.client = httpx.Client(base_url=event["url"], timeout=60)

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.client.get(path, **more)

    def post(self, path: str, body: Any, **more: Any) -> httpx.Response:
        """`body`: bytes, or what is sent as JSON."""
        given = {"content": body} if isinstance(body, bytes) else {"json": body}
        return self.client.post(path, **given, **more)

    def wait_ready(self) -> None:
        wait_for(lambda: self.get("/v2/health/ready").status_code == 200)

    def connect(self) -> socket.socket:
        """A client of bytes."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def figure(self, series: str) -> float:
        """The first that begins so; -1 where there is none."""
        lines = self.get("/metrics").text.splitlines()
        return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(series)), -1.0)

    def taken(self) -> dict[str, dict[str, float]]:
        """The figures of each process, as the one that gets a new connection reports them."""
        found: dict[str, dict[str, float]] = {}
        for what, process, value in OF_A_PROCESS.findall(httpx.get(f"{self.event['url']}/metrics", timeout=60).text):
            found.setdefault(process, {})[what] = float(value)
        return found

    def stop(self) -> int:
        """SIGTERM, and how it ended."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def lines(self) -> list[dict[str, Any]]:
        """The JSON lines of its log."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]


@contextmanager
def serving(*jobs: Path, options: tuple[str, ...] = ()) -> Iterator[Served]:
    """`streamtrain serve` of these jobs at a free port."""
    log = jobs[0].with_suffix(f".{time.monotonic_ns()}.log")
    with log.open("w") as errors:
        given = ["serve", *map(str, jobs), "--port", "0", "--json", "--log-format", "json", *options]
        process = commands.start(given, errors, {})
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, log.read_text()
        served = Served(process, json.loads(line), log)
        yield served
        served.client.close()
    finally:
        process.kill()
        process.wait()


def answered(connection: socket.socket) -> bytes:
    """Receives all bytes until the server ends the connection."""
    found = b""
    while True:
        try:
            more = connection.recv(1 << 16)
        except ConnectionResetError:
            return found
        if not more:
            return found
        found += more
