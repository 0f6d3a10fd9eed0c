"""The jobs of one Kafka: found by the names of its topics, and looked at by one thread for all."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence, Set
from typing import Protocol, TypeVar

from streamtrain.background import in_background
from streamtrain.job import Job
from streamtrain.job.kafka_settings import KafkaSettings
from streamtrain.topics.topic import topic
from streamtrain.ui.followed_job import Following
from streamtrain.ui.job_reader import Reader
from streamtrain.ui.scraping import Given, Scraping
from streamtrain.ui.system import System

GLANCED_S, ASIDE_S = 2.0, 5.0  # between looks at all jobs: while somebody sees them, and else
_GLANCED_FOR_S = 10.0


class Beside(Protocol):
    """A reader that a page uses beside a job's Following. It is created at its first use."""

    def __init__(self, following: Following) -> None: ...

    def close(self) -> None: ...

    @property
    def stays(self) -> bool:
        """True if it is kept when nobody looks at the job any more."""


B = TypeVar("B", bound=Beside)


class Cluster:
    """`jobs`: of job files, shown whether their topics are there or not; `metrics`: addresses of processes of jobs.

    Of both and of what is found, jobs whose names begin with `prefix`. Until close().
    """

    def __init__(
        self, kafka: KafkaSettings, jobs: Sequence[Job] = (), metrics: Sequence[Given] = (), prefix: str = ""
    ) -> None:
        self.bootstrap = kafka.bootstrap
        self.error = ""
        self.looked = threading.Event()
        self._kafka, self._prefix = kafka, prefix
        self._readers = [Reader(kafka)]  # one for each user that the job files name
        self._lock, self._closing, self._woken = threading.Lock(), threading.Event(), threading.Event()
        self._glanced_s = -math.inf
        self._followed: dict[str, Following] = {}
        self._beside: dict[tuple[str, type], Beside] = {}
        for job in jobs:
            self._add(job.name, job)
        self.scraping = Scraping(metrics, self._system_of)
        self._thread = threading.Thread(target=self._follow, name="ui-jobs", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._woken.set()
        self.scraping.close()
        for beside in self._beside.values():
            beside.close()
        for each in self.jobs:
            each.close()
        self._thread.join(10)
        for reader in self._readers:
            reader.close()

    @property
    def jobs(self) -> list[Following]:
        """Returns the known jobs, by name."""
        return [self._followed[name] for name in sorted(self._followed)]

    def glanced(self) -> None:
        """Somebody is looking at all jobs."""
        if time.monotonic() - self._glanced_s > _GLANCED_FOR_S:
            self._woken.set()
        self._glanced_s = time.monotonic()

    def of(self, name: str) -> Following | None:
        """One that is known."""
        return self._followed.get(name)

    def _add(self, name: str, job: Job | None = None) -> None:
        if name.startswith(self._prefix) and name not in self._followed:
            self._followed[name] = Following(name, self._kafka, job)

    def _system_of(self, name: str) -> System | None:
        following = self.of(name)
        return None if following is None else following.system

    def beside(self, following: Following, kind: type[B]) -> B:
        """The one of its kind for a job that is watched."""
        key = following.name, kind
        with self._lock:
            if key not in self._beside:
                self._beside[key] = kind(following)
            found = self._beside[key]
        assert isinstance(found, kind)
        return found

    # in the thread

    def _follow(self) -> None:
        while not self._closing.is_set():
            try:
                names = self._readers[0].admin.names()
                self.error = ""
            except Exception as error:  # it goes on looking, whatever it was
                self._fail(error)
            else:
                self._look(names)
            self.looked.set()
            self._let_go()
            is_glanced = time.monotonic() - self._glanced_s < _GLANCED_FOR_S
            self._woken.wait(GLANCED_S if is_glanced else ASIDE_S)
            self._woken.clear()

    def _fail(self, error: Exception) -> None:
        self.error = str(error) or type(error).__name__
        for each in self.jobs:
            if not each.is_watched:
                each.failed(error)

    def _look(self, names: Set[str]) -> None:
        for name in self._found(names):
            self._add(name)
        self.looked.set()
        for each in self.jobs:
            if not any(reader.kafka == each.kafka for reader in self._readers):
                try:
                    self._readers.append(Reader(each.kafka))
                except Exception as error:  # a certificate that is not there, say
                    each.failed(error)
        for reader in self._readers:
            reader.look([each for each in self.jobs if each.kafka == reader.kafka], names)

    def _found(self, names: Set[str]) -> list[str]:
        return jobs_among(names)

    def _let_go(self) -> None:
        """Drops what pages looked at beside jobs that nobody looks at any more."""
        with self._lock:
            for key, each in list(self._beside.items()):
                if not (each.stays or self._followed[key[0]].is_watched):
                    in_background(self._beside.pop(key).close, name="ui-let-go")


def jobs_among(names: Set[str]) -> list[str]:
    """The jobs whose snapshots and control are among these topics, which are never renamed."""
    snapshots, control = topic("snapshots"), topic("control")
    ending = snapshots.name("")
    found = (name.removesuffix(ending) for name in names if name.endswith(ending))
    return sorted(job for job in found if job and control.name(job) in names)
