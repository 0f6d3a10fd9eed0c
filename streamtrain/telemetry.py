"""What a running trainer tells its operators: Prometheus metrics at /metrics, readiness at /ready.

Fed with the supervisor's events; runs in the command's process, in threads of its own, and asks Kafka only for the lag.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from streamtrain.errors import StreamtrainError, UserMistake

LAG_EVERY_S = 2.0
MOST_REASONS = 50  # dead letters of further reasons are counted as "other"; a label must not grow with the data
TRANSACTION_BUCKETS_S = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
AGE_BUCKETS_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 600.0, 3600.0)

Event = Mapping[str, Any]


def plain_reason(reason: str) -> str:
    """A dead letter's reason without what was found, which is the data's."""
    return reason.partition(", got ")[0][:100]


class _Growing:
    """A counter fed with totals that begin again at 0 with each run."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._last = 0

    def set(self, total: int) -> None:
        self._counter.inc(total - self._last if total >= self._last else total)
        self._last = total


class Meters:
    """The metrics of one trainer, changed by its events."""

    def __init__(self, ring_slots: int) -> None:
        self.registry = CollectorRegistry()
        self._rows = _Growing(self._counter("rows", "rows put into batches"))
        self._records = _Growing(self._counter("records", "records read"))
        self._bytes = _Growing(self._counter("record_bytes", "bytes of the records read"))
        self._runs = self._counter("runs", "runs started")
        self._deaths = self._counter("worker_deaths", "workers that died and were replaced")
        self._dead = self._counter("dead_letters", "rows dead lettered, by reason", ["reason"])
        self._rows_per_s = self._gauge("rows_per_second", "rows put into batches, a second, lately")
        self._round = self._gauge("round", "the last round averaged")
        self._round_s = self._gauge("round_seconds", "time a round takes, lately")
        self._ring = self._gauge("ring_slots_used", "slots of the ring that hold rows")
        self._gauge("ring_slots", "slots of the ring").set(ring_slots)
        self._unpublished = self._gauge("unpublished_bytes", "round log and dead letters not published yet")
        self.lag = self._gauge("lag_offsets", "offsets between the newest snapshot and the end of the records")
        self._version = self._gauge("snapshot_version", "version of the newest snapshot")
        self._trained = self._gauge("snapshot_rows", "rows the newest snapshot has seen")
        self._age = self._gauge("snapshot_age_seconds", "time since the newest snapshot was published")
        self._quality = self._gauge("quality", "progressive validation", ["name", "span"])
        self._ready = self._gauge("ready", "1 where the trainer trains and Kafka answers")
        self._transaction = self._histogram(
            "transaction_seconds", "time a publication's transaction took", TRANSACTION_BUCKETS_S
        )
        self._event_age = self._histogram(
            "event_to_snapshot_seconds", "age of the newest event in a snapshot", AGE_BUCKETS_S
        )
        self._reasons: set[str] = set()
        self._before: tuple[float, int, int] | None = None  # time, rows and round of an earlier progress
        self.positions: list[int] = []
        self.ready = False

    def _counter(self, name: str, text: str, labels: tuple[str, ...] | list[str] = ()) -> Counter:
        return Counter(f"streamtrain_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, labels: tuple[str, ...] | list[str] = ()) -> Gauge:
        return Gauge(f"streamtrain_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(f"streamtrain_{name}", text, registry=self.registry, buckets=buckets)

    def __call__(self, event: Event) -> None:
        known = getattr(self, f"_on_{event['event']}", None)
        if known is not None:
            known(event)
        self._ready.set(self.ready)

    def _on_started(self, event: Event) -> None:
        self._runs.inc()
        self._version.set(event["version"])
        self._before, self.ready = None, True

    def _on_restarting(self, event: Event) -> None:
        self.ready = False

    def _on_ended(self, event: Event) -> None:
        self.ready = False

    def _on_worker_died(self, event: Event) -> None:
        self._deaths.inc()

    def _on_progress(self, event: Event) -> None:
        self.ready = not event["unreachable"]
        self._rows.set(event["rows"])
        self._records.set(event["records"])
        self._bytes.set(event["bytes"])
        self._round.set(event["finished_round"])
        self._ring.set(event["slots_filled"] - event["slots_released"])
        self._unpublished.set(event["unpublished_bytes"])
        now_s = time.monotonic()
        if self._before is not None and now_s - self._before[0] < 1:
            return
        if self._before is not None and event["rows"] >= self._before[1]:
            seconds, rounds = now_s - self._before[0], event["finished_round"] - self._before[2]
            self._rows_per_s.set((event["rows"] - self._before[1]) / seconds)
            if rounds > 0:
                self._round_s.set(seconds / rounds)
        self._before = now_s, event["rows"], event["finished_round"]

    def _on_published(self, event: Event) -> None:
        self._version.set(event["version"])
        self._trained.set(event["rows"])
        published_s = time.time()
        self._age.set_function(lambda: time.time() - published_s)
        self._transaction.observe(event["transaction_s"])
        if event["event_age_s"] is not None:
            self._event_age.observe(event["event_age_s"])
        for span, figures in event["metrics"].items():
            for name, value in (figures or {}).items():
                self._quality.labels(name, span).set(value)
        for reason, rows in event["dead_letters"].items():
            self._dead.labels(self._bounded(plain_reason(reason))).inc(rows)
        self.positions = [position[0] for position in event["positions"]]

    def _bounded(self, reason: str) -> str:
        if reason not in self._reasons and len(self._reasons) >= MOST_REASONS:
            return "other"
        self._reasons.add(reason)
        return reason


class Telemetry:
    """Serves the metrics on `port` (0: one that is free, see `port`) while it is open; call it with each event.

    `ends` gives the end of every partition of the records. Raises UserMistake where the port is taken.
    """

    def __init__(self, port: int, ring_slots: int, ends: Callable[[], list[int]] | None = None) -> None:
        self.meters = Meters(ring_slots)
        self._ends = ends
        self._closing = threading.Event()
        meters = self.meters

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                _answer(self, meters)

            def log_message(self, format: str, *args: Any) -> None:
                pass  # a scrape is no news

        try:
            self._server = ThreadingHTTPServer(("", port), Handler)
        except OSError as error:
            raise UserMistake(
                f"--metrics-port {port}: {error.strerror}; give another, or 0 for one that is free"
            ) from None
        self.port = int(self._server.server_address[1])

    def __call__(self, event: Event) -> None:
        self.meters(event)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True).start()
        if self._ends is not None:
            threading.Thread(target=self._watch_lag, name="lag", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def _watch_lag(self) -> None:
        assert self._ends is not None
        while not self._closing.wait(LAG_EVERY_S):
            positions = self.meters.positions
            try:
                ends = self._ends() if positions else []
            except StreamtrainError:  # Kafka is away: the last lag stays, `ready` says so
                continue
            known = [*positions, *[0] * (len(ends) - len(positions))]
            self.meters.lag.set(sum(max(0, end - position) for end, position in zip(ends, known, strict=False)))


def _answer(request: BaseHTTPRequestHandler, meters: Meters) -> None:
    code, kind, body = 404, "text/plain", b"expected /metrics or /ready\n"
    if request.path == "/metrics":
        code, kind, body = 200, CONTENT_TYPE_LATEST, generate_latest(meters.registry)
    elif request.path == "/ready":
        code, body = (200, b"ready\n") if meters.ready else (503, b"not ready\n")
    request.send_response(code)
    request.send_header("Content-Type", kind)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)
