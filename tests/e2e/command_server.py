"""Loads the command line once and runs each command in a fork: the process that tests/e2e/commands.py starts.

A request is four bytes of length with three descriptors (standard output, standard error, where its number and its end
are told) and a document in JSON: arguments, environment, folder.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
from typing import Any

from streamtrain.build import build_digest
from streamtrain.cli import main
from streamtrain.cli.commands import REGISTRY
from streamtrain.compute import ops
from streamtrain.run import roles


def serve(connection: socket.socket) -> None:
    """Returns in the process of a command, which is to run it; ends with the tests."""
    for registry in (REGISTRY, roles.REGISTRY):
        for name in registry.names():
            registry.get(name)
    ops.load()
    build_digest()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks for those that wait
    while True:
        head, descriptors, *_ = socket.recv_fds(connection, 4, 3)
        if not head:
            os._exit(0)
        document = json.loads(_exactly(connection, int.from_bytes(head, "little")))
        if os.fork() == 0:
            connection.close()
            return run_apart(document, *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _exactly(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        found += connection.recv(size - len(found))
    return found


def run_apart(document: dict[str, Any], stdout: int, stderr: int, status_fd: int) -> None:
    """Returns in one more process; this one waits for it and tells how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    command = os.fork()
    if command:
        os.close(stdout)
        os.close(stderr)
        os.write(status_fd, command.to_bytes(8, "little"))
        _, how = os.waitpid(command, 0)
        os.write(status_fd, os.waitstatus_to_exitcode(how).to_bytes(4, "little", signed=True))
        os._exit(0)
    null = os.open(os.devnull, os.O_RDONLY)
    for given, standard in ((null, 0), (stdout, 1), (stderr, 2)):
        os.dup2(given, standard)
        os.close(given)
    os.close(status_fd)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(document["environment"])
    os.chdir(document["folder"])
    sys.argv = ["streamtrain", *document["arguments"]]


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
    main()  # and the interpreter ends as ever
