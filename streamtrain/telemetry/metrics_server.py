"""Serves a process's metrics and readiness over HTTP, and asks Kafka now and then whether it answers.

Runs in the command's own process, in threads of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from streamtrain.errors import KafkaUnreachable, StreamtrainError, UserMistake
from streamtrain.telemetry.meters import Event, Meters

ASK_EVERY_S = 2.0
LOOK_S = 0.05  # how long a server that is to end may not notice


class Telemetry:
    """Serves `meters` on `port` (0: one that is free, see `port`) of `host` while it is open; call it with each event.

    `host` "" is every address of the machine. `lag` asks Kafka how far behind the process is, by partition. Raises
    UserMistake where the port is taken or the host is none of this machine's.
    """

    def __init__(
        self, port: int, meters: Meters, lag: Callable[[], Mapping[int, int]] | None = None, host: str = "127.0.0.1"
    ) -> None:
        self._meters = meters
        self._lag = lag
        self._closing = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                _answer(self, meters)

            do_HEAD = do_GET

            def log_message(self, format: str, *args: Any) -> None:
                pass  # a scrape is no news

        try:
            self._server = ThreadingHTTPServer((host, port), Handler)
        except OSError as error:
            raise UserMistake(
                f"--metrics-port {port} of --metrics-host {host}: {error.strerror}; give another port, or 0 for one "
                "that is free, and an address of this machine"
            ) from None
        self.port = int(self._server.server_address[1])

    def __call__(self, event: Event) -> None:
        self._meters(event)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(LOOK_S,), name="metrics", daemon=True).start()
        if self._lag is not None:
            threading.Thread(target=self._ask, args=(self._lag,), name="lag", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def _ask(self, lag: Callable[[], Mapping[int, int]]) -> None:
        while not self._closing.wait(ASK_EVERY_S):
            try:
                self._meters.behind(lag())
            except KafkaUnreachable:  # the last lag stays
                self._meters.kafka_answers = False
                continue
            except StreamtrainError:  # an answer, though no lag: no such topic any more
                pass
            self._meters.kafka_answers = True


def _answer(request: BaseHTTPRequestHandler, meters: Meters) -> None:
    code, kind, body = 404, "text/plain", b"expected /metrics or /ready\n"
    if request.path == "/metrics":
        code, kind, body = 200, CONTENT_TYPE_LATEST, generate_latest(meters.registry)
    elif request.path == "/ready":
        code, body = (200, b"ready\n") if meters.ready else (503, b"not ready\n")
    request.send_response(code)
    request.send_header("Content-Type", kind)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    if request.command != "HEAD":
        request.wfile.write(body)
