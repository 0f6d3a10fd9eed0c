"""One job, followed from its topics alone: how it stands, its publications as points, what happened as marks.

A thread of its own looks twice a second while somebody watches, less often where all jobs are in sight, else every five
seconds. A Kafka that is away is an error that is shown, and looked for again.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Mapping
from typing import Any

from streamtrain.background import in_background
from streamtrain.clients.standing import JobStanding
from streamtrain.errors import KafkaBroken, KafkaUnreachable, StreamtrainError
from streamtrain.job import Job
from streamtrain.job.kafka_settings import KafkaSettings
from streamtrain.kafka.admin import Admin, TopicEnds
from streamtrain.kafka.round_logs import some_round_logs
from streamtrain.kafka.snapshots import SnapshotTopic
from streamtrain.topics.chunks import Located
from streamtrain.topics.manifest import Manifest
from streamtrain.topics.rounds import RoundLog
from streamtrain.ui import marks
from streamtrain.ui.delays import Delays
from streamtrain.ui.figures import figures_of, rows_of
from streamtrain.ui.marks import Mark
from streamtrain.ui.points import Points
from streamtrain.ui.system import System

log = logging.getLogger("streamtrain.ui")

WATCHED_S, GLANCED_S, ASIDE_S = 0.5, 2.0, 5.0  # between looks
_WATCHED_FOR_S = 10.0  # after somebody has asked
_LOGS = 2_000  # newest publications drawn one by one
_MOST_MARKS = 500
QUIET_S = 15.0  # without a publication a trainer is called quiet


class Following:
    """Follows job `name` until close(). `job`: of its file where there is one, else as its newest snapshot has it."""

    def __init__(self, name: str, kafka: KafkaSettings, job: Job | None = None) -> None:
        self.name = name
        self.publications, self.looks, self.system = Points(), Points(), System()
        self.standing: Mapping[str, Any] = {}
        self.manifest: Manifest | None = None
        self.error = ""
        self._is_away = False
        self.ready = threading.Event()  # the first look is over
        self._kafka, self._job = kafka, job
        self._marks: dict[tuple[str, str], Mark] = {}
        self._newest: RoundLog | None = None
        self._versions: dict[str, int] = {}  # the newest taken, by lineage
        self._watched_at_s = {every_s: -math.inf for every_s in (WATCHED_S, GLANCED_S)}
        self._answered = (0.0, 0)  # a time, and the end of the predictions
        self._closing, self._woken = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._follow, name=f"ui-{name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._woken.set()
        self._thread.join(10)

    def watched(self, every_s: float = WATCHED_S) -> None:
        """Somebody is looking: the next look comes soon, and others so often."""
        now_s = time.monotonic()
        if now_s - self._watched_at_s[every_s] > _WATCHED_FOR_S:
            self._woken.set()
        self._watched_at_s[every_s] = now_s

    @property
    def is_told(self) -> bool:
        """Whether there is a job."""
        return self._job is not None or self.manifest is not None

    @property
    def job(self) -> Job | None:
        """Of its file, else as the newest snapshot that was seen has it. Raises UserMistake where that has none."""
        if self._job is not None:
            return self._job
        return None if self.manifest is None else Job.from_effective(self.manifest.job_settings, self._kafka)

    @property
    def snapshots(self) -> SnapshotTopic:
        """Opened anew, for one thread and until its close()."""
        kafka = self._job.kafka if self._job is not None else self._kafka
        return SnapshotTopic(self.name, kafka.bootstrap, {**kafka.common, **kafka.consumer})

    @property
    def marks(self) -> list[Mark]:
        return sorted(self._marks.values(), key=lambda mark: mark.at_ms)[-_MOST_MARKS:]

    @property
    def scrapes(self) -> Points:
        """What the processes told of themselves."""
        return self.system.points

    @property
    def state(self) -> str:
        """training, quiet, ended, failed, or waiting where nothing is published yet; "away" where Kafka is, "broken"
        where its topics cannot be read; "idle" or "dead" where its processes say so, or do not."""
        if self.error:
            return "away" if self._is_away else "broken"
        run = self.standing.get("run")
        if not self.standing.get("snapshot"):
            return "waiting"
        if run is not None and run["ended"]:
            return "ended" if run["ended"]["exit_code"] == 0 else "failed"
        age_s = self.standing["snapshot"]["age_s"]
        said = self.system.state(age_s)
        if said == "dead":
            return said
        return "training" if age_s < QUIET_S else said or "quiet"

    # in the thread

    def _follow(self) -> None:
        while not self._closing.is_set():
            try:
                job = self._job or self._told()
                if job is None:
                    self._wait()
                    continue
                self._look_at(job)
            except Exception as error:  # whatever it is, the page shows it and the next look may be better
                if not isinstance(error, StreamtrainError):
                    log.exception("a look at %s", self.name)
                self._is_away = isinstance(error, KafkaUnreachable | KafkaBroken)
                self.error = str(error) or type(error).__name__
                self._wait()

    def _wait(self) -> None:
        self.ready.set()
        since_s = time.monotonic() - _WATCHED_FOR_S
        rhythms = [every_s for every_s, at_s in self._watched_at_s.items() if at_s > since_s]
        self._woken.wait(min(rhythms, default=ASIDE_S))
        self._woken.clear()

    def _told(self) -> Job | None:
        """The job as its newest snapshot has it; None where there is none yet."""
        with SnapshotTopic(self.name, self._kafka.bootstrap, self._settings) as snapshots:
            newest = snapshots.newest_manifest()
        self.error = ""
        return None if newest is None else Job.from_effective(newest.manifest.job_settings, self._kafka)

    @property
    def _settings(self) -> dict[str, str]:
        return {**self._kafka.common, **self._kafka.consumer}

    def _look_at(self, job: Job) -> None:
        settings = {**job.kafka_consumer(), "bootstrap.servers": job.kafka.bootstrap}
        admin = Admin(job.kafka.bootstrap, job.kafka_admin())
        delays = Delays(job, admin)
        with JobStanding(job, _LOGS) as standing:
            while not self._closing.is_set():
                found = standing.look()
                if standing.new_logs and not self._versions:
                    rounds = str(job.topic("rounds").name)
                    in_background(self._take_older, settings, rounds, name=f"ui-older-{self.name}")
                self._take_logs(standing.new_logs)
                if standing.control is not None:
                    self._mark(*marks.of_control(standing.control))
                self._take_manifest(standing.newest)
                self._take_look(standing.ends["predictions"], found, delays)
                self.standing, self.error = found, ""
                self._wait()

    def _take_logs(self, logs: list[RoundLog]) -> None:
        for log in logs:
            before = self._newest
            if log.version <= self._versions.get(log.lineage, 0):
                continue  # read again, by clients made anew
            self._versions[log.lineage] = log.version
            rows = rows_of(log)
            self.publications.add(log.created_ms, rows, figures_of(log, before))
            self._mark(*marks.of_log(log, before, rows))
            self._newest = log

    def _take_older(self, settings: Mapping[str, object], rounds: str) -> None:
        """Some of those before the newest, in a thread of its own."""
        older = [(log.created_ms, rows_of(log), figures_of(log)) for log in some_round_logs(settings, rounds, _LOGS)]
        if older:
            self.publications.put_before(older)

    def _take_manifest(self, newest: Located | None) -> None:
        if newest is not None and newest.manifest is not self.manifest:
            self.manifest = newest.manifest
            self._mark(*marks.of_manifest(newest.manifest))

    def _take_look(self, predictions: TopicEnds | None, found: Mapping[str, Any], delays: Delays) -> None:
        """What no topic keeps: how far behind the trainer is, predictions a second and how long they take."""
        figures = {f"lag.{partition}": float(lag) for partition, lag in enumerate(found.get("lags") or [])}
        ends, now_s = [] if predictions is None else predictions.ends, time.time()
        end = sum(ends)
        then_s, before = self._answered
        if then_s and now_s > then_s:
            figures["predictions_per_second"] = max(0, end - before) / (now_s - then_s)
        self._answered = now_s, end
        figures |= delays.look(ends)
        self.looks.add(int(now_s * 1000), (found["snapshot"] or {}).get("rows_seen", -1), figures)

    def _mark(self, *found: Mark) -> None:
        for mark in found:
            self._marks.setdefault((mark.kind, mark.text), mark)

