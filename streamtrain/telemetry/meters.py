"""The common part of every process's metrics: a registry, the lag, readiness, and counters fed with totals."""

from __future__ import annotations

import time
from collections import Counter as Counts
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from streamtrain import __version__
from streamtrain.telemetry.devices import Devices
from streamtrain.telemetry.process_usage import Processes
from streamtrain.topics.dead_letters import MAX_CAUSES, OTHER

Event = Mapping[str, Any]


class Meters:
    """The metrics of one process, changed by its events: `_on_published` takes {"event": "published", …}.

    Each metric has the label `job`. `process`: what this process is called beside those below it.
    """

    def __init__(self, job: str, process: str, lag: str, ready: str) -> None:
        self._job = job
        self.registry = CollectorRegistry()
        self.registry.register(Processes(job, process))
        self.registry.register(Devices(job))
        self._lag = Gauge("streamtrain_lag_offsets", lag, ("job", "partition"), registry=self.registry)
        description = "version of streamtrain, and a trainer's run"
        self._info = Info("streamtrain", description, ("job",), registry=self.registry)
        self.tell(version=__version__)
        self.works = False  # by the process's own account
        self.kafka_answers = True
        self._gauge("ready", f"1 where {ready} and Kafka answers").set_function(lambda: float(self.ready))

    @property
    def ready(self) -> bool:
        return self.works and self.kafka_answers

    def __call__(self, event: Event) -> None:
        known = getattr(self, f"_on_{event['event']}", None)
        if known is not None:
            known(event)

    def behind(self, offsets: Mapping[int, int]) -> None:
        """Takes note of the lag by partition; a partition that is not told any more is gone."""
        self._lag.clear()
        for partition, lag in offsets.items():
            self._lag.labels(self._job, str(partition)).set(lag)

    def tell(self, **what: str) -> None:
        """Sets the labels of streamtrain_info."""
        self._info.labels(self._job).info(what)

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(f"streamtrain_{name}", text, ("job",), registry=self.registry).labels(self._job)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"streamtrain_{name}", text, ("job",), registry=self.registry).labels(self._job)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        found = Histogram(f"streamtrain_{name}", text, ("job",), registry=self.registry, buckets=buckets)
        return found.labels(self._job)


class Growing:
    """A counter fed with totals that begin again at 0 with each run."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._last = 0

    def set(self, total: int) -> None:
        self._counter.inc(total - self._last if total >= self._last else total)
        self._last = total


class FromZero(Collector):
    """Counters by a label. Each shows 0 first and what it counts from the next look on: the rate of a series that
    begins at N knows nothing of N. Values beyond MAX_CAUSES are counted as OTHER.
    """

    def __init__(self, counters: Counter, job: str) -> None:
        """`counters`: with the labels job and another, in no registry."""
        self._counters, self._job, self._lock = counters, job, Lock()
        self._counts: Counts[str] = Counts({OTHER: 0})
        self._visible_labels: set[str] = set()

    def add(self, label: str, count: int) -> None:
        with self._lock:
            self._counts[label if label in self._counts or len(self._counts) < MAX_CAUSES else OTHER] += count

    def collect(self) -> Iterable[Metric]:
        with self._lock:
            for label, count in self._counts.items():
                counter = self._counters.labels(self._job, label)
                if label in self._visible_labels:
                    counter.inc(count)
                    self._counts[label] = 0
            self._visible_labels.update(self._counts)
        return self._counters.collect()


class Lately:
    """By how much totals grew in how many seconds, looked at no more than once a second."""

    def __init__(self) -> None:
        self._before: tuple[float, tuple[int, ...]] | None = None

    def grown(self, *totals: int) -> tuple[float, list[int]] | None:
        """(seconds, growth of each total); None where it is too early, or the totals have begun again."""
        now_s, before = time.monotonic(), self._before
        if before is not None and now_s - before[0] < 1:
            return None
        self._before = now_s, totals
        if before is None or totals[0] < before[1][0]:
            return None
        return now_s - before[0], [now - then for now, then in zip(totals, before[1], strict=True)]
