"""The coordinator's loop: gathers the log of the rounds that are averaged, publishes them, and beats.

Given the lineage it goes on from, its end of the ring and a publisher; knows no Kafka and never waits for a
publication.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import replace
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from streamtrain import _native
from streamtrain.background import in_background
from streamtrain.compute.early_stopping import NAME
from streamtrain.compute.quality import Quality
from streamtrain.compute.state import view, views
from streamtrain.compute.windows import Windows
from streamtrain.errors import CheckFailed
from streamtrain.job import Job
from streamtrain.job.learning import Learning
from streamtrain.log import get_logger
from streamtrain.run.judging import Judging
from streamtrain.run.lineage import Lineage
from streamtrain.run.named_schemas import NamedSchemas
from streamtrain.run.publication import Assembled, Assembler, adopt, score_after_averaging
from streamtrain.run.publication_clock import PublicationClock
from streamtrain.run.publisher import Publisher
from streamtrain.run.round_log import Columns, UnpublishedRounds
from streamtrain.run.unpublished_dead_letters import Ceiling, Letters, publication_letters, unpublished_causes
from streamtrain.topics.dead_letters import Causes

log = get_logger("streamtrain.train")
_TICK_S = 0.05  # how late the loop may see a finished publication or the end
_PROGRESS_S = 0.5

Tell = Callable[..., None]  # an event's name, and its fields by keyword


class Ended(Enum):
    """The reason for the end of the loop, as the job's history says it."""

    DONE = "the end of what was asked for"
    STOPPED = "stopped"
    LEAVE = "told to leave"


class _PublicationParts(NamedTuple):
    """The parts of a publication."""

    lineage: Lineage
    state: npt.NDArray[np.uint8]
    last_round: int
    columns: Columns
    metrics: dict[str, Any]
    deaths: int
    passes: int  # that it ends


class _Published(NamedTuple):
    """A publication that is kept, with the offset of its manifest."""

    offset: int
    assembled: Assembled
    letters: Letters
    transaction_s: float


