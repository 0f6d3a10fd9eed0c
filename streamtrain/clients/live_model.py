"""A model that follows a job's newest snapshot in the background and predicts in this process, from any thread."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from streamtrain.clients.scorer import Scorer
from streamtrain.errors import KafkaUnreachable, StreamtrainError, UserMistake
from streamtrain.kafka.chunks import Stored
from streamtrain.kafka.follower import follow
from streamtrain.kafka.snapshots import SnapshotTopic

log = logging.getLogger("streamtrain.live_model")

_RETRY_S = 1.0  # after no broker answered
_STOP_S = 15.0  # a close waits this long for a call to Kafka to end


class LiveModel:
    """Follows job `job` on Kafka at `bootstrap`; `kafka` holds librdkafka properties. No job file is needed.

    Loads the newest snapshot in a thread of its own and takes each newer one over between two predictions. Before the
    first trained snapshot it is not ready. Made in the process that uses it: a fork leaves its thread behind.
    """

    def __init__(self, job: str, bootstrap: str, kafka: Mapping[str, object] | None = None) -> None:
        self.job = job
        self.bootstrap = bootstrap
        self._topic = SnapshotTopic(job, bootstrap, kafka)
        self._process = os.getpid()
        self._scorer: Scorer | None = None
        self._idle: Scorer | None = None
        self._failure: StreamtrainError | None = None
        self._stopping = threading.Event()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=f"streamtrain-live-{job}", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def predict(self, rows: Any) -> Any:
        """The answer to a dict of one row, or a list of answers to a list of dicts, a dict of arrays or a frame.

        An answer is as on the predictions topic: `{"prediction": 0.83}`, with classes also their probabilities. The
        label and fields not named by the job may be there or not. Raises RecordError naming the row and column that
        cannot be used, UserMistake before the first trained snapshot, after close() and in a forked process.
        """
        if os.getpid() != self._process:
            self._refuse_fork()
        scorer = self._scorer
        if scorer is None:
            raise self._not_ready("predict")
        return scorer.predict(rows)

    def wait_ready(self, timeout_s: float = 30) -> None:
        """Returns when a trained snapshot is loaded; raises what hindered it (KafkaUnreachable, SnapshotError …)."""
        self._refuse_fork()
        with self._changed:
            self._changed.wait_for(lambda: self.ready or self._stopping.is_set(), timeout_s)
            if not self.ready:
                raise self._not_ready(f"wait_ready({timeout_s})")

    @property
    def ready(self) -> bool:
        return self._scorer is not None

    @property
    def version(self) -> int | None:
        """Of the snapshot in use; None before the first."""
        scorer = self._scorer
        return None if scorer is None else scorer.version

    @property
    def digest(self) -> str | None:
        """The SHA-256 of its manifest, hex."""
        scorer = self._scorer
        return None if scorer is None else scorer.digest

    @property
    def age_s(self) -> float | None:
        """Seconds since the snapshot in use was made, by this machine's clock; None before the first."""
        scorer = self._scorer
        return None if scorer is None else max(0.0, time.time() - scorer.created_ms / 1000)

    def close(self) -> None:
        """Stops following; predictions are refused from then on. Safe to call again."""
        if os.getpid() != self._process:
            return  # the thread and the consumer are the parent's
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join(_STOP_S)
        self._scorer = self._idle = None

    def _run(self) -> None:
        """The background thread: everything Kafka happens here."""
        with self._topic:
            while not self._stopping.is_set():
                try:
                    for stored in self._follow():
                        self._take(stored)
                except KafkaUnreachable as error:
                    log.warning("%s; trying again", error)
                    self._failure = error
                    self._stopping.wait(_RETRY_S)
                except Exception as error:  # nobody else would hear of it
                    log.exception("following %s ended", self.job)
                    self._failure = error if isinstance(error, StreamtrainError) else StreamtrainError(repr(error))
                    self._stopping.wait(_RETRY_S)

    def _follow(self) -> Iterator[Stored]:
        return follow(
            self._topic, self._stopping.is_set, newest_only=True, after=self.version or 0, reject=self._rejected
        )

    def _rejected(self, text: str) -> None:
        log.warning("%s", text)
        self._failure = StreamtrainError(text)

    def _take(self, stored: Stored) -> None:
        """Loads a snapshot beside the one in use, then swaps; the former one's memory serves the next."""
        if stored.manifest.untrained:
            return
        try:
            scorer = (
                self._idle if self._idle is not None and self._idle.fits(stored.manifest) else Scorer(stored.manifest)
            )
            scorer.load(stored)
        except StreamtrainError as error:
            self._rejected(f"snapshot {stored.manifest.version}: {error}; keeping snapshot {self.version}")
            return
        with self._changed:
            self._idle, self._scorer = self._scorer, scorer
            self._failure = None
            self._changed.notify_all()

    def _refuse_fork(self) -> None:
        if os.getpid() != self._process:
            raise UserMistake(
                f"LiveModel({self.job!r}): made in process {self._process}, used after a fork in process "
                f"{os.getpid()}, where its background thread does not run; make it in the process that uses it"
            )

    def _not_ready(self, where: str) -> StreamtrainError:
        what = f"LiveModel({self.job!r}).{where}"
        if self._stopping.is_set():
            return UserMistake(f"{what}: expected an open model, got a closed one")
        if self._failure is not None:
            return type(self._failure)(f"{what}: {self._failure}")
        return UserMistake(
            f"{what}: expected a trained snapshot in {self._topic.name} at {self.bootstrap}, found none yet; "
            "call wait_ready() first, and check that a trainer runs (streamtrain train)"
        )
