"""Several processes that serve at one address: started, started again where one dies, drained at the end.

Each listens by itself (SO_REUSEPORT, socket(7)): the kernel deals out connections. This process holds the port and
serves nothing.
"""

from __future__ import annotations

import os
import signal
import time
from multiprocessing import connection, get_context
from multiprocessing.process import BaseProcess
from typing import Any

from streamtrain.compute.torch import in_process_of_its_own
from streamtrain.errors import CheckFailed, StreamtrainError
from streamtrain.log import configure_logging, get_logger
from streamtrain.run.back_off import BackOff
from streamtrain.run.process_settings import die_with_parent, show_as
from streamtrain.serving.access_log import process_name
from streamtrain.serving.config import DRAIN_S, Config
from streamtrain.serving.server import bound, serve
from streamtrain.telemetry.serving import ServingTable

_LOOK_S = 0.1
_MORE_S = 5.0  # for a process's end beyond its drain
log = get_logger(__name__)


class Processes:
    """`logging`: what configure_logging is told in each."""

    def __init__(self, config: Config, table: ServingTable, logging: dict[str, str]) -> None:
        self._config, self._table, self._logging = config, table, logging
        self._context = get_context("spawn")
        self._running: list[BaseProcess] = []
        self._back_off = BackOff()
        self._started_s: list[float] = []

    def start(self) -> None:
        """All of them."""
        self._started_s = [time.monotonic()] * self._table.processes
        self._running = [self._spawned(number) for number in range(self._table.processes)]

    def look(self) -> None:
        """Waits a moment, or until one ends, and starts another in its place. CheckFailed where that is of no use."""
        connection.wait([process.sentinel for process in self._running], _LOOK_S)
        for number, process in enumerate(self._running):
            if process.exitcode is None:
                continue
            self._table.row(number).listens(False)
            lasted_s = time.monotonic() - self._started_s[number]
            pause_s = self._back_off.pause_s(False, lasted_s, True)
            if pause_s is None:
                raise CheckFailed(f"{process_name(number)}: ended with {process.exitcode} as others had; see its log")
            log.warning("a process ended; another is started", which=process_name(number), code=process.exitcode)
            time.sleep(pause_s)
            self._started_s[number] = time.monotonic()
            self._running[number] = self._spawned(number)

    def drain(self) -> None:
        """Asks them to end when they have answered what they have, and waits for that. CheckFailed where one fails."""
        for process in self._running:
            if process.pid is not None and process.exitcode is None:
                os.kill(process.pid, signal.SIGTERM)
        until_s = time.monotonic() + DRAIN_S + _MORE_S
        for process in self._running:
            process.join(max(0.0, until_s - time.monotonic()))
        codes = [process.exitcode for process in self._running]
        self.kill()
        if any(code not in (0, -signal.SIGTERM) for code in codes):  # the latter: before it served
            raise CheckFailed(f"processes ended with {', '.join(map(str, codes))}; expected 0 of each")

    def kill(self) -> None:
        """Kills the processes that still run."""
        for process in self._running:
            process.kill()

    def _spawned(self, number: int) -> BaseProcess:
        given = (self._config, self._table, number, self._logging, os.getpid())
        process = self._context.Process(target=_run, args=given, name=process_name(number), daemon=True)
        process.start()
        return process


def _run(config: Config, table: ServingTable, number: int, logging: dict[str, str], parent: int) -> None:
    """A process of them."""
    die_with_parent(parent)
    show_as(f"st-{process_name(number)}")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's goes to all; the command decides
    shutdown = _Shutdown()
    signal.signal(signal.SIGTERM, shutdown.end)
    configure_logging(logging["level"], logging["format"], process_name(number))
    if any(job.module for job in config.jobs):
        in_process_of_its_own()
    try:
        serve(config, table, number, bound(config.host, config.port, shared=True), shutdown.listens)
    except StreamtrainError as error:
        log.error(str(error))
        raise SystemExit(error.exit_code) from None


class _Shutdown:
    """A request to end, before there is a server or after."""

    def __init__(self) -> None:
        self._server: Any = None
        self._is_requested = False

    def end(self, *_: Any) -> None:
        self._is_requested = True
        if self._server is not None:
            self._server.should_exit = True

    def listens(self, server: Any) -> None:
        self._server = server
        server.should_exit |= self._is_requested

