"""Workers of fits are forked; and however a `fit` ends, no process, no shared memory and no thread of it stays."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from waiting import wait_for

from streamtrain.fitting import memory_run
from streamtrain.run import process_settings
from streamtrain.run.environment import ENVIRONMENT
from streamtrain.run.fork_server import ForkServer
from streamtrain.run.host import HostOptions
from tests.fitting.example import SERVERS, left

_SERVER = (
    "import socket, sys\n"
    "from streamtrain.run import fork_server\n"
    "fork_server.load_all('')\n"
    "fork_server._serve(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))\n"
)
_PR_SET_CHILD_SUBREAPER = 36


class ForkedWorkers:
    """A fork server for all tests of this process, whose workers have imported all they need: a fresh interpreter costs
    each 0.2 s of CPU. `train` forks itself, which a test run with threads cannot do. `pid` is its own number."""

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
            process_settings.adopt_orphans()
            try:
                yield
            finally:
                process_settings._prctl(_PR_SET_CHILD_SUBREAPER, 0)

    def end(self) -> None:
        self._ours.close()
        self._process.wait(60)


@pytest.fixture(scope="session")
def forked_workers() -> Iterator[ForkedWorkers]:
    found = ForkedWorkers()
    SERVERS.add(found.pid)
    yield found
    found.end()


@pytest.fixture
def own_workers() -> None:
    """Each worker is a fresh interpreter, as in a user's program."""


@pytest.fixture(autouse=True)
def _workers(request: pytest.FixtureRequest) -> Iterator[None]:
    if "own_workers" in request.fixturenames:
        yield
        return
    with request.getfixturevalue("forked_workers").used():
        yield


@pytest.fixture(autouse=True)
def nothing_stays(_workers: None) -> Iterator[None]:
    before = {*left()}  # an arena of another file's test, not collected yet
    yield
    wait_for(lambda: not {*left()} - before)  # a thread ends a little after its work
