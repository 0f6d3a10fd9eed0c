"""A trainer's metrics, fed with the supervisor's events."""

from __future__ import annotations

import time

from prometheus_client import Counter, Gauge

from streamtrain import __version__
from streamtrain.compute.metrics import is_amount, numbers
from streamtrain.compute.quality import SPANS
from streamtrain.telemetry.meters import Event, FromZero, Growing, Lately, Meters

TRANSACTION_BUCKETS_S = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
AGE_BUCKETS_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 600.0, 3600.0)


class TrainerMeters(Meters):
    """The metrics of one trainer, changed by its events."""

    def __init__(self, job: str, ring_slots: int) -> None:
        lag = "offsets between the newest snapshot and the end of the records"
        super().__init__(job, "supervisor", lag, "the trainer trains")
        behind = "offsets from the first open transaction to the end of the records, which the lag leaves out"
        self._behind = Gauge(
            "streamtrain_behind_open_transaction_offsets", behind, ("job", "partition"), registry=self.registry
        )
        self._rows = Growing(self._counter("rows", "rows put into batches"))
        self._records = Growing(self._counter("records", "records read"))
        self._bytes = Growing(self._counter("record_bytes", "bytes of the records read"))
        self._runs = self._counter("runs", "runs started")
        self._deaths = self._counter("worker_deaths", "workers that died and were replaced")
        dead, labels = "rows dead lettered, by reason", ("job", "reason")
        self._dead = FromZero(Counter("streamtrain_dead_letters", dead, labels, registry=None), job)
        self.registry.register(self._dead)
        self._rows_per_s = self._gauge("rows_per_second", "rows put into batches, a second, lately")
        self._round = self._gauge("round", "the last round averaged")
        self._round_s = self._gauge("round_seconds", "time a round takes, lately")
        self._ring = self._gauge("ring_slots_used", "slots of the ring that hold rows")
        self._gauge("ring_slots", "slots of the ring").set(ring_slots)
        self._unpublished = self._gauge("unpublished_bytes", "round log and dead letters not published yet")
        self._version = self._gauge("snapshot_version", "version of the newest snapshot")
        self._trained = self._gauge("snapshot_rows", "rows the newest snapshot has seen")
        self._age = self._gauge("snapshot_age_seconds", "time since the newest snapshot was published")
        self._quality = Gauge(
            "streamtrain_quality", "progressive validation", ("job", "name", "span"), registry=self.registry
        )
        self._transaction = self._histogram(
            "transaction_seconds", "time a publication's transaction took", TRANSACTION_BUCKETS_S
        )
        self._event_age = self._histogram(
            "event_to_snapshot_seconds", "age of the newest event in a snapshot", AGE_BUCKETS_S
        )
        self._lately = Lately()
        self._positions: list[int] = []

    def lag(self, ends: list[int]) -> dict[int, int]:
        """Offsets between the newest snapshot and these ends of the records' partitions; none before a publication."""
        if not self._positions:
            return {}
        known = [*self._positions, *[0] * (len(ends) - len(self._positions))]
        return {partition: max(0, end - known[partition]) for partition, end in enumerate(ends)}

    def behind_open_transaction(self, offsets: list[int]) -> None:
        """Takes note of them by partition."""
        self._behind.clear()
        for partition, count in enumerate(offsets):
            self._behind.labels(self._job, str(partition)).set(count)

    def _on_started(self, event: Event) -> None:
        self._runs.inc()
        self.tell(version=__version__, run=str(event["run"]))
        self._version.set(event["version"])
        self._lately, self.works = Lately(), True

    def _on_restarting(self, event: Event) -> None:
        self.works = False

    def _on_replaced(self, event: Event) -> None:
        self.works = False

    def _on_ended(self, event: Event) -> None:
        self.works = False

    def _on_worker_died(self, event: Event) -> None:
        self._deaths.inc()

    def _on_progress(self, event: Event) -> None:
        self.works = not (event["unreachable"] or event.get("waiting_for_schema"))
        self._rows.set(event["rows"])
        self._records.set(event["records"])
        self._bytes.set(event["bytes"])
        self._round.set(event["finished_round"])
        self._ring.set(event["slots_filled"] - event["slots_released"])
        self._unpublished.set(event["unpublished_bytes"])
        if (grown := self._lately.grown(event["rows"], event["finished_round"])) is not None:
            seconds, (rows, rounds) = grown
            self._rows_per_s.set(rows / seconds)
            if rounds > 0:
                self._round_s.set(seconds / rounds)

    def _on_published(self, event: Event) -> None:
        self._version.set(event["version"])
        self._trained.set(event["rows"])
        published_s = time.time()
        self._age.set_function(lambda: time.time() - published_s)
        if event["transaction_s"] is not None:  # of a host whose rows are not in it
            self._transaction.observe(event["transaction_s"])
        if event["event_age_s"] is not None:
            self._event_age.observe(event["event_age_s"])
        for span in SPANS:
            for name, value in numbers(event["metrics"].get(span) or {}).items():
                if not is_amount(name):
                    self._quality.labels(self._job, name, span).set(value)
        self._on_folded(event)
        self._positions = [position[0] for position in event["positions"]]

    def _on_folded(self, event: Event) -> None:
        """Counts dead letters: those of many hosts where the one that leads counts them."""
        for reason, rows in event["dead_letters"].items():
            self._dead.add(reason, rows)
