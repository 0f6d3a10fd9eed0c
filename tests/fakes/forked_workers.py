"""Workers of a `fit` in the tests' own process, forked from a process that has imported all they need.

A fresh interpreter costs each worker 0.2 s of CPU. `train` forks itself, which a test run with threads cannot do.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from streamtrain.fitting import memory_run
from streamtrain.run import process
from streamtrain.run.environment import ENVIRONMENT
from streamtrain.run.fork_server import ForkServer
from streamtrain.run.host import HostOptions

_SERVER = (
    "import socket, sys\n"
    "from streamtrain.run import fork_server\n"
    "fork_server._serve(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))\n"
)
_PR_SET_CHILD_SUBREAPER = 36


class ForkedWorkers:
    """A fork server for all tests of this process. `pid` is its own number."""

    def __init__(self) -> None:
        self._ours, its = socket.socketpair()
        with its:
            command = [sys.executable, "-P", "-c", _SERVER, str(its.fileno()), str(os.getpid())]
            environment = {**ENVIRONMENT, **os.environ}
            self._process = subprocess.Popen(command, pass_fds=[its.fileno()], env=environment)
        self._ours.settimeout(60)
        self.pid = self._process.pid

    @contextmanager
    def used(self) -> Iterator[None]:
        """Lets every `fit` start its workers here. This process adopts them meanwhile, and no other test's orphans."""
        with pytest.MonkeyPatch.context() as patch:
            options = partial(HostOptions, fork_server=ForkServer(self._ours))
            patch.setattr(memory_run, "HostOptions", options)
            process.adopt_orphans()
            try:
                yield
            finally:
                process._prctl(_PR_SET_CHILD_SUBREAPER, 0)

    def end(self) -> None:
        self._ours.close()
        self._process.wait(60)
