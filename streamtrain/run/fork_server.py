"""Starts a run's processes as forks of a copy of the command, in which what they import is loaded already.

The copy is made while the command has one thread (a copy of a process with more may wait for a lock for ever: fork(2)),
does nothing but fork, and ends with the command. What it starts is the command's own child: it forks twice, and the
command is given what that orphans.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import subprocess
import sys
import time
from typing import NoReturn, TextIO

from streamtrain.build import build_digest
from streamtrain.compute import backends, ops
from streamtrain.interruption import uninterrupted
from streamtrain.log import get_logger
from streamtrain.run import roles
from streamtrain.run.entry import run_to_end
from streamtrain.run.process_settings import adopt_orphans, die_with_parent, show_as

NAME = "fork server"  # as `ps -o comm` shows it
_ANSWER_S = 30.0
_LOOK_S = 0.002
log = get_logger(__name__)


class ForkServer:
    """The copy, as the command sees it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    @classmethod
    def start(cls, without: str) -> ForkServer | None:
        """`without`: a process that this run has not. None where this process has more than one thread."""
        if len(os.listdir("/proc/self/task")) > 1:
            return None
        ours, its = socket.socketpair()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # who was started with it ignored hears of no child's end
        load_all(without)
        parent = os.getpid()
        with uninterrupted():
            if os.fork() == 0:
                try:
                    ours.close()
                    _serve(its, parent)
                finally:
                    os._exit(1)
        its.close()
        adopt_orphans()
        ours.settimeout(_ANSWER_S)
        return cls(ours)

    def spawn(self, stdin: int, stdout: int, arena: int) -> int:
        """The number of a new process that runs what the first line of `stdin` says; OSError where there is none."""
        socket.send_fds(self._connection, [b"+"], [stdin, stdout, arena])
        found = int.from_bytes(self._connection.recv(8), "little")
        if found == 0:
            raise ConnectionError("the fork server has ended, or could not fork")
        return found


def load_all(without: str) -> None:
    """Loads what a trainer's processes need, but one, while there is one process: each page written later is one more
    of a copy."""
    ops.load()
    for registry in (roles.REGISTRY, backends.REGISTRY):
        for name in registry.names():
            with contextlib.suppress(Exception):  # the process that needs it says why
                if name not in (without, "predictor"):
                    registry.get(name)
    build_digest()  # read from some hundred files, once
    gc.freeze()  # a collection would write to pages that are shared


class ForkedProcess:
    """A child that was started by a ForkServer: what is used of a subprocess.Popen."""

    def __init__(self, server: ForkServer, arena: int, heard: bool) -> None:
        """OSError where the server starts none."""
        its_input, stdin = os.pipe()
        stdout, its_output = os.pipe() if heard else (None, os.open(os.devnull, os.O_WRONLY))
        self.stdin: TextIO = open(stdin, "w")  # noqa: SIM115
        self.stdout: TextIO | None = None if stdout is None else open(stdout)  # noqa: SIM115
        self.returncode: int | None = None
        try:
            self.pid = server.spawn(its_input, its_output, arena)
        except OSError:
            self.stdin.close()
            if self.stdout is not None:
                self.stdout.close()
            raise
        finally:
            os.close(its_input)
            os.close(its_output)

    def poll(self) -> int | None:
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""
        until = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if until is not None and time.monotonic() >= until:
                raise subprocess.TimeoutExpired(NAME, timeout or 0.0)
            time.sleep(_LOOK_S)
        return code

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def _serve(connection: socket.socket, parent: int) -> NoReturn:
    """In the copy: forks for each request until the command is gone."""
    os.setpgid(0, 0)  # a Ctrl-C of the terminal is the command's alone
    for ignored in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)
    die_with_parent(parent)
    show_as(NAME)
    sys.stdin, sys.stdout = open(os.devnull), open(os.devnull, "w")  # noqa: SIM115
    os.dup2(sys.stdin.fileno(), 0)  # what the command's were may have closed it
    os.dup2(sys.stdout.fileno(), 1)
    while True:
        request, descriptors, *_ = socket.recv_fds(connection, 1, 3)
        if not request:
            os._exit(0)
        connection.sendall(_fork_twice(connection, parent, descriptors).to_bytes(8, "little"))
        for descriptor in descriptors:
            os.close(descriptor)


def _fork_twice(connection: socket.socket, parent: int, descriptors: list[int]) -> int:
    """The number of the second, when the first has ended and it is the command's child; 0 where it failed."""
    reader, writer = os.pipe()
    try:
        first = os.fork()
    except OSError:
        first = -1
    if first == 0:
        try:
            own = os.getpid()
            second = os.fork()
            if second == 0:
                connection.close()
                os.close(reader)
                os.close(writer)
                _become(own, *descriptors)
            os.write(writer, second.to_bytes(8, "little"))
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writer)
    if first > 0:
        os.waitpid(first, 0)
    with open(reader, "rb") as answer:
        return int.from_bytes(answer.read(), "little")


def _become(orphaned_by: int, stdin: int, stdout: int, arena: int) -> NoReturn:
    """A process of the run, from here to its end."""
    while os.getppid() == orphaned_by:
        time.sleep(_LOOK_S / 10)
    os.setpgid(0, 0)
    for given, standard in ((stdin, 0), (stdout, 1)):
        os.dup2(given, standard)
        os.close(given)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    try:
        run_to_end(arena)
    except Exception:
        log.exception("unexpected error")
    os._exit(1)
