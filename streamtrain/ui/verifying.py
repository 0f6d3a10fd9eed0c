"""Runs `verify` on a job in the background of the pages; one at a time, for all jobs: it reads whole topics."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass

from streamtrain.background import in_background
from streamtrain.checks.verify import Report, verify
from streamtrain.errors import StreamtrainError
from streamtrain.ui.followed_job import Following

log = logging.getLogger("streamtrain.ui")


class Stopped(StreamtrainError):
    """It was asked to end."""


@dataclass(frozen=True)
class Verified:
    """The end of one verification: a report, or the reason why there is none."""

    at_s: float  # Unix time
    seconds: float
    report: Report | None
    error: str = ""


class Verifying:
    """Verifies a followed job. It only reads."""

    _one = threading.Lock()

    def __init__(self, following: Following) -> None:
        self._following = following
        self._start = threading.Lock()
        self._stop = threading.Event()
        self.result: Verified | None = None
        self.running = False
        self.read, self.topic = 0, ""  # messages, and of which topic the last of them were

    def close(self) -> None:
        self._stop.set()

    @property
    def stays(self) -> bool:
        return self.running or self.result is not None

    def start(self, fast: bool) -> None:
        """Nothing where one runs."""
        with self._start:
            if not self.running:
                self.running, self.read, self.topic = True, 0, ""
                self._stop.clear()
                in_background(self._run, fast, name=f"ui-verify-{self._following.name}")

    def stop(self) -> None:
        self._stop.set()

    def _run(self, fast: bool) -> None:
        begun_s, report, error = time.monotonic(), None, ""
        try:
            with self._one:
                begun_s = time.monotonic()
                job = self._following.job
                if job is None:
                    raise StreamtrainError(f"{self._following.name}: no snapshot yet")
                report = verify(job, fast, on_read=self._on_read)
        except StreamtrainError as found:
            error = str(found)
        except Exception as found:  # whoever waits for it has to be told
            log.exception("verify of %s", self._following.name)
            error = f"{type(found).__name__}: {found}"
        finally:
            self.result = Verified(time.time(), time.monotonic() - begun_s, report, error)
            self.running = False

    def _on_read(self, topic: str, messages: int) -> None:
        if self._stop.is_set():
            raise Stopped("it was stopped")
        self.read, self.topic = self.read + messages, topic
