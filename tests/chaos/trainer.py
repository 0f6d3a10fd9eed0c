"""A `streamtrain train` under test: its events with the moment they came, its processes, its end."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from tests.e2e.commands import STREAMTRAIN, start
from tests.e2e.harness import LiveJob, processes_of


class Told(NamedTuple):
    at: float  # time.monotonic()
    event: dict[str, Any]


class Trainer:
    """Reads its own events in a thread, so that nothing waits for whoever looks."""

    def __init__(self, job: LiveJob, log: Path, **environment: str) -> None:
        self.log = log
        with log.open("w") as errors:
            self.process = start(self.command(job)[1:], errors, environment)
        self.told: list[Told] = []
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @staticmethod
    def command(job: LiveJob) -> list[str]:
        return [*STREAMTRAIN, "train", str(job.path), "--json"]

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._news:
                self.told.append(Told(time.monotonic(), json.loads(line)))
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    def first(self, name: str, after: float = 0.0, **fields: Any) -> Told | None:
        """The first event of that name that came later than `after`, with those fields at least."""
        for at, event in self.told:
            fits = at > after and event["event"] == name
            if fits and all(event.get(key, 0) >= value for key, value in fields.items()):
                return Told(at, event)
        return None

    def wait(self, name: str, after: float = 0.0, timeout_s: float = 120, **fields: Any) -> Told | None:
        """As `first`, but waits; None where the command ended or `timeout_s` passed before it came."""
        until = time.monotonic() + timeout_s
        with self._news:
            while True:
                found = self.first(name, after, **fields)
                left = until - time.monotonic()
                if found is not None or left <= 0 or not self._thread.is_alive():
                    return found
                self._news.wait(min(left, 0.5))

    def tree(self) -> list[psutil.Process]:
        """The supervisor, then coordinator, ingest and workers in the order they were spawned."""
        try:
            own = psutil.Process(self.process.pid)
            return [own, *processes_of(own.pid)]
        except psutil.NoSuchProcess:
            return []

    def member(self, name: str) -> list[psutil.Process]:
        """The processes a fault names: supervisor, coordinator, ingest, worker (the first) or tree (all)."""
        found = self.tree()
        if name == "tree":
            return found
        index = {"supervisor": 0, "coordinator": 1, "ingest": 2, "worker": 3}[name]
        return found[index : index + 1]

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def end(self, timeout_s: float = 90) -> int:
        """SIGTERM and the exit code; the tree is killed and TimeoutExpired raised where it does not end."""
        if self.running:
            self.process.terminate()
        return self.wait_end(timeout_s)

    def wait_end(self, timeout_s: float) -> int:
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def kill(self) -> None:
        for process in reversed(self.tree()):
            process.kill()
        self.process.wait(30)

    def errors(self, characters: int = 4000) -> str:
        return self.log.read_text()[-characters:]
