"""Commands that serve HTTP, and rivals that do, as processes that run as long as a bench needs them."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import psutil
from waiting import wait_for

from tests.bench.bed import STREAMTRAIN


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


def ours(command: str, *arguments: str, **options: Any) -> Any:
    return running([STREAMTRAIN, command, *arguments, "--port", "0", "--json"], **options)


def program(*command: str, **options: Any) -> Any:
    """A rival in Python; `PORT` in its command stands for a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return running([sys.executable, *(str(port) if each == "PORT" else each for each in command)], port, **options)
