"""One job, from its topics alone: how it stands, and in detail its publications as points and what happened as marks.

The reader of all jobs looks at it now and then. A thread of its own reads the detail, twice a second, from when
somebody looks at the job until nobody has for a while; then the detail is let go.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Mapping
from typing import Any

from streamtrain.background import in_background
from streamtrain.clients.glance import TOPICS, Glance
from streamtrain.clients.status import JobStatus
from streamtrain.errors import KafkaBroken, KafkaUnreachable, StreamtrainError
from streamtrain.job import Job
from streamtrain.job.kafka_settings import KafkaSettings
from streamtrain.kafka.admin import TopicEnds
from streamtrain.kafka.reading_clients import Reading
from streamtrain.kafka.round_logs import some_round_logs
from streamtrain.kafka.snapshot_reader import SnapshotTopic
from streamtrain.topics.manifest import Manifest
from streamtrain.topics.publication_logs import RoundLogs
from streamtrain.ui import marks
from streamtrain.ui.delays import Delays
from streamtrain.ui.figures import figures_of, rows_of
from streamtrain.ui.marks import Mark
from streamtrain.ui.points import MOST_POINTS, Points
from streamtrain.ui.system import System

log = logging.getLogger("streamtrain.ui")

WATCHED_S, ASIDE_S = 0.5, 5.0  # between looks
LET_GO_S = 120.0  # after somebody has looked at the job
_WATCHED_FOR_S = 10.0
_LOGS = 2_000  # newest publications drawn one by one
_MOST_MARKS = 500
_ASIDE_POINTS = 256  # looks that are kept of a job that nobody looks at
QUIET_S = 15.0  # without a publication a trainer is called quiet
Ends = Mapping[str, TopicEnds | None]  # by the topic's name


class Following:
    """Job `name`, until close(). `job`: of its file where there is one, else as its newest snapshot has it."""

    def __init__(self, name: str, kafka: KafkaSettings, job: Job | None = None) -> None:
        self.name = name
        self.kafka = kafka if job is None else job.kafka
        self.publications, self.looks, self.system = Points(), Points(_ASIDE_POINTS), System()
        self.job_status: Mapping[str, Any] = {}
        self.manifest: Manifest | None = None
        self.error = ""
        self.failed_s = -math.inf  # the last look that failed, monotonic
        self._is_away = False
        self.ready = threading.Event()  # the first look is over
        self.detailed = threading.Event()  # what there is of the detail is read
        self._job = job
        self._glance: Glance | None = None  # the reader's; None while its topics are not known, or the job has a thread
        self._marks: dict[tuple[str, str], Mark] = {}
        self._newest: RoundLogs | None = None
        self._versions: dict[str, int] = {}  # the newest taken, by lineage
        self._answered = (0.0, 0)  # a time, and the end of the predictions
        self._watched_at_s = -math.inf
        self._closing, self._woken = threading.Event(), threading.Event()
        self._lock = threading.Lock()  # of the thread's beginning and end
        self._thread: threading.Thread | None = None

    def close(self) -> None:
        self._closing.set()
        self._woken.set()
        if (thread := self._thread) is not None:
            thread.join(10)

    def watched(self) -> None:
        """Somebody is looking: the detail is read, the next look comes soon, and others often."""
        with self._lock:
            now_s = time.monotonic()
            if now_s - self._watched_at_s > _WATCHED_FOR_S:
                self._woken.set()
            self._watched_at_s = now_s
            if self._thread is None and not self._closing.is_set():
                self.looks.keep(MOST_POINTS)
                self._thread = threading.Thread(target=self._follow, name=f"ui-{self.name}", daemon=True)
                self._thread.start()

    @property
    def is_watched(self) -> bool:
        """True while the detail is there, or being read."""
        return self._thread is not None

    @property
    def is_known(self) -> bool:
        """Returns True if the job is known, from its file or a snapshot."""
        return self._job is not None or self.manifest is not None

    @property
    def job(self) -> Job | None:
        """Returns the job of its file, else that of the newest snapshot seen; None if there is neither.

        Raises UserMistake if that snapshot has no job.
        """
        if self._job is not None:
            return self._job
        return None if self.manifest is None else Job.from_effective(self.manifest.job_settings, self.kafka)

    @property
    def snapshots(self) -> SnapshotTopic:
        """Opened anew, for one thread and until its close()."""
        return SnapshotTopic(self.name, self.kafka.bootstrap, {**self.kafka.common, **self.kafka.consumer})

    @property
    def marks(self) -> list[Mark]:
        return sorted(self._marks.values(), key=lambda mark: mark.at_ms)[-_MOST_MARKS:]

    @property
    def scrapes(self) -> Points:
        """Returns the points that the processes reported about themselves."""
        return self.system.points

    @property
    def state(self) -> str:
        """training, quiet, ended, failed, or waiting where nothing is published yet; "away" where Kafka is, "broken"
        where its topics cannot be read; "idle" or "dead" where its processes say so, or do not."""
        if self.error:
            return "away" if self._is_away else "broken"
        run = self.job_status.get("run")
        if not self.job_status.get("snapshot"):
            return "waiting"
        if run is not None and run["ended"]:
            return "ended" if run["ended"]["exit_code"] == 0 else "failed"
        age_s = self.job_status["snapshot"]["age_s"]
        said = self.system.state(age_s)
        if said == "dead":
            return said
        return "training" if age_s < QUIET_S else said or "quiet"

    def failed(self, error: Exception) -> None:
        """A look was in vain: the page shows why, whatever it is, and the next one may be better."""
        if not isinstance(error, StreamtrainError):
            log.error("a look at %s", self.name, exc_info=error)
        self._is_away = isinstance(error, KafkaUnreachable | KafkaBroken)
        self.error, self.failed_s = str(error) or type(error).__name__, time.monotonic()
        self.ready.set()

    # in the thread of all jobs' reader

    def rests(self) -> bool:
        """Returns True while the job's own thread looks, so that the reader need not."""
        if self.is_watched:
            self._glance = None
        return self.is_watched

    @property
    def end_topics(self) -> list[str]:
        """The topics whose ends look() takes."""
        return [f"{self.name}.snapshots"] if self._glance is None else list(self._glance.topics.values())

    def look(self, reading: Reading, ends: Ends) -> bool:
        """Reads what the page of all jobs shows; gives whether there is more that is wanted only now.

        Raises what a Glance does, UserMistake where the newest snapshot has no job.
        """
        if self._glance is not None:
            self._take_look(self._glance, self._glance.take(ends), {})
            return False
        job, there = self._job, ends.get(f"{self.name}.snapshots")
        if job is None and there is not None and any(there.ends):
            job = self._read_job(
                SnapshotTopic(self.name, reading.bootstrap, reading.settings, clients=reading.consumer)
            )
        if job is not None:
            topics = {key: str(job.topic(key).name) for key in TOPICS}
            self._glance = Glance(self.name, topics, reading)
            return True
        self.error = ""
        self.ready.set()
        return False

    def _read_job(self, snapshots: SnapshotTopic) -> Job | None:
        """Returns the job as its newest snapshot has it; None where there is none yet."""
        newest = snapshots.newest_manifest()
        return None if newest is None else Job.from_effective(newest.manifest.job_settings, self.kafka)

    # in the thread of its own

    def _follow(self) -> None:
        while self._goes_on():
            try:
                job = self._job
                if job is None:
                    with self.snapshots as snapshots:
                        job = self._read_job(snapshots)
                if job is not None:
                    self._look_at(job)
                    continue
                self.error = ""
                self.ready.set()
            except Exception as error:
                self.failed(error)
            self.detailed.set()
            self._wait()

    def _goes_on(self) -> bool:
        """Returns False when nobody looks any more: the detail is let go, and the next visitor gets another thread."""
        with self._lock:
            if self._is_active():
                return True
            self.publications.clear()
            self.looks.keep(_ASIDE_POINTS)
            self._marks, self._newest, self._versions = {}, None, {}
            self.detailed.clear()
            self._thread = None
            return False

    def _is_active(self) -> bool:
        return not self._closing.is_set() and time.monotonic() - self._watched_at_s < LET_GO_S

    def _wait(self) -> None:
        is_watched = time.monotonic() - self._watched_at_s < _WATCHED_FOR_S
        self._woken.wait(WATCHED_S if is_watched else ASIDE_S)
        self._woken.clear()

    def _look_at(self, job: Job) -> None:
        settings = {**job.kafka_consumer(), "bootstrap.servers": job.kafka.bootstrap}
        with JobStatus(job, _LOGS) as job_status:
            delays, marked = Delays(job, job_status.admin), None
            while self._is_active():
                found = job_status.look()
                if job_status.new_logs and not self._versions:
                    rounds = str(job.topic("rounds").name)
                    in_background(self._take_older, settings, rounds, self._thread, name=f"ui-older-{self.name}")
                elif not self._versions:
                    self.detailed.set()
                self._take_logs(job_status.new_logs)
                if job_status.control is not None:
                    self._mark(*marks.of_control(job_status.control))
                if job_status.newest is not None and job_status.newest is not marked:
                    marked = job_status.newest
                    self._mark(*marks.of_manifest(marked.manifest))
                self._take_look(job_status, found, delays.look(_ends(job_status, "predictions")))
                self._wait()

    def _take_logs(self, logs: list[RoundLogs]) -> None:
        for log in logs:
            before = self._newest
            if log.version <= self._versions.get(log.lineage, 0):
                continue  # read again, by clients made anew
            self._versions[log.lineage] = log.version
            rows = rows_of(log)
            self.publications.add(log.created_ms, rows, figures_of(log, before))
            self._mark(*marks.of_log(log, before, rows))
            self._newest = log

    def _take_older(self, settings: Mapping[str, object], rounds: str, whose: threading.Thread | None) -> None:
        """Some of those before the newest, in a thread of its own."""
        try:
            found = [
                (log.created_ms, rows_of(log), figures_of(log)) for log in some_round_logs(settings, rounds, _LOGS)
            ]
            with self._lock:
                if found and self._thread is whose:  # else the detail is let go
                    self.publications.put_before(found)
        finally:
            self.detailed.set()

    def _take_look(self, glance: Glance, found: Mapping[str, Any], more: Mapping[str, float]) -> None:
        """Adds a point of what no topic keeps: the trainer's lag, predictions per second, and what is in `more`."""
        if glance.newest is not None:
            self.manifest = glance.newest.manifest
        figures = {f"lag.{partition}": float(lag) for partition, lag in enumerate(found.get("lags") or [])}
        end, now_s = sum(_ends(glance, "predictions")), time.time()
        then_s, before = self._answered
        if then_s and now_s > then_s:
            figures["predictions_per_second"] = max(0, end - before) / (now_s - then_s)
        self._answered = now_s, end
        self.looks.add(int(now_s * 1000), (found["snapshot"] or {}).get("rows_seen", -1), {**figures, **more})
        self.job_status, self.error = found, ""
        self.ready.set()

    def _mark(self, *found: Mark) -> None:
        for mark in found:
            self._marks.setdefault((mark.kind, mark.text), mark)


def _ends(glance: Glance, key: str) -> list[int]:
    there = glance.ends[key]
    return [] if there is None else there.ends
