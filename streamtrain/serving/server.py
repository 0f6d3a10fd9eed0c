"""One process of a server: its models, its application, and uvicorn, which ends when it is told to."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, nullcontext
from typing import Any

from streamtrain.errors import UserMistake
from streamtrain.kafka import library
from streamtrain.serving.access_log import AccessLog, process_name
from streamtrain.serving.application import Application
from streamtrain.serving.config import DRAIN_S, HEAD_BYTES, HEAD_S, KEEP_ALIVE_S, STALLED_S, Config
from streamtrain.serving.pages import pages
from streamtrain.serving.served_model import HttpModel
from streamtrain.telemetry.serving import ServingRow, ServingTable
from streamtrain.telemetry.tracing import opened as tracing_to

_BACKLOG = 2048
_LONG_HEAD = f"expected a head of at most {HEAD_BYTES} bytes, got more"


def bound(host: str, port: int, shared: bool = False) -> socket.socket:
    """A socket at that address; `shared`: others of this user may listen there too. UserMistake where it is taken."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(address)
    except OSError as error:
        raise UserMistake(
            f"--port {port} of --host {host}: {error.strerror}; give another port, or 0 for one that is free, and an "
            "address of this machine"
        ) from None
    return listener


def serve(
    config: Config, table: ServingTable, process: int | None, listener: socket.socket,
    listens: Callable[[Any], None],
) -> None:
    """Until it is told to end; `listens` gets the server when it takes requests. `process`: its number of several."""
    import uvicorn

    library.load()
    row = table.row(process or 0)
    access = AccessLog(config.log_format, process_name(process)) if config.access_log else None
    with ExitStack() as opened:
        models = {job.name: opened.enter_context(HttpModel(job, config.limits.answer_bytes)) for job in config.jobs}
        tracing = tracing_to(config.traces)
        if tracing is not None:
            opened.callback(tracing.close)
        app = Application(config, models, pages(config.url, models, table), row, access, tracing)
        opened.callback(app.close)
        settings = uvicorn.Config(
            app, http=protocol(), ws="none", lifespan="off", log_config=None, access_log=False, server_header=False,
            proxy_headers=False, backlog=_BACKLOG, timeout_keep_alive=int(KEEP_ALIVE_S),
            timeout_graceful_shutdown=int(DRAIN_S),
        )  # fmt: skip
        server = _server(settings, lambda: _tell(row, models.values(), access), listens)
        try:
            server.run(sockets=[listener])
        finally:
            row.listens(False)
            if access is not None:
                access.flush()


def _tell(row: ServingRow, models: Iterable[HttpModel], access: AccessLog | None) -> None:
    """Some times a second."""
    row.listens(True)
    for model in models:
        scorer = model.scorer
        row.serves(model.job, *((0, 0.0) if scorer is None else (scorer.version, scorer.created_ms / 1000)))
    if access is not None:
        access.flush()


def _server(settings: Any, tell: Callable[[], None], listens: Callable[[Any], None]) -> Any:
    """uvicorn's, which leaves signals to the command, and lets go of clients that do nothing."""
    import uvicorn

    class Server(uvicorn.Server):
        def capture_signals(self) -> Any:
            return nullcontext()

        async def on_tick(self, counter: int) -> bool:
            tell()
            if counter == 0:
                listens(self)
            if counter % 10 == 0:
                now_s = time.monotonic()
                for connection in list(self.server_state.connections):
                    connection.look(now_s)  # type: ignore[union-attr]
            return await super().on_tick(counter)

    return Server(settings)


def protocol() -> Any:
    """uvicorn's for HTTP, with bounds on a request's head and on answers that nobody takes."""
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    class Protocol(HttpToolsProtocol):
        waits_since_s: float | None = None  # a request's head is waited for
        _head_bytes, _too_long = 0, False
        _stalled_since_s: float | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.waits_since_s = time.monotonic()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self.waits_since_s, self._head_bytes = time.monotonic(), 0

        def on_headers_complete(self) -> None:
            self.waits_since_s = None
            if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > HEAD_BYTES:
                self._too_long = True  # and came with one read
                raise ValueError(_LONG_HEAD)
            super().on_headers_complete()

        def send_400_response(self, msg: str) -> None:
            super().send_400_response(_LONG_HEAD if self._too_long else msg)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.waits_since_s is not None and not self.transport.is_closing():
                self._head_bytes += len(data)
                if self._head_bytes > HEAD_BYTES:
                    self.send_400_response(_LONG_HEAD)

        def look(self, now_s: float) -> None:
            """Ends the connection where its client has had its time."""
            waiting = self.transport.get_write_buffer_size() > 0
            self._stalled_since_s = (self._stalled_since_s or now_s) if waiting else None
            if self.waits_since_s is not None and now_s - self.waits_since_s > HEAD_S:
                self.transport.close()
            if self._stalled_since_s is not None and now_s - self._stalled_since_s > STALLED_S:
                self.transport.abort()

    return Protocol
