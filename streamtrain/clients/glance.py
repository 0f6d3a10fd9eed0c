"""A short view of a job's status from its snapshots, round logs and control topic, for watching many jobs.

It opens no client: it reads with the clients that it is given, and keeps a few hundred small numbers.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple, TypeVar

from streamtrain.compute.metrics import numbers
from streamtrain.kafka.admin import TopicEnds
from streamtrain.kafka.control import ControlTopic
from streamtrain.kafka.reading_clients import Reading
from streamtrain.kafka.round_logs import RoundLogTail
from streamtrain.kafka.snapshot_reader import SnapshotTopic
from streamtrain.record_sources.source_kind import source_of
from streamtrain.topics.chunks import Located
from streamtrain.topics.control import Control
from streamtrain.topics.manifest import Run
from streamtrain.topics.publication_logs import RoundLogs

Document = dict[str, Any]
T = TypeVar("T")
TOPICS = ("records", "snapshots", "rounds", "control", "dead-letters", "predictions")
LOGS = 256  # newest publications looked at first
_WINDOWS = 48  # of quality
_RATE_S = 10.0  # over which rows a second are told


class Published(NamedTuple):
    """The figures that are kept of a round log."""

    lineage: str
    run: Run
    created_ms: int
    rows: int  # trained
    newest_event_ms: int
    worker_deaths: int


class Glance:
    """Looks at job `name` again and again; one thread at a time.

    `topics`: their names by key, at least those TOPICS. `logs`: how many of the newest publications the first look
    takes; `new_logs` are those that the last look took, `ends`, `newest` and `control` what it saw.
    """

    def __init__(self, name: str, topics: Mapping[str, str], reading: Reading, logs: int = LOGS) -> None:
        self.topics = topics
        self.new_logs: list[RoundLogs] = []
        self.ends: dict[str, TopicEnds | None] = {}  # by the topic's key
        self.newest: Located | None = None
        self.control: Control | None = None
        self._name = name
        self._snapshots = SnapshotTopic(name, reading.bootstrap, reading.settings, clients=reading.consumer)
        self._logs = RoundLogTail(topics["rounds"], logs, reading.consumer)
        self._control = ControlTopic(reading.settings, topics["control"], reading.consumer)
        self._published: deque[Published] = deque(maxlen=LOGS)
        self._windows: deque[Mapping[str, float]] = deque(maxlen=_WINDOWS)  # that have closed
        self._growing: Mapping[str, float] = {}  # the first one until then
        self._known: dict[str, TopicEnds] = {}  # of what has been read to there

    def take(self, found: Mapping[str, TopicEnds | None]) -> Document:
        """The status as plain data, after reading what has grown; what there is nothing to say of yet is None or empty.

        `found`: where the topics end, by name. Raises KafkaUnreachable when no broker answers, SnapshotError where the
        newest manifest is damaged.
        """
        self.ends = {key: found.get(name) for key, name in self.topics.items()}
        self.newest = self._read("snapshots", self._snapshots.newest_manifest, self.newest, None)
        self.new_logs = self._read("rounds", self._logs.look, [], [])
        for log in self.new_logs:
            self._take(log)
        self.control = self._read("control", self._control.look, self.control, None)
        records, newest = self.ends["records"], self.newest
        ends = [] if records is None else records.ends
        return {
            "job": self._name,
            "records": self.topics["records"],
            "exists": records is not None,
            "ends": ends,
            "snapshot": None if newest is None else _snapshot(newest),
            "run": self._run(),
            "rows_per_second": self._rate(),
            "newest_row_age_s": self._newest_row_age_s(),
            "windows": [dict(window) for window in self._windows or [self._growing] if window],
            **(_positions(newest, ends, None if records is None else records.topic_id) if newest else {"lag": None}),
        }

    def _read(self, key: str, read: Callable[[], T], known: T, none: T) -> T:
        """Returns what `read` gives if the topic has grown or is another one since the last read, else `known`. Returns
        `none` if there is no such topic."""
        there = self.ends[key]
        if there is None:
            self._known.pop(key, None)
            return none
        if self._known.get(key) == there:
            return known
        found = read()
        self._known[key] = there
        return found

    def _begins(self, log: RoundLogs) -> bool:
        """Returns True for the first log that is seen of its lineage."""
        return not self._published or self._published[-1].lineage != log.lineage

    def _take(self, log: RoundLogs) -> None:
        lineage, run = log.lineage, log.run
        if self._begins(log):
            self._published.clear()
            self._windows.clear()
        else:  # one object for all that are the same
            last = self._published[-1]
            lineage, run = last.lineage, last.run if last.run == run else run
        self._published.append(
            Published(lineage, run, log.created_ms, log.rows_trained, log.newest_event_ms, log.worker_deaths)
        )
        self._windows += [numbers(window) for window in log.metrics.get("windows") or ()]
        self._growing = numbers(log.metrics.get("window") or {})

    def _rate(self) -> float | None:
        """Rows trained a second over the newest publications of a run; None where there are too few."""
        if not self._published:
            return None
        last = self._published[-1]
        if time.time() - last.created_ms / 1000 > _RATE_S:
            return 0.0
        since_ms = last.created_ms - 1000 * _RATE_S
        first, *others = (each for each in self._published if each.run == last.run and each.created_ms >= since_ms)
        elapsed_ms = last.created_ms - first.created_ms
        return 1000 * sum(each.rows for each in others) / elapsed_ms if elapsed_ms > 0 else None

    def _newest_row_age_s(self) -> float | None:
        """Seconds since the newest row that is learned came to be, by its event time; None where no row has one."""
        newest_ms = max((each.newest_event_ms for each in self._published), default=-1)
        return None if newest_ms < 0 else round(max(0.0, time.time() - newest_ms / 1000), 3)

    def _run(self) -> Document | None:
        control = self.control
        if control is None or control.holder is None:
            return None
        end = control.ends.get(control.holder.run.number)
        ended = None if end is None or end.run != control.holder.run else asdict(end)
        return {
            "number": control.holder.run.number,
            "host": control.holder.host,
            "process": control.holder.process,
            "started_ms": control.holder.started_ms,
            "ended": ended and {key: ended[key] for key in ("exit_code", "reason", "ended_ms")},
            "worker_deaths": self._published[-1].worker_deaths if self._published else 0,
        }


def _snapshot(newest: Located) -> Document:
    manifest = newest.manifest
    return {
        "version": manifest.version,
        "digest": newest.digest.hex(),
        "parameters_digest": manifest.parameters_digest,
        "lineage": manifest.lineage,
        "run": manifest.run.number,
        "round": manifest.round,
        "rows_seen": manifest.rows_seen,
        "age_s": round(max(0.0, time.time() - manifest.created_ms / 1_000), 3),
        "untrained": manifest.untrained,
        "workers": manifest.workers,
        "counts": manifest.counts._asdict(),
    }


def _positions(newest: Located, ends: list[int], topic_id: str | None) -> Document:
    manifest = newest.manifest
    identity = manifest.positions.topic_id
    positions, lags = source_of(identity).progress(manifest, topic_id, ends)
    return {
        "same_topic": topic_id == identity,
        "positions": positions,
        "lag": None if lags is None else sum(lags),
        "lags": lags,
        "metrics": dict(manifest.metrics),
    }
