"""A model that follows a job's newest snapshot in the background and predicts in this process, from any thread."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, overload

from numpy.typing import NDArray

from streamtrain._native import KafkaCode
from streamtrain.clients.answers import ModelAnswer, Outcome
from streamtrain.clients.arguments import address, job_name, version_of
from streamtrain.clients.forks import after_fork, keep_for_ever
from streamtrain.clients.scorer import Errors, Scorer
from streamtrain.closing import Closing
from streamtrain.columns.served import Served
from streamtrain.compute.torch import TorchModule
from streamtrain.errors import KafkaUnreachable, StreamtrainError, UserMistake
from streamtrain.kafka.error_codes import explain
from streamtrain.kafka.following import Following
from streamtrain.kafka.snapshot_reader import SnapshotTopic, Version
from streamtrain.topics.chunks import Stored
from streamtrain.topics.predictions import RowAnswer

log = logging.getLogger("streamtrain.live_model")

_PROBE_S = 1.0  # for an answer, while there is no connection

Row = Mapping[str, Any]
Many = Mapping[str, NDArray[Any] | list[Any] | tuple[Any, ...]] | Iterable[Row]  # frames too, which have no one type


class LiveModel(Closing, Following[Scorer | None]):
    """Follows job `job` on Kafka at `bootstrap`; `kafka` holds librdkafka properties. No job file is needed.

    A model that is a PyTorch module needs it as `module`: a torch.nn.Module, what makes one, or the
    "package.module:Net" that names it; its parameters are then the snapshot's.

    `version`: a number from 1 stays at that snapshot, "best" at the best one by early stopping, whichever the newest
    snapshot names as such. None follows the newest. Where the topic does not hold it, wait_ready() raises UserMistake.

    Loads the newest snapshot in a thread of its own; a call uses one snapshot from its first row to its last, and the
    next call a newer one. Any number of threads may predict at once. Before the first trained snapshot it is not
    ready. Made in the process that uses it: a fork leaves its thread behind. Raises UserMistake for a name or an
    address that can be none.
    """

    def __init__(
        self,
        job: str,
        bootstrap: str,
        kafka: Mapping[str, object] | None = None,
        *,
        module: Any = None,
        version: Version | None = None,
    ) -> None:
        self.job = job_name("LiveModel", job)
        self.bootstrap = address("LiveModel", bootstrap)
        topic, stays_at = SnapshotTopic(job, bootstrap, kafka, on_error=self._said), version_of("LiveModel", version)
        super().__init__(topic, f"streamtrain-live-{job}", stays_at)
        self._process = os.getpid()
        self._network = None if module is None else TorchModule.of(module)
        after_fork(self, LiveModel._leave_to_parent)
        self._scorer: Scorer | None = None
        self._error: StreamtrainError | None = None
        self._connected = False
        self._probe_at_s = 0.0
        self._changed = threading.Condition()
        self._waiting: list[Callable[[], object]] = []
        self._thread.start()

    def __repr__(self) -> str:
        scorer = self._scorer
        state = "closed" if self._stopping.is_set() else "waiting for a snapshot"
        if scorer is not None:
            state = f"version {scorer.version}, {self._age_s(scorer):.1f} s old"
        lost = "" if self._connected or self._stopping.is_set() else ", no connection"
        return f"<LiveModel {self.job!r}: {state}{lost}>"

    # fmt: off
    @overload
    def predict(self, rows: Many, errors: Literal["raise"] = ...) -> list[RowAnswer]: ...
    @overload
    def predict(self, rows: Many, errors: Literal["return"]) -> list[Outcome]: ...
    @overload
    def predict(self, rows: Row, errors: Literal["raise"] = ...) -> RowAnswer: ...
    @overload
    def predict(self, rows: Row, errors: Literal["return"]) -> Outcome: ...
    @overload
    def predict(self, rows: Any, errors: Errors = ...) -> Any: ...
    # fmt: on
    def predict(self, rows: Any, errors: Errors = "raise") -> Any:
        """The answer to a dict of one row, or a list of answers to many dicts, a dict of arrays or a frame.

        An answer is as on the predictions topic: `{"prediction": 0.83}`, with classes also their probabilities; of
        several heads `{"prediction": {"late": 0.83, "delay": 12.5}}`, which is a HeadsAnswer to a type checker. All
        answers of a call are one snapshot's. None, NaN and absent are missing; the label and fields not named by the
        job may be there or not. Raises RecordError naming the row and column that cannot be used, or with
        errors="return" puts it where that row's answer would be. Raises UserMistake before the first trained snapshot,
        after close() and in a forked process.
        """
        return self._used("predict").predict(rows, errors)

    # fmt: off
    @overload
    def answer(self, rows: Many, errors: Literal["raise"] = ...) -> ModelAnswer[list[RowAnswer]]: ...
    @overload
    def answer(self, rows: Many, errors: Literal["return"]) -> ModelAnswer[list[Outcome]]: ...
    @overload
    def answer(self, rows: Row, errors: Literal["raise"] = ...) -> ModelAnswer[RowAnswer]: ...
    @overload
    def answer(self, rows: Row, errors: Literal["return"]) -> ModelAnswer[Outcome]: ...
    @overload
    def answer(self, rows: Any, errors: Errors = ...) -> ModelAnswer[Any]: ...
    # fmt: on
    def answer(self, rows: Any, errors: Errors = "raise") -> ModelAnswer[Any]:
        """Predicts as predict(), and adds the version, digest and age of the snapshot that made the values."""
        scorer = self._used("answer")
        return ModelAnswer(scorer.predict(rows, errors), scorer.version, scorer.digest, scorer.created_ms)

    def wait_ready(self, timeout_s: float = 30) -> None:
        """Returns when a trained snapshot is loaded; raises what hindered it (KafkaUnreachable, SnapshotError …)."""
        self._refuse_fork()
        with self._changed:
            self._changed.wait_for(lambda: self.ready or self._in_vain, timeout_s)
        if not self.ready:
            raise self._not_ready(f"wait_ready({timeout_s:g})", waited=True)

    async def aready(self, timeout_s: float = 30) -> None:
        """Waits as wait_ready(), while the event loop goes on."""
        self._refuse_fork()
        loop, woken = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(woken.set)

        with self._changed:
            self._waiting.append(wake)
            if self.ready or self._in_vain:
                woken.set()
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(woken.wait(), timeout_s)
        finally:
            with self._changed:
                self._waiting.remove(wake)
        if not self.ready:
            raise self._not_ready(f"aready({timeout_s:g})", waited=True)

    @property
    def ready(self) -> bool:
        return self._scorer is not None

    @property
    def _in_vain(self) -> bool:
        """Returns whether waiting is useless: it is closed, or the topic does not hold the version that is named."""
        return self._stopping.is_set() or (self._stays_at is not None and isinstance(self._error, UserMistake))

    @property
    def stays_at(self) -> Version | None:
        """The version that was asked for; None follows the newest."""
        return self._stays_at

    @property
    def connected(self) -> bool:
        """Returns whether Kafka has answered and has not been lost since. Without it the model in use stays, growing
        old."""
        return self._connected

    @property
    def error(self) -> StreamtrainError | None:
        """Returns what went wrong last: no answer from Kafka, a snapshot that is not whole. None when it is fixed."""
        return self._error

    @property
    def version(self) -> int | None:
        """Returns the version of the snapshot in use; None before the first."""
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
        return None if scorer is None else self._age_s(scorer)

    def close(self) -> None:
        """Stops following; predictions are refused from then on. Safe to call again."""
        if os.getpid() != self._process:
            return  # the thread and the consumer are the parent's
        self._stopping.set()
        self._tell()
        self._end()
        self._scorer = None
        self._connected = False

    def _prepared(self, stored: Stored) -> Scorer | None:
        """None of an untrained snapshot that nobody has named, which is checked all the same."""
        before = None if self._scorer is None else self._scorer.served
        scorer = self._scorer_of(Served.of(stored.manifest, stored.digest, stored.model, before, self._network))
        return None if stored.manifest.untrained and self._stays_at is None else scorer

    def _scorer_of(self, served: Served) -> Scorer:
        """Returns the scorer that calls use."""
        return Scorer(served)

    def _take(self, scorer: Scorer | None) -> None:
        """Swaps it for the one in use: calls that run keep theirs."""
        if scorer is not None:
            self._scorer, self._error = scorer, None
            self._tell()

    def _failed(self, error: Exception) -> bool:
        if isinstance(error, StreamtrainError):
            self._lost(error)
        else:
            log.error("following %s ended", self.job, exc_info=error)
            self._error = StreamtrainError(repr(error))
        return True

    def _refused(self, text: str) -> None:
        log.warning("%s", text)
        self._error = StreamtrainError(text)

    def _answered(self) -> None:
        if not self._connected and isinstance(self._error, KafkaUnreachable):
            log.info("Kafka at %s answers again", self.bootstrap)
            self._error = None
        self._connected = True

    def _looked(self) -> None:
        if not self._connected and time.monotonic() > self._probe_at_s:
            if self._topic.answers(_PROBE_S):
                self._answered()
            self._probe_at_s = time.monotonic() + _PROBE_S

    def _tell(self) -> None:
        with self._changed:
            self._changed.notify_all()
            for wake in self._waiting:
                wake()

    def _said(self, code: int, text: str) -> None:
        """Handles what librdkafka reports beside its answers."""
        if code == KafkaCode.ALL_BROKERS_DOWN or not self._connected:
            self._lost(explain(code, text, f"topic {self._topic.name}", self.bootstrap))

    def _lost(self, error: StreamtrainError) -> None:
        if self._connected or type(self._error) is not type(error):
            log.warning("%s; trying again", error)
        self._connected, self._error = False, error
        self._tell()

    def _used(self, call: str) -> Scorer:
        """The scorer a call works with to its end."""
        if os.getpid() != self._process:
            self._refuse_fork()
        scorer = self._scorer
        if scorer is None:
            raise self._not_ready(call)
        return scorer

    def _leave_to_parent(self) -> None:
        """In a forked child, where neither the lock nor the threads are of use."""
        self._changed = threading.Condition()
        keep_for_ever(self._topic)

    def _refuse_fork(self) -> None:
        if os.getpid() != self._process:
            raise UserMistake(
                f"LiveModel({self.job!r}): made in process {self._process}, used after a fork in process "
                f"{os.getpid()}, where its background thread does not run; make it in the process that uses it"
            )

    def _not_ready(self, where: str, waited: bool = False) -> StreamtrainError:
        what = f"LiveModel({self.job!r}).{where}"
        if self._stopping.is_set():
            return UserMistake(f"{what}: expected an open model, got a closed one")
        if self._error is not None:
            return type(self._error)(f"{what}: {self._error}")
        if waited and not self._connected:
            return KafkaUnreachable(f"{what}: expected an answer from Kafka at {self.bootstrap}, got none yet")
        return UserMistake(
            f"{what}: expected a trained snapshot in {self._topic.name} at {self.bootstrap}, found none yet; "
            "call wait_ready() first, and check that a trainer runs (streamtrain train)"
        )

    @staticmethod
    def _age_s(scorer: Scorer) -> float:
        return max(0.0, time.time() - scorer.created_ms / 1000)
