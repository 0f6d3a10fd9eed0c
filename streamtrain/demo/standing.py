"""How the demo stands: numbers put together from the trainer's events, the stream and the answers."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from streamtrain.demo.answers import Answers, Told
from streamtrain.demo.stream import Stream

Event = dict[str, Any]
RATE_S = 3.0  # rates are over so long


class Rate:
    """The rate of a growing count, per second, over the last seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def see(self, count: int, now_s: float) -> float:
        self._seen.append((now_s, count))
        while len(self._seen) > 2 and self._seen[1][0] <= now_s - RATE_S:
            self._seen.popleft()
        first_s, first = self._seen[0]
        return (count - first) / (now_s - first_s) if now_s > first_s else 0.0


@dataclass
class Standing:
    """Counts are of this run. `scores` and `windows` hold the names of streamtrain.compute.metrics."""

    rows: int  # of the whole stream
    sent: int = 0
    date: str = ""  # of the newest flight sent
    read: int = 0  # by the trainer, whether trained, filtered or dead lettered
    trained: int = 0  # by the newest snapshot
    version: int = 0
    published_s: float = 0.0  # monotonic
    event_age_s: float | None = None
    positions: list[list[int]] = field(default_factory=list)
    scores: dict[str, float] = field(default_factory=dict)
    windows: list[dict[str, float]] = field(default_factory=list)
    dead: dict[str, int] = field(default_factory=dict)  # rows by reason
    rows_per_s: float = 0.0
    asked: int = 0
    answered: int = 0
    errors: int = 0
    answers_per_s: float = 0.0
    delay_p50_s: float | None = None
    delay_p99_s: float | None = None
    newest_answer: Told | None = None
    unreachable: bool = False
    began_s: float = field(default_factory=time.monotonic)
    streamed_s: float = 0.0  # from the first flight sent to the last one learned
    first_trained_s: float | None = None  # after began_s
    rates: tuple[Rate, Rate] = field(default_factory=lambda: (Rate(), Rate()))

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began_s

    @property
    def lag(self) -> int:
        """Rows on the topic that the trainer has not read."""
        return max(0, self.sent - self.read)

    @property
    def filtered(self) -> int:
        """Rows without a label, by the newest snapshot's positions: a flight is a record."""
        return max(0, sum(offset for offset, _ in self.positions) - self.trained - sum(self.dead.values()))

    @property
    def age_s(self) -> float:
        """Since the newest snapshot was published."""
        return time.monotonic() - self.published_s if self.version else 0.0

    def take(self, event: Event) -> None:
        """One event of `streamtrain train --json`."""
        kind = event["event"]
        if kind == "progress":
            self.read = max(self.read, event["records"])  # a flight is a record; a new run counts from 0 again
            self.unreachable = event["unreachable"]
        elif kind == "published":
            self._published(event)
        elif kind == "ended":
            self.dead = dict(event["dead_letters"])

    def _published(self, event: Event) -> None:
        self.version, self.trained, self.published_s = event["version"], event["rows"], time.monotonic()
        self.event_age_s, self.positions = event["event_age_s"], event["positions"]
        self.read = max(self.read, sum(offset for offset, _ in self.positions))
        if self.trained and self.first_trained_s is None:
            self.first_trained_s = self.seconds
        for reason, rows in event["dead_letters"].items():
            self.dead[reason] = self.dead.get(reason, 0) + rows
        self.scores = event["metrics"].get("total", {})
        self.windows += event["metrics"].get("windows", [])

    def look(self, stream: Stream, answers: Answers) -> None:
        """Reads the counts of the demo's own threads."""
        now_s = time.monotonic()
        self.sent, self.asked, self.date = stream.rows_sent, stream.requests_sent, stream.date
        self.answered, self.errors, self.newest_answer = answers.count, answers.errors, answers.newest()
        self.rows_per_s = self.rates[0].see(self.read, now_s)
        self.answers_per_s = self.rates[1].see(self.answered, now_s)
        self.delay_p50_s, self.delay_p99_s = answers.delay_s(50), answers.delay_s(99)

    def as_dict(self) -> dict[str, Any]:
        """For --json."""
        return {
            "seconds": round(self.seconds, 2),
            "rows_sent": self.sent,
            "rows_read": self.read,
            "rows_trained": self.trained,
            "rows_per_s": round(self.rows_per_s, 1),
            "lag": self.lag,
            "version": self.version,
            "age_s": round(self.age_s, 3),
            "event_age_s": self.event_age_s,
            "total": self.scores,
            "window": self.windows[-1] if self.windows else {},
            "filtered": self.filtered,
            "dead_letters": self.dead,
            "requests": self.asked,
            "answers": self.answered,
            "answers_per_s": round(self.answers_per_s, 1),
            "answer_delay_p50_s": self.delay_p50_s,
            "answer_delay_p99_s": self.delay_p99_s,
        }
