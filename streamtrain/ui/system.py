"""The self-reports of one job's processes, by the addresses of their metrics: which are alive, what they use.

No topic has these data. They start with the page's process, and only if an address is given.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from streamtrain.ui import metric_values
from streamtrain.ui.metric_values import Values, one
from streamtrain.ui.points import Points

MB = 1e6
LOST_S = 2.0  # without an answer, and it is taken for dead
_CPU, _PSS = "cpu.", "pss."  # figures by process


@dataclass(frozen=True)
class Report:
    """The last report of one address. `error`: why it no longer answers, since `lost_s` (monotonic)."""

    url: str
    at_s: float = 0.0  # monotonic; 0: it has told nothing yet
    values: Values = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)  # by the names of points, without the process's own
    cores: Mapping[str, float] = field(default_factory=dict)  # by process; empty at first, and after a fresh start
    transaction_s: float | None = None  # of the newest publications
    error: str = ""
    lost_s: float = 0.0

    @property
    def role(self) -> str:
        """trainer, serve, predictor, or unknown before it has answered."""
        if metric_values.RING in self.values:
            return "trainer"
        if metric_values.SERVING in self.values:
            return "serve"
        return "predictor" if metric_values.REQUESTS in self.values else "unknown"

    @property
    def lag(self) -> float:
        return sum(self.values.get(metric_values.LAG, {}).values())


class System:
    """The processes of one job. Any thread may use it."""

    def __init__(self) -> None:
        self.points = Points()
        self._lock = threading.Lock()
        self._reports: dict[str, Report] = {}  # by address
        self._owners: dict[str, str] = {}  # of a process's name: the first address that has it

    @property
    def reports(self) -> list[Report]:
        """By address, trainers first."""
        with self._lock:
            return sorted(self._reports.values(), key=lambda each: (each.role != "trainer", each.url))

    def take(self, url: str, values: Values) -> None:
        """An answer."""
        now_s = time.monotonic()
        with self._lock:
            before = self._reports.get(url, Report(url))
            cores = _cores(before, values, now_s)
            newest = _transaction(before, values)
            transaction_s = before.transaction_s if newest is None else newest
            report = Report(url, now_s, values, {}, cores, transaction_s)
            found = {**dict(self._by_process(report)), **dict(_figures(values))}
            if newest is not None:
                found["transaction_ms"] = newest * 1000
            self._reports[url] = replace(report, figures=found)
        self.points.add(int(time.time() * 1000), -1, found)

    def lost(self, url: str, error: str) -> None:
        """No answer."""
        with self._lock:
            before = self._reports.get(url, Report(url))
            self._reports[url] = replace(before, error=error, lost_s=before.lost_s or time.monotonic())

    def state(self, age_s: float) -> str:
        """Returns a state that only the processes know: "dead", "idle" or "". `age_s` is the newest snapshot's age.

        "dead": no trainer answers any more, and none has published since. "idle": one has learned all there is.
        """
        trainers = [each for each in self.reports if each.role == "trainer"]
        trainers = trainers or [each for each in self.reports if each.role == "unknown"]
        now_s = time.monotonic()
        if trainers and all(each.error and LOST_S < now_s - each.lost_s < age_s + LOST_S for each in trainers):
            return "dead"
        living = [each for each in trainers if not each.error]
        return "idle" if any(one(each.values, metric_values.READY) == 1 and not each.lag for each in living) else ""

    def _by_process(self, report: Report) -> Iterator[tuple[str, float]]:
        for name, cores in report.cores.items():
            yield _CPU + self._own(name, report.url), round(cores, 3)
        for name, size in report.values.get(metric_values.PSS_BYTES, {}).items():
            yield _PSS + self._own(name, report.url), round(size / MB, 1)

    def _own(self, process: str, url: str) -> str:
        """A process's name, with its address where another one has a process of that name."""
        return process if self._owners.setdefault(process, url) == url else f"{process} at {urlsplit(url).netloc}"


def _cores(before: Report, values: Values, now_s: float) -> dict[str, float]:
    """Processor time a second since the answer before; of processes that are the same."""
    then, elapsed_s = before.values.get(metric_values.CPU_S, {}), now_s - before.at_s
    return {
        name: (total - then[name]) / elapsed_s for name, total in values.get(metric_values.CPU_S, {}).items()
        if before.at_s and name in then and total >= then[name] and elapsed_s > 0
    }  # fmt: skip


def _transaction(before: Report, values: Values) -> float | None:
    """Returns the mean seconds of a publication's transaction since the answer before; None if there was none."""
    count, total = one(values, metric_values.TRANSACTIONS), one(values, metric_values.TRANSACTIONS_S)
    if count is None or total is None:
        return None
    count_then = one(before.values, metric_values.TRANSACTIONS) or 0.0
    total_then = one(before.values, metric_values.TRANSACTIONS_S) or 0.0
    if count < count_then:  # begun again
        count_then = total_then = 0.0
    return (total - total_then) / (count - count_then) if count > count_then else None


def _figures(values: Values) -> Iterator[tuple[str, float]]:
    for name, metric in (("ring.used", metric_values.RING_USED), ("ring.slots", metric_values.RING)):
        if (value := one(values, metric)) is not None:
            yield name, value
    for device, share in values.get(metric_values.GPU_USED, {}).items():
        yield f"gpu.used.{device}", share * 100
    for device, size in values.get(metric_values.GPU_MEMORY_USED_BYTES, {}).items():
        yield f"gpu.memory.{device}", size / MB
