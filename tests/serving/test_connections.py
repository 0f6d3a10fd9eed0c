"""Limits of a connection in time, on the protocol of a server's connections, with times that the tests give."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import pytest

from streamtrain.serving.config import HEAD_S, STALLED_S
from streamtrain.serving.server import protocol

uvicorn = pytest.importorskip("uvicorn")


def transport_of(stalled: bool) -> Any:
    """Keeps the bytes written, which nobody takes while it is `stalled`, and how it ended."""
    made, written = Mock(spec=asyncio.Transport, stalled=stalled, ended=""), bytearray()
    made.write.side_effect = written.extend
    made.get_write_buffer_size.side_effect = lambda: len(written) if made.stalled else 0
    made.close.side_effect = lambda: setattr(made, "ended", "closed")
    made.abort.side_effect = lambda: setattr(made, "ended", "aborted")
    made.is_closing.side_effect = lambda: bool(made.ended)
    made.get_extra_info.side_effect = lambda name, default=None: default
    return made


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    with asyncio.Runner() as runner:
        yield runner.get_loop()


def connection(transport: Any, loop: asyncio.AbstractEventLoop) -> Any:
    async def never(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.Event().wait()

    settings = uvicorn.Config(never, log_config=None)
    settings.load()
    made = protocol()(settings, uvicorn.server.ServerState(), {}, loop)
    made.connection_made(transport)
    return made


def test_an_answer_that_nobody_takes_is_let_go(loop: asyncio.AbstractEventLoop) -> None:
    transport = transport_of(stalled=True)
    made = connection(transport, loop)
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


def test_a_head_has_its_time_and_an_idle_connection_none_of_it(loop: asyncio.AbstractEventLoop) -> None:
    transport = transport_of(stalled=False)
    made = connection(transport, loop)
    begun_s = made.waits_since_s
    made.look(begun_s + HEAD_S)
    assert transport.ended == ""
    made.data_received(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    made.look(begun_s + 100 * HEAD_S)  # its answer takes as long as it takes
    assert transport.ended == "" and made.waits_since_s is None
    made.data_received(b"GET")
    made.look(made.waits_since_s + HEAD_S + 1)
    assert transport.ended == "closed"