class Publishing:
    """Makes publications of what follows `lineage`, whose state lies in mean buffer 0."""

    def __init__(
        self,
        job: Job,
        lineage: Lineage,
        ring: _native.CoordinatorEnd,
        unpublished: UnpublishedRounds,
        assembler: Assembler,
        publisher: Publisher,
        tell: Tell,
        judging: Judging | None = None,
    ) -> None:
        self.lineage = lineage
        self._job = job
        self._ring = ring
        self._assembler = assembler
        self._publisher = publisher
        self._tell = tell
        self._layout = assembler.layout
        self._quality = Quality(job.schema.numbers)
        state = view(ring.mean_address(0), self._layout.state_bytes)
        self._quality.begin(views(self._layout, state), lineage.metrics)
        self._windows = Windows(ring, self._layout, state)
        self._unpublished = unpublished
        self._named_schemas = NamedSchemas(ring)
        self._ceiling = Ceiling(job.records.max_dead_letter_share)
        self._clock = PublicationClock(ring, job.publish.interval_s, job.train.round_interval_s is not None)
        self._causes = Causes()  # of the dead letters published
        self._judging = judging
        self._learning = Learning(job, lineage.metrics.get("total", {}))
        self._has_warned = False  # that the job does not learn
        self._is_over = False  # early: told, and to be ended from outside
        self._pending: Future[_Published] | None = None
        self._failure: CheckFailed | None = None
        self._next_progress_s = 0.0

    @property
    def pending(self) -> bool:
        """A publication is on its way."""
        return self._pending is not None

    def run(self) -> Ended:
        """Until ingest has ended and everything is published, or it is to leave.

        Raises CheckFailed when too much is dead lettered, and what the publisher raises.
        """
        while True:
            self._ring.beat()
            progress = self._ring.progress()
            ended = bool(progress["ingest_ended"] and self._everything_gathered())
            self._gather()  # after the look at the end: what came in between is published too
            self._finish_pending()
            self._publisher.heed(self.pending)
            if not self.pending and self._ring.stop() == _native.Stop.LEAVE:
                return Ended.LEAVE
            waiting = self._unpublished.last_round >= 0
            due = progress["held"] or ended or self._failure or self._awaited()
            if self._ends_early():
                self._sleep()
                continue
            if not self.pending and waiting and (due or self._clock.wait(0)) and not self._may_be_last(progress, ended):
                self._clock.begun()
                self._begin_publication(ended)
            self._say_progress()
            if not self.pending and not waiting and (ended or self._failure):
                return self._end()
            self._sleep()

    def _ends_early(self) -> bool:
        """The newest manifest says that training is over: nothing more is published, and whoever started it ends it."""
        if self.pending or self._judging is None:
            return False
        why = "" if self._is_over else self._judging.why(self.lineage.metrics)
        if why:
            self._is_over = True
            self._tell("ended", version=self.lineage.version, rows=self.lineage.rows_seen, dead_letters={})
            self._tell("stopped_early", why=why, **self.lineage.metrics[NAME])
        return self._is_over

    def _sleep(self) -> None:
        if self._pending is not None:
            wait([self._pending], _TICK_S / 5)
        elif self._unpublished.last_round < 0 or self._publisher.awaited is not None:
            self._ring.wait_round(self._unpublished.gathered_round + 1, _TICK_S)  # its log follows at once
        else:
            self._clock.wait(_TICK_S)

    def _awaited(self) -> bool:
        """Training waits for what is gathered now."""
        awaited = self._publisher.awaited
        return awaited is not None and 0 <= awaited <= self._unpublished.last_round

    def _everything_gathered(self) -> bool:
        progress = self._ring.progress()
        return bool(
            progress["finished_round"] >= progress["final_round"]
            and progress["slots_released"] == progress["slots_filled"]
        )

    def _gather(self) -> None:
        columns = self._unpublished.gather()
        if self._ceiling.passed(columns.slots) and self._failure is None:
            found = unpublished_causes(self._ring, self._unpublished.gathered_round)
            found.update(self._causes)
            self._failure = CheckFailed(
                f"{self._publisher.name_of(0)}: {self._ceiling.dead} of the last {self._ceiling.rows} rows are dead "
                f"letters, records.max_dead_letter_share allows {self._ceiling.share:g}: {found.describe()}; "
                f"{self._publisher.advice}"
            )
        too_much = self._unpublished_bytes() > self._job.publish.pending_bytes
        self._ring.hold(too_much or self._failure is not None or self._is_over)

    def _unpublished_bytes(self) -> int:
        return self._unpublished.nbytes + self._ring.dead_letter_bytes_waiting

    def _may_be_last(self, progress: dict[str, Any], ended: bool) -> bool:
        """Returns whether the state to publish may end a pass, where it is judged. More rows or the end of ingest show
        whether it does."""
        if ended or progress["held"] or self._judging is None or not self._judging.has_end:
            return False
        _, last_round = self._ring.pin_newest()
        self._ring.unpin()
        self._gather_up_to(last_round)
        now = self._ring.progress()
        return bool(now["slots_filled"] == now["slots_released"])

    def _begin_publication(self, ended: bool) -> None:
        buffer, last_round = self._ring.pin_newest()
        self._publisher.prepare(self.lineage)
        state = view(self._ring.mean_address(buffer), self._layout.state_bytes)
        self._gather_up_to(last_round)
        columns = replace(self._unpublished.take(last_round), schemas=self._named_schemas.up_to(last_round))
        metrics = self._quality.look(views(self._layout, state), self._windows.take(state))
        progress = self._ring.progress()
        if self._job.train.report_score_after_averaging:
            metrics["after_averaging"] = score_after_averaging(progress)
        passes = int(ended and not self._ring.stop())
        parts = _PublicationParts(self.lineage, state, last_round, columns, metrics, progress["worker_deaths"], passes)
        self._pending = in_background(self._publish, parts, name="publish")

    def _gather_up_to(self, last_round: int) -> None:
        while self._unpublished.last_round < last_round:  # averaged, but its log is still on its way
            self._gather()

    def _publish(self, parts: _PublicationParts) -> _Published:
        """In the publishing thread: judges, assembles and publishes; the state stays pinned meanwhile."""
        lineage, now_ms = parts.lineage, time.time_ns() // 1_000_000
        if self._judging is not None:
            self._judging.note(
                parts.metrics, lineage.metrics, parts.state, version=lineage.version + 1, created_ms=now_ms,
                rows=lineage.rows_seen + int(parts.columns.slots["trained"].sum()), passes=parts.passes,
            )  # fmt: skip
        assembled = self._assembler.assemble(
            lineage, parts.state, parts.last_round, parts.columns, parts.metrics, parts.deaths, now_ms
        )
        manifest = assembled.snapshot.manifest
        names, began_ns = self._publisher.name_of, time.monotonic_ns()
        letters = publication_letters(self._ring, assembled.columns, manifest.round, names, manifest.run.number)
        offset = self._publisher.publish(assembled, letters)
        return _Published(offset, assembled, letters, (time.monotonic_ns() - began_ns) / 1e9)

    def _finish_pending(self) -> None:
        if self._pending is None or not self._pending.done():
            return
        future, self._pending = self._pending, None
        self._ring.unpin()
        offset, assembled, letters, transaction_s = future.result()
        self._clock.ended()
        self._ring.release_dead_letters(len(letters.ring), letters.entries)
        self._causes.update(letters.causes)
        self.lineage = adopt(self.lineage, assembled, offset)
        self._publisher.published(assembled)
        manifest = assembled.snapshot.manifest
        self._warn(assembled)
        newest = self._unpublished.newest_timestamp_ms
        self._tell(
            "published",
            version=manifest.version,
            digest=assembled.snapshot.digest.hex(),
            round=manifest.round,
            rows=manifest.rows_seen,
            bytes=letters.bytes + assembled.bytes,
            transaction_s=transaction_s,
            event_age_s=None if newest < 0 else max(0.0, time.time() - newest / 1000),
            metrics=dict(manifest.metrics),
            dead_letters=dict(letters.causes.rows.most_common()),
            positions=[list(position) for position in assembled.positions],
        )

    def _warn(self, assembled: Assembled) -> None:
        """Warns once of a model that is worse than the constant prediction."""
        self._learning.add(assembled.logs.metrics.get("total", {}), assembled.columns.slots)
        if not self._has_warned and (warning := self._learning.warning):
            self._has_warned = True
            log.warning(f"{self._job.name}: {warning}")

    def _say_progress(self) -> None:
        now_s = time.monotonic()
        if now_s < self._next_progress_s:
            return
        self._next_progress_s = now_s + _PROGRESS_S
        self._tell(
            "progress",
            unreachable=self._publisher.unreachable,
            unpublished_bytes=self._unpublished_bytes(),
            **self._ring.progress(),
        )

    def _end(self) -> Ended:
        dead = dict(self._causes.rows)
        self._tell("ended", version=self.lineage.version, rows=self.lineage.rows_seen, dead_letters=dead)
        if self._failure is not None:
            raise self._failure
        return Ended.STOPPED if self._ring.stop() else Ended.DONE
