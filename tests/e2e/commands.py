"""Commands as a user gives them, started from a process that has loaded the command line already.

A start is 0.9 s of imports otherwise, a third of what a test takes. What needs another interpreter (an environment that
is read before a command is: a library in the place of another, another clock) is started as ever.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import IO

from streamtrain.background import in_background
from streamtrain.run.environment import ENVIRONMENT

STREAMTRAIN = [str(Path(sys.executable).parent / "streamtrain")]
READ_BY_COMMANDS = {"STREAMTRAIN_FAILPOINTS", "STREAMTRAIN_ISA"}  # of an environment, as they run
NOTHING_MORE: Mapping[str, str] = {}
_LOOK_S, _LONG_S = 0.005, 300.0


@cache
def _server() -> socket.socket:
    ours, its = socket.socketpair()
    with its:
        subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).with_name("command_server.py")), str(its.fileno())],
            pass_fds=(its.fileno(),), env={**ENVIRONMENT, **os.environ}, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    return ours


class Command:
    """A running command, with those parts of a subprocess.Popen that tests use. Its standard output is a pipe."""

    def __init__(self, arguments: list[str], environment: dict[str, str], stderr: IO[str]) -> None:
        sys.audit("streamtrain.tests.command", arguments[0])
        ours, output = os.pipe()
        self.stdout = open(ours)  # noqa: SIM115
        self._status_fd, status_fd = os.pipe()
        document = json.dumps({"arguments": arguments, "environment": environment, "folder": os.getcwd()}).encode()
        socket.send_fds(_server(), [len(document).to_bytes(4, "little")], [output, stderr.fileno(), status_fd])
        _server().sendall(document)
        os.close(status_fd)
        os.close(output)
        self.pid = int.from_bytes(os.read(self._status_fd, 8), "little")
        assert self.pid, "the process that starts commands has ended"
        os.set_blocking(self._status_fd, False)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            try:
                self.returncode = int.from_bytes(os.read(self._status_fd, 4), "little", signed=True)
                os.close(self._status_fd)
            except BlockingIOError:
                return None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        until = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if until is not None and time.monotonic() > until:
                raise subprocess.TimeoutExpired("streamtrain", timeout or 0.0)
            time.sleep(_LOOK_S)
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, None]:
        """Returns what it still writes to the pipe, up to its end."""
        until = time.monotonic() + timeout if timeout is not None else None
        try:
            text = in_background(self.stdout.read, name="communicate").result(timeout)
        except TimeoutError:
            raise subprocess.TimeoutExpired("streamtrain", timeout or 0.0) from None
        self.stdout.close()
        self.wait(None if until is None else max(0.0, until - time.monotonic()))
        return text, None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


def start(arguments: list[str], errors: IO[str], environment: Mapping[str, str]) -> Command | subprocess.Popen[str]:
    """A command with a pipe as its standard output. `environment` is added to this process's."""
    together = {**os.environ, **environment}
    if environment.keys() <= READ_BY_COMMANDS:
        return Command(arguments, together, errors)
    return subprocess.Popen(
        [*STREAMTRAIN, *arguments], stdout=subprocess.PIPE, stderr=errors, text=True, env=together
    )  # fmt: skip


def run(arguments: list[str], environment: Mapping[str, str] = NOTHING_MORE) -> subprocess.CompletedProcess[str]:
    """A command to its end, which is within five minutes."""
    together = {**os.environ, **environment}
    if not environment.keys() <= READ_BY_COMMANDS:
        return subprocess.run(
            [*STREAMTRAIN, *arguments], capture_output=True, text=True, timeout=_LONG_S, env=together
        )  # fmt: skip
    with tempfile.TemporaryFile("w+") as errors:
        command = Command(arguments, together, errors)
        try:
            out, _ = command.communicate(_LONG_S)
        finally:
            command.kill()
        errors.seek(0)
        return subprocess.CompletedProcess(arguments, command.wait(), out, errors.read())
