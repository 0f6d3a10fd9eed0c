"""A connection's bounds, on the protocol that a server's are of: time is given to it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from streamtrain.serving.config import HEAD_S, STALLED_S
from streamtrain.serving.server import protocol

uvicorn = pytest.importorskip("uvicorn")


class Transport(asyncio.Transport):
    """Holds what was written, which nobody takes as long as `stalled`."""

    def __init__(self, stalled: bool) -> None:
        super().__init__()
        self.stalled, self.ended, self.written = stalled, "", b""

    def write(self, data: Any) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return len(self.written) if self.stalled else 0

    def close(self) -> None:
        self.ended = "closed"

    def abort(self) -> None:
        self.ended = "aborted"

    def is_closing(self) -> bool:
        return bool(self.ended)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default


def connection(transport: Transport) -> Any:
    async def never(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.Event().wait()

    settings = uvicorn.Config(never, log_config=None)
    settings.load()
    made = protocol()(settings, uvicorn.server.ServerState(), {}, asyncio.get_running_loop())
    made.connection_made(transport)
    return made


def in_a_loop(work: Any) -> None:
    async def run() -> None:
        work()

    asyncio.run(run())


def test_an_answer_that_nobody_takes_is_let_go() -> None:
    def work() -> None:
        transport = Transport(stalled=True)
        made = connection(transport)
        made.data_received(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        transport.write(b"an answer")
        made.look(1000.0)
        made.look(1000.0 + STALLED_S)
        assert transport.ended == ""
        transport.stalled = False
        made.look(1001.0 + STALLED_S)
        transport.stalled = True
        made.look(1002.0 + STALLED_S)  # it begins anew
        assert transport.ended == ""
        made.look(1003.0 + 2 * STALLED_S)
        assert transport.ended == "aborted"

    in_a_loop(work)


def test_a_head_has_its_time_and_an_idle_connection_none_of_it() -> None:
    def work() -> None:
        transport = Transport(stalled=False)
        made = connection(transport)
        begun_s = made.waits_since_s
        made.look(begun_s + HEAD_S)
        assert transport.ended == ""
        made.data_received(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        made.look(begun_s + 100 * HEAD_S)  # its answer takes as long as it takes
        assert transport.ended == "" and made.waits_since_s is None
        made.data_received(b"GET")
        made.look(made.waits_since_s + HEAD_S + 1)
        assert transport.ended == "closed"

    in_a_loop(work)
