"""The jobs of one Kafka: found by the names of its topics, each followed from when it is seen."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol, TypeVar

from streamtrain.job import Job
from streamtrain.job.kafka_settings import KafkaSettings
from streamtrain.kafka.admin import Admin
from streamtrain.topics.topic import topic
from streamtrain.ui.following import Following
from streamtrain.ui.scraping import Given, Scraping
from streamtrain.ui.system import System

LOOK_S = 3.0
_MOST = 64  # jobs followed at a time


class Beside(Protocol):
    """What a page looks at beside a job's following; made when it is first asked for."""

    def __init__(self, following: Following) -> None: ...

    def close(self) -> None: ...


B = TypeVar("B", bound=Beside)


class Cluster:
    """`jobs`: of job files, shown whether their topics are there or not; `metrics`: addresses of processes of jobs.
    Until close()."""

    def __init__(self, kafka: KafkaSettings, jobs: Sequence[Job] = (), metrics: Sequence[Given] = ()) -> None:
        self.bootstrap = kafka.bootstrap
        self.error = ""
        self.looked = threading.Event()
        self._kafka, self._jobs = kafka, {job.name: job for job in jobs}
        self._admin = Admin(kafka.bootstrap, {**kafka.common, **kafka.consumer})
        self._lock, self._closing = threading.Lock(), threading.Event()
        self._followed: dict[str, Following] = {}
        self._beside: dict[tuple[str, type], Beside] = {}
        for job in jobs:
            self.of(job.name)
        self.scraping = Scraping(metrics, self._system_of)
        self._thread = threading.Thread(target=self._look, name="ui-jobs", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self.scraping.close()
        for each in [*self._beside.values(), *self._followed.values()]:
            each.close()

    @property
    def jobs(self) -> list[Following]:
        """Those that are known, by name."""
        return [self._followed[name] for name in sorted(self._followed)]

    def of(self, name: str) -> Following | None:
        """One that is known, or of a job file."""
        with self._lock:
            if name not in self._followed and name in self._jobs:
                self._followed[name] = Following(name, self._kafka, self._jobs[name])
            return self._followed.get(name)

    def _system_of(self, name: str) -> System | None:
        following = self.of(name)
        return None if following is None else following.system

    def beside(self, following: Following, kind: type[B]) -> B:
        """The one of its kind for a job that is followed."""
        key = following.name, kind
        with self._lock:
            if key not in self._beside:
                self._beside[key] = kind(following)
            found = self._beside[key]
        assert isinstance(found, kind)
        return found

    def _look(self) -> None:
        while not self._closing.is_set():
            try:
                found = jobs_among(self._admin.names())
                self.error = ""
            except Exception as error:  # it goes on looking, whatever it was
                found, self.error = [], str(error) or type(error).__name__
            with self._lock:
                for name in found:
                    if name not in self._followed and len(self._followed) < _MOST:
                        self._followed[name] = Following(name, self._kafka)
            self.looked.set()
            self._closing.wait(LOOK_S)


def jobs_among(names: set[str]) -> list[str]:
    """The jobs whose snapshots and control are among these topics, which are never renamed."""
    snapshots, control = topic("snapshots"), topic("control")
    ending = snapshots.name("")
    found = (name.removesuffix(ending) for name in names if name.endswith(ending))
    return sorted(job for job in found if job and control.name(job) in names)
