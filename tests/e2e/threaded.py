"""Runs of a trainer whose processes are threads of the test's.

A job that only has to be trained needs no process: the supervisor and the roles are those of `streamtrain train`. Tests
of a process's death, of signals, of the environment or of log lines start one with tests/e2e/commands.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_for

from streamtrain import exits
from streamtrain.errors import KafkaBroken, StreamtrainError
from streamtrain.files.found import found_files
from streamtrain.job import Job
from streamtrain.run import roles
from streamtrain.run.roles import coordinator
from streamtrain.run.train import Interrupts, Supervisor, TrainOptions
from streamtrain.schemas import with_schema

_own = threading.local()  # its `process`: the _Threaded that the thread is
_LONG_S = 240.0


class _Threaded:
    """A thread in the place of a run's process: the parts of a subprocess.Popen that a Host uses."""

    def __init__(self, heard: bool, before: Callable[[str], object]) -> None:
        given, gives = os.pipe()
        self.stdin, self._given = open(gives, "w"), open(given)  # noqa: SIM115
        self.stdout = self._says = None
        if heard:
            heard_at, says = os.pipe()
            self.stdout, self._says = open(heard_at), open(says, "w")  # noqa: SIM115
        self.errors: list[str] = []
        self._before, self._code = before, exits.UNEXPECTED
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def _live(self) -> None:
        _own.process = self
        document = json.loads(self._given.readline())
        role, config = roles.REGISTRY.get(document["process"]), document["config"]
        config["arena"] = os.dup(config["arena"])  # which the role closes
        try:
            self._before(document["label"])
            self._code = int(role.run(role.Config(**config)))
        except StreamtrainError as error:  # as in streamtrain/run/entry.py
            self.errors.append(f"{document['label']}: {error}")
            self._code = exits.UNEXPECTED if isinstance(error, KafkaBroken) else error.exit_code
        finally:
            self._given.close()
            if self._says is not None:
                self._says.close()

    def say(self, event: str, **fields: object) -> None:
        assert self._says is not None
        self._says.write(json.dumps({"event": event, **fields}) + "\n")
        self._says.flush()

    def read_word(self) -> tuple[int, str]:
        word = json.loads(self._given.readline() or '{"exit_code": -9, "reason": "killed"}')
        return int(word["exit_code"]), word["reason"]

    def poll(self) -> int | None:
        return None if self._thread.is_alive() else self._code

    def wait(self, timeout: float | None = None) -> int:
        self._thread.join(_LONG_S if timeout is None else timeout)
        if self._thread.is_alive():
            raise subprocess.TimeoutExpired("a thread of a run", timeout or _LONG_S)
        return self._code

    def kill(self) -> None:
        """Lets it end by itself: the Host has asked all to leave, which every role does."""
        with suppress(BrokenPipeError):
            self.stdin.close()


_patched = 0
_patching = threading.Lock()
_patch = pytest.MonkeyPatch()


@contextmanager
def _roles_in_threads() -> Iterator[None]:
    """Lets the coordinator talk to its supervisor in a thread; for as long as there is a run."""
    global _patched
    with _patching:
        if not _patched:
            _patch.setattr(coordinator, "share_one_heap", lambda: None)  # it would hold for all tests to come
            _patch.setattr(coordinator, "tell", lambda event, **fields: _own.process.say(event, **fields))
            _patch.setattr(coordinator, "_supervisors_word", lambda: _own.process.read_word())
        _patched += 1
    try:
        yield
    finally:
        with _patching:
            _patched -= 1
            if not _patched:
                _patch.undo()


class Run:
    """A supervisor in a thread, its processes in others. `before(label)` is called in each before it runs its role."""

    def __init__(
        self, path: Path, sets: Sequence[str] = (), before: Callable[[str], object] = lambda label: None, **options: Any
    ) -> None:
        self.events: list[dict[str, Any]] = []
        self.code: int | None = None
        self._failure: BaseException | None = None
        self._threads: list[_Threaded] = []
        self._stop = Interrupts()
        job = with_schema(Job.load(path, os.environ, list(sets)))
        self._supervisor = Supervisor(job, TrainOptions(**options), self.events.append, self._stop)
        self._before = before
        self._supervisor._host._start = self._started  # type: ignore[method-assign]
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def _started(self, heard: bool) -> Any:
        self._threads.append(_Threaded(heard, self._before))
        return self._threads[-1]

    def _live(self) -> None:
        try:
            with _roles_in_threads():
                self.code = self._supervisor.run()
        except BaseException as failure:
            self._failure = failure

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    @property
    def errors(self) -> list[str]:
        """Errors that its processes would have logged, each with the process's label before it."""
        return [error for thread in self._threads for error in thread.errors]

    def wait_event(self, name: str, **fields: Any) -> dict[str, Any]:
        """Returns the first event of that name with those fields at least."""

        def found() -> dict[str, Any] | None:
            ended = self.is_over
            assert not ended or self.code is not None, self._failure
            for event in self.events:
                if event["event"] == name and all(event.get(key, 0) >= value for key, value in fields.items()):
                    return event
            assert not ended, f"ended with {self.code} before {name}: {self.errors}"
            return None

        event: dict[str, Any] = wait_for(found, _LONG_S)
        return event

    def finish(self) -> int:
        """Waits for its end; returns the exit code, or raises what the supervisor raised."""
        self._thread.join(_LONG_S)
        if self._failure is not None:
            raise self._failure
        assert self.code is not None, "the run does not end"
        return self.code

    def drain(self) -> int:
        """Asks it to end as SIGTERM does, and waits."""
        self._stop.requests += 1
        return self.finish()


def trained(path: Path, *sets: str, **options: Any) -> Run:
    """A run to its end: to that of the records where `options`, those of TrainOptions, name no other."""
    if "files" in options:
        options["files"] = found_files([str(each) for each in options["files"]])
    elif "max_rows" not in options:
        options["until_end"] = True
    run = Run(path, sets, **options)
    run.finish()
    return run


def rows_after(path: Path, *sets: str, **options: Any) -> int:
    """Returns how many rows the lineage has after such a run, which must end well."""
    run = trained(path, *sets, **options)
    assert run.code == 0, run.errors
    rows: int = run.events[-1]["rows"]
    return rows
