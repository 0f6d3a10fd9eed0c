"""A trainer as a user starts it: its events as they come, its processes, its end."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import psutil

from tests.e2e.commands import STREAMTRAIN, start
from tests.e2e.harness import LiveJob, Running, processes_of

Timed = tuple[float, dict[str, Any]]  # time.monotonic() and an event


class Trainer(Running):
    """Reads its own events in a thread, so that nothing waits for whoever looks."""

    def __init__(self, job: LiveJob, log: Path, **environment: str) -> None:
        with log.open("w") as errors:
            super().__init__(start(self.command(job)[1:], errors, environment), log)
        self.timed: list[Timed] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @staticmethod
    def command(job: LiveJob) -> list[str]:
        return [*STREAMTRAIN, "train", str(job.path), "--json"]

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.timed.append((time.monotonic(), json.loads(line)))

    def first(self, name: str, after: float = 0.0, **fields: Any) -> Timed | None:
        """Returns the first event of that name that came later than `after`, with those fields at least."""
        for at, event in self.timed:
            fits = at > after and event["event"] == name
            if fits and all(event.get(key, 0) >= value for key, value in fields.items()):
                return at, event
        return None

    def wait(self, name: str, after: float = 0.0, timeout_s: float = 120, **fields: Any) -> Timed | None:
        """Waits for `first`; None where the command ended or `timeout_s` passed before it came."""
        until = time.monotonic() + timeout_s
        is_over = False
        while (found := self.first(name, after, **fields)) is None and not is_over:
            is_over = not self._thread.is_alive() or time.monotonic() > until
            time.sleep(0.05)
        return found

    def tree(self) -> list[psutil.Process]:
        """Returns the supervisor, then coordinator, ingest and workers in the order they were spawned."""
        try:
            return [psutil.Process(self.process.pid), *processes_of(self.process.pid)]
        except psutil.NoSuchProcess:
            return []

    def member(self, name: str) -> list[psutil.Process]:
        """Returns the processes a fault names: supervisor, coordinator, ingest, worker (the first) or tree (all)."""
        index = {"supervisor": 0, "coordinator": 1, "ingest": 2, "worker": 3}.get(name)
        return self.tree() if index is None else self.tree()[index : index + 1]

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def finish(self, timeout_s: float = 90) -> int:
        """Waits for the exit code; where it does not end, the tree is killed and TimeoutExpired raised."""
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def kill(self) -> None:
        for process in reversed(self.tree()):
            process.kill()
        self.process.wait(30)
