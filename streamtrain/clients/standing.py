"""How a job stands, from its topics alone: newest snapshot, lag, rate, quality over time, dead letters, run.

Joins no group and commits nothing; each look reads what has been added since the last.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np

from streamtrain.clients.dead_letters import Found, Stray, read_dead_letters
from streamtrain.compute.confusion import MATRIX, by_class
from streamtrain.compute.metrics import numbers
from streamtrain.compute.quality import WINDOW_ROWS
from streamtrain.job import Job
from streamtrain.job.learning import Learning
from streamtrain.kafka.admin import Admin, TopicEnds
from streamtrain.kafka.control import ControlTopic
from streamtrain.kafka.round_logs import RoundLogTail
from streamtrain.kafka.snapshots import SnapshotTopic
from streamtrain.origins.moves import is_files, told_files
from streamtrain.topics.chunks import Located
from streamtrain.topics.control import Control
from streamtrain.topics.dead_letters import Causes
from streamtrain.topics.manifest import Manifest
from streamtrain.topics.rounds import RoundLog

Document = dict[str, Any]
T = TypeVar("T")
_TOPICS = ("records", "snapshots", "rounds", "control", "dead-letters", "predictions")
_LOGS = 256  # newest publications looked at first
_WINDOWS = 48  # of quality
_LETTERS = 2_000  # newest dead letters whose reasons are counted
_RATE_S = 10.0  # over which rows a second are told
_MAX_CAUSES = 8  # shown apart


class JobStanding:
    """Looks at one job again and again. Opens a few clients; one thread at a time.

    A look asks where the topics end, and reads those that have grown. `logs`: how many of the newest publications the
    first look takes; `new_logs` are those that the last look took, `ends`, `newest` and `control` what it saw.
    """

    def __init__(self, job: Job, logs: int = _LOGS) -> None:
        self._job = job
        self.new_logs: list[RoundLog] = []
        self.ends: dict[str, TopicEnds | None] = {}  # by the topic's key
        self._admin = Admin(job.kafka.bootstrap, job.kafka_admin())
        settings = {**job.kafka_consumer(), "bootstrap.servers": job.kafka.bootstrap}
        self._snapshots = SnapshotTopic(job.name, job.kafka.bootstrap, job.kafka_consumer())
        self._logs = RoundLogTail(settings, str(job.topic("rounds").name), logs)
        self._control = ControlTopic(settings, str(job.topic("control").name))
        self._newest_logs: deque[RoundLog] = deque(maxlen=_LOGS)
        self._windows: deque[Mapping[str, float]] = deque(maxlen=_WINDOWS)
        self._learning = Learning(job)
        self._causes = Causes()
        self._letters_at: dict[int, int] = {}
        self._known: dict[str, TopicEnds] = {}  # of what has been read to there
        self.newest: Located | None = None
        self.control: Control | None = None
        self._letters: dict[str, int] = {}
        self._strays = 0  # among the letters, what is none of ours

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._snapshots.close()
        self._logs.close()
        self._control.close()

    def look(self) -> Document:
        """The standing as plain data; what there is nothing to say of yet is None or empty.

        Raises KafkaUnreachable when no broker answers, SnapshotError where the newest manifest is damaged.
        """
        names = {key: str(self._job.topic(key).name) for key in _TOPICS}
        found = self._admin.ends(list(names.values()))
        self.ends = {key: found[name] for key, name in names.items()}
        records = self.ends["records"]
        ends = [] if records is None else records.ends
        self.newest = self._read("snapshots", self._snapshots.newest_manifest, self.newest, None)
        self.new_logs = self._read("rounds", self._logs.look, [], [])
        self._take(self.new_logs)
        self.control = self._read("control", self._control.look, self.control, None)
        self._letters = self._read("dead-letters", self._dead_letters, self._letters, {})
        newest = self.newest
        return {
            "job": self._job.name,
            "records": names["records"],
            "exists": records is not None,
            "ends": ends,
            "behind_open_transaction": self._behind_open_transaction(names["records"], ends),
            "snapshot": None if newest is None else _snapshot(newest),
            "run": self._run(),
            "rows_per_second": self._rate(),
            "newest_row_age_s": self._newest_row_age_s(),
            "windows": [dict(window) for window in self._windows],
            "warning": self._learning.warning,
            "by_class": [] if newest is None else self._by_class(newest.manifest.metrics.get("window") or {}),
            "dead_letters": self._letters,
            "dead_letters_not_ours": self._strays,
            **(_positions(newest, ends, None if records is None else records.topic_id) if newest else {"lag": None}),
        }

    def _behind_open_transaction(self, records: str, ends: list[int]) -> int:
        """Offsets of records that no read_committed reader sees yet, which the lag leaves out."""
        return sum(self._admin.behind_open_transaction(records, len(ends))) if ends else 0

    def _read(self, key: str, read: Callable[[], T], known: T, none: T) -> T:
        """What `read` gives where the topic has grown or is another since it was read last, else what is `known`."""
        there = self.ends[key]
        if there is None:
            self._known.pop(key, None)
            return none
        if self._known.get(key) == there:
            return known
        found = read()
        self._known[key] = there
        return found

    def _by_class(self, window: Mapping[str, Any]) -> list[Document]:
        """Of each class that the window has rows of, or that was told there: weight, precision, recall, F1; of several
        heads whose it is."""
        schema, found = self._job.schema, []
        for label, column in schema.labels:
            head = {"head": label} if schema.head_losses else {}
            matrix = window.get(f"{label}.{MATRIX}" if head else MATRIX) or np.zeros((0, 0))
            told = zip(schema.labelled.classes(label, column), by_class(matrix), strict=False)
            found += [{**head, "class": name, **figures} for name, figures in told if any(figures.values())]
        return found

    def _take(self, logs: list[RoundLog]) -> None:
        for log in logs:
            if not self._newest_logs or self._newest_logs[-1].lineage != log.lineage:
                self._newest_logs.clear()
                self._windows.clear()
                self._learning = Learning(self._job, _total_before(log))
            self._learning.add(log.metrics.get("total") or {}, log.slots)
            self._newest_logs.append(log)
            window = numbers(log.metrics.get("window") or {})
            if not window or (self._windows and self._windows[-1] == window):
                continue
            if self._windows and self._windows[-1]["rows"] < min(WINDOW_ROWS, window["rows"]):
                self._windows.pop()  # a run's first window is shown as it grows
            self._windows.append(window)

    def _rate(self) -> float | None:
        """Rows trained a second over the newest publications of a run; None where there are too few."""
        if not self._newest_logs:
            return None
        last = self._newest_logs[-1]
        if time.time() - last.created_ms / 1000 > _RATE_S:
            return 0.0
        since_ms = last.created_ms - 1000 * _RATE_S
        first, *others = (log for log in self._newest_logs if log.run == last.run and log.created_ms >= since_ms)
        elapsed_ms = last.created_ms - first.created_ms
        return 1000 * sum(log.rows_trained for log in others) / elapsed_ms if elapsed_ms > 0 else None

    def _newest_row_age_s(self) -> float | None:
        """Seconds since the newest row that is learned came to be, by its event time; None where no row has one."""
        newest_ms = max((log.newest_event_ms for log in self._newest_logs), default=-1)
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
            "worker_deaths": self._newest_logs[-1].worker_deaths if self._newest_logs else 0,
        }

    def _dead_letters(self) -> dict[str, int]:
        """Rows by cause, of the newest letters and those that came since the first look."""
        for found in read_dead_letters(self._job, begin=self._letters_at, newest=_LETTERS, on_stray=self._count_stray):
            self._count(found)
        return self._causes.most_common(_MAX_CAUSES)

    def _count_stray(self, stray: Stray) -> None:
        self._letters_at[stray.partition] = stray.offset + 1
        self._strays += 1

    def _count(self, found: Found) -> None:
        self._letters_at[found.partition] = found.offset + 1
        self._causes.add(found.letter)


def _total_before(log: RoundLog) -> Document | None:
    """The total figures where the first log that is seen of a lineage starts; None where they are not known."""
    is_first = int((log.metrics.get("total") or {}).get("rows", 0)) <= log.rows_trained
    return {} if is_first else None


def _snapshot(newest: Located) -> Document:
    manifest = newest.manifest
    return {
        "version": manifest.version,
        "digest": newest.digest.hex(),
        "lineage": manifest.lineage,
        "run": manifest.run.number,
        "round": manifest.round,
        "rows_seen": manifest.rows_seen,
        "age_s": round(max(0.0, time.time() - manifest.created_ms / 1_000), 3),
        "untrained": manifest.untrained,
        "workers": manifest.workers,
        "counts": manifest.counts._asdict(),
    }


def _in_files(manifest: Manifest) -> Document:
    """As _positions(): a file's lag are its rows that are not trained yet."""
    files = told_files(manifest.gaps, manifest.positions.topic_id)
    lags = [file.rows - at.offset - at.row for file, at in zip(files, manifest.positions.partitions, strict=True)]
    return {
        "same_topic": False,
        "positions": [at.offset for at in manifest.positions.partitions],
        "lag": sum(lags),
        "lags": lags,
        "metrics": dict(manifest.metrics),
    }


def _positions(newest: Located, ends: list[int], topic_id: str | None) -> Document:
    manifest = newest.manifest
    positions = [position.offset for position in manifest.positions.partitions]
    if is_files(manifest.positions.topic_id):
        return _in_files(manifest)
    positions += [0] * (len(ends) - len(positions))  # partitions added since
    same = topic_id == manifest.positions.topic_id
    lags = [max(0, end - position) for end, position in zip(ends, positions, strict=False)]
    return {
        "same_topic": same,
        "positions": positions,
        "lag": sum(lags) if same else None,
        "lags": lags if same else None,
        "metrics": dict(manifest.metrics),
    }
