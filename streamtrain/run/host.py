"""The processes of one host around one arena: spawned, watched, healed and ended. Knows no Kafka.

Touches no record and no parameter.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from streamtrain import _native, exits
from streamtrain.failpoints import for_life
from streamtrain.log import get_logger
from streamtrain.run.environment import ENVIRONMENT
from streamtrain.run.fork_server import ForkedProcess, ForkServer
from streamtrain.run.process_settings import open_standard_streams

log = get_logger("streamtrain.run.supervisor")  # the user knows one word for what watches a run

Event = dict[str, Any]
Process: TypeAlias = subprocess.Popen[str] | ForkedProcess

_CRASHES = {signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT}
_CRASHES_TO_REJECT = 3
_OTHER_DEATHS = 10
_ENDS_A_RUN = (exits.DONE, *exits.OF_ERRORS, exits.RUN_OVER)  # of a worker, which is not healed


class RunOver(Exception):
    """The run is over with an exit code; None asks for a new run."""

    def __init__(
        self, code: int | None, reason: str, is_error: bool = False, is_reported: bool = False,
        is_expected: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(reason)
        self.code = code
        self.is_expected = is_expected  # another run follows at once
        self.is_error = is_error
        self.is_reported = is_reported  # by the child itself, with the cause


@dataclass(frozen=True)
class HostOptions:
    """The options that all processes of a host get; `workers` is what they get alone: isa."""

    logging: Mapping[str, str] = field(default_factory=dict)  # level and format
    failpoints: str = ""
    workers: Mapping[str, Any] = field(default_factory=dict)
    fork_server: ForkServer | None = None  # where there is one: processes are started by it, for they start faster so


class Child(NamedTuple):
    label: str
    process: Process
    worker: int | None  # its number

    def last_word(self) -> str:
        """Why it has ended, as it said itself; "" where it said nothing, or is asked again."""
        said = self.process.stdout
        if said is None or said.closed:
            return ""
        with said:
            return said.read().strip()


class Host:
    """Runs one after the other, each in an arena of its own. `worker` is a worker's config but for arena and number.

    With `last_words` a worker that ends says why to its `Child`, as well as to the log.
    """

    def __init__(
        self,
        make_arena: Callable[[], _native.Arena],
        worker: Mapping[str, Any],
        options: HostOptions,
        on_event: Callable[[Event], None],
        last_words: bool = False,
    ) -> None:
        self._make_arena = make_arena
        self._worker = worker
        self._options = options
        self._on_event = on_event
        self._last_words = last_words
        self._spawned: set[str] = set()
        self._crashes: Counter[int] = Counter()  # by slot
        self._other_deaths: Counter[tuple[int, int]] = Counter()  # by round and slot
        self.children: list[Child] = []
        self.arena: _native.Arena | None = None  # of the run there is
        self.ring: _native.SupervisorEnd | None = None

    def begin(self) -> _native.Arena:
        """A new run's arena, in which nothing runs yet."""
        open_standard_streams()  # of a program that has closed them
        self.arena = arena = self._make_arena()
        self.ring = _native.SupervisorEnd(arena)
        self._crashes.clear()
        self._other_deaths.clear()
        return arena

    def spawn(
        self, role: str, label: str, config: Mapping[str, Any], heard: bool = False, worker: int | None = None
    ) -> Child:
        """Starts a process of `role`; where it is `heard`, its standard output and input are pipes."""
        assert self.arena is not None
        last_words = self._last_words and worker is not None
        document = {
            "process": role,
            "label": label,
            "parent": os.getpid(),
            "logging": dict(self._options.logging),
            "failpoints": for_life(self._options.failpoints, label not in self._spawned),
            "last_words": last_words,
            "config": {"arena": self.arena.descriptor, **config},
        }
        self._spawned.add(label)
        process = self._start(heard or last_words)
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # of one that has died already: it says why itself
            process.stdin.write(json.dumps(document) + "\n")
            process.stdin.flush()
            if not heard:
                process.stdin.close()
        child = Child(label, process, worker)
        self.children.append(child)
        return child

    def _start(self, heard: bool) -> Process:
        """A process that waits for its settings."""
        assert self.arena is not None
        server = self._options.fork_server
        if server is not None:
            try:
                return ForkedProcess(server, self.arena.descriptor, heard)
            except OSError as error:
                log.debug("no process by fork", why=str(error))
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "streamtrain.run"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if heard else subprocess.DEVNULL,
            pass_fds=(self.arena.descriptor,),
            env={**ENVIRONMENT, **os.environ},
            process_group=0,  # a Ctrl-C of the terminal is the supervisor's alone
            text=True,
        )

    def spawn_workers(self) -> None:
        assert self.arena is not None
        for worker in range(self.arena.workers):
            self._spawn_worker(worker)

    def _spawn_worker(self, worker: int) -> None:
        config = {"worker": worker, **self._worker, **self._options.workers}
        self.spawn("worker", f"worker-{worker}", config, worker=worker)

    def tell(self, stop: _native.Stop) -> None:
        """Asks the processes to drain, or to leave."""
        if self.ring is not None:
            self.ring.tell(stop)

    def ended(self) -> Iterator[tuple[Child, int]]:
        """Each process that has ended since, with its exit code, but for workers whose death is healed here.

        RunOver where workers die again and again at one place.
        """
        for child in list(self.children):
            code = child.process.poll()
            if code is None:
                continue
            self.children.remove(child)
            if child.worker is not None and code not in _ENDS_A_RUN:
                self.heal(child, code)
            else:
                yield child, code

    def end(self) -> None:
        """SIGKILL and wait for every child; the arena goes too.

        The transaction of a dead coordinator is aborted by its successor.
        """
        self.tell(_native.Stop.LEAVE)
        for child in self.children:
            if child.process.poll() is None:
                child.process.kill()
        for child in self.children:
            child.process.wait()
            if child.worker is not None:
                child.last_word()
        self.children = []
        self.arena = self.ring = None

    def heal(self, child: Child, code: int) -> None:
        """Starts a worker that has ended again: its batches of the round are trained again. RunOver as ended()."""
        worker = child.worker
        assert self.ring is not None and worker is not None
        look = self.ring.worker(worker)
        round_, slot = look.round, look.slot
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        if said := child.last_word():
            how = f"{how}: {said}"
        log.warning(
            "worker died, its batches of the round are trained again", worker=worker, how=how, round=round_, slot=slot
        )
        self._on_event({"event": "worker_died", "worker": worker, "how": how, "round": round_, "slot": slot})
        if code < 0 and -code in _CRASHES and slot >= 0:
            self._crashes[slot] += 1
            if self._crashes[slot] == _CRASHES_TO_REJECT:
                log.error("batch rejected: workers died at it three times", slot=slot, how=how)
                self.ring.reject(slot, worker)
        else:
            self._other_deaths[round_, slot] += 1
            if self._other_deaths[round_, slot] >= _OTHER_DEATHS:
                at = "at one batch" if slot >= 0 else f"between the batches of round {round_}"
                raise RunOver(exits.FAILED, f"workers died {_OTHER_DEATHS} times {at} ({how})", is_error=True)
        self.ring.clear_dead(worker)
        self._spawn_worker(worker)
