"""A program that follows a model while Kafka is away is not flooded: librdkafka's repeats are held back."""

from __future__ import annotations

import logging
import socket
import threading

import pytest

from streamtrain.clients.live_model import LiveModel

TRIES = 60
LINES = 12  # each wording once in ten seconds, and what LiveModel says itself


def test_hundreds_of_lost_connections_are_a_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    tried = threading.Semaphore(0)

    def refuse(server: socket.socket) -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            connection.close()
            tried.release()

    with socket.create_server(("127.0.0.1", 0)) as server, caplog.at_level(logging.INFO):
        threading.Thread(target=refuse, args=(server,), daemon=True).start()
        quick = {"reconnect.backoff.ms": 5, "reconnect.backoff.max.ms": 5}
        with LiveModel("job", f"127.0.0.1:{server.getsockname()[1]}", kafka=quick):
            for _ in range(TRIES):
                tried.acquire()
        server.shutdown(socket.SHUT_RDWR)
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(lines) <= LINES, lines
