"""The leader's loop: takes what hosts send, folds it into the newest snapshot, and publishes the next one.

Which contributions make the next snapshot is topics/accepting.py's; this reads, folds and publishes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from streamtrain import _native
from streamtrain.compute.model import aligned
from streamtrain.compute.quality import Quality
from streamtrain.compute.state import view, views
from streamtrain.compute.windows import Windows
from streamtrain.errors import CheckFailed
from streamtrain.job import Job
from streamtrain.job.learning import Learning
from streamtrain.log import get_logger
from streamtrain.run.lineage import Lineage
from streamtrain.run.publication import Assembled, Assembler, Part, Sync, adopt
from streamtrain.run.publisher import Publisher
from streamtrain.run.publishing import Tell
from streamtrain.run.round_log import Columns
from streamtrain.run.unpublished_dead_letters import AllLetters, Ceiling, Letters
from streamtrain.topics.accepting import Accepted, Base, Inbox, Pace, StateShape
from streamtrain.topics.manifest import Contribution, Manifest

log = get_logger("streamtrain.train")

_LOOK_S = 0.05
_DELETE_EVERY_S = 10.0


class Ended(Enum):
    """The reason for the end of the loop, as the job's history says it."""

    STOPPED = "stopped"
    LOST = "another host leads"


class Got(NamedTuple):
    """A message of the contributions topic, and when it was taken: monotonic seconds."""

    offset: int
    key: bytes | None
    value: bytes | None
    at_s: float


class Messages(Protocol):
    """The contributions topic."""

    def read(self, timeout_s: float) -> Sequence[Got]:
        """The next ones, in order."""

    def ends(self) -> dict[int, int]:
        """The last stable offset of each partition of the records, now."""

    def delete(self, below: int) -> None:
        """Nothing below this offset is needed any more; returns at once."""


class Leading:
    """Publishes what follows `lineage`, the manifest of which is `newest`; its state lies in mean buffer 0."""

    def __init__(
        self,
        job: Job,
        ring: _native.CoordinatorEnd,
        fold: _native.ContributionFold,
        shape: StateShape,
        lineage: Lineage,
        newest: tuple[Manifest, bytes],
        assembler: Assembler,
        publisher: Publisher,
        messages: Messages,
        tell: Tell,
    ) -> None:
        self.lineage = lineage
        self._job, self._ring, self._fold, self._shape = job, ring, fold, shape
        self._assembler, self._publisher, self._messages, self._tell = assembler, publisher, messages, tell
        self._layout = assembler.layout
        self._quality = Quality(job.schema.numbers)
        state = view(ring.mean_address(0), self._layout.state_bytes)
        self._quality.begin(views(self._layout, state), lineage.metrics)
        self._windows = Windows(ring, self._layout, state)
        self._ceiling = Ceiling(job.records.max_dead_letter_share)
        self._learning = Learning(job, lineage.metrics.get("total", {}))
        self._has_warned = False  # that the job does not learn
        interval_ms, interval_s = newest[0].interval_ms, job.publish.interval_s
        self._pace = Pace(interval_s, interval_s if interval_ms is None else interval_ms / 1000)
        self._deleted_s = time.monotonic()
        self._ends: dict[int, int] = {}  # of the records
        self._unread: list[Got] = []  # from the inbox's offset on
        self._begin_sync(*newest, start=newest[0].inbox or 0, heard=())

    def run(self, leads: Callable[[], bool]) -> Ended:
        """Until it is to stop, or `leads` says that another host leads.

        Raises CheckFailed when too much is dead lettered, and what the publisher raises.
        """
        while True:
            self._ring.beat()
            self._publisher.heed(False)
            if self._ring.stop():
                return Ended.STOPPED
            if not leads():
                return Ended.LOST
            self._take(self._messages.read(_LOOK_S))
            now_s = time.monotonic()
            if self._inbox.closes_at(now_s, self._pace.interval_s, self._pace.grace_s) <= now_s:
                self._pace.add(self._inbox, now_s)
                self._publish(self._inbox.accepted)

    def _take(self, messages: Sequence[Got]) -> None:
        if any((message.key or b"").endswith(b"/head") for message in messages):
            self._ends.update(self._messages.ends())  # after the head, so that all its records are below
        for message in messages:
            self._unread.append(message)
            self._inbox.take(*message)

    def _begin_sync(self, manifest: Manifest, digest: bytes, start: int, heard: Collection[str]) -> None:
        """Takes what has come for the snapshot after this one."""
        self._inbox = Inbox(Base.of(manifest, digest, self._shape), self._ends, start=start, heard=heard)
        self._unread = [message for message in self._unread if message.offset >= start]
        for message in self._unread:
            self._inbox.take(*message)

    def _publish(self, accepted: Sequence[Accepted]) -> None:
        states = [self._state_of(each) for each in accepted]
        weighted = zip(states, accepted, strict=True)
        closed = self._fold.fold([(state.ctypes.data, each.head.weight) for state, each in weighted])
        buffer, _ = self._ring.pin_newest()
        state = view(self._ring.mean_address(buffer), self._layout.state_bytes)
        metrics = self._quality.look(views(self._layout, state), self._windows.take(state))
        sync = self._sync(accepted)
        self._publisher.prepare(self.lineage)
        parts = [self._part(each, closed) for each in accepted]
        assembled = self._assembler.assemble_sync(self.lineage, state, parts, metrics, sync)
        letters = AllLetters([self._letters(*pair) for pair in zip(accepted, parts, strict=True)])
        began_s = time.monotonic()
        offset = self._publisher.publish(assembled, letters)
        self._ring.unpin()
        self.lineage = adopt(self.lineage, assembled, offset)
        self._publisher.published(assembled)
        self._after(assembled, letters, time.monotonic() - began_s)

    def _state_of(self, contribution: Accepted) -> npt.NDArray[np.uint8]:
        assert contribution.state is not None
        state = aligned(len(contribution.state))
        state[:] = np.frombuffer(contribution.state, np.uint8)
        return state

    def _part(self, contribution: Accepted, closed: bool) -> Part:
        log, head = contribution.log, contribution.head
        rounds = log.rounds.copy()
        rounds["closed_window"] = closed
        columns = Columns(rounds, log.slots, log.ranges, log.named_schemas)
        return Part(head.host, columns, head.terms, head.worker_deaths)

    def _letters(self, contribution: Accepted, part: Part) -> Letters:
        entries, run = contribution.head.letter_entries, self._assembler.run.number
        return Letters(contribution.letters, entries, part.columns, self._publisher.name_of, run)

    def _sync(self, accepted: Sequence[Accepted]) -> Sync:
        named = tuple(
            Contribution(head.host, head.life, head.sequence, each.head_digest, head.counts.trained, head.weight)
            for each in accepted
            for head in (each.head,)
        )
        return Sync(named, self._inbox.inbox, int(1000 * self._pace.interval_s))

    def _after(self, assembled: Assembled, letters: AllLetters, transaction_s: float) -> None:
        """The next sync begins; what has become of this one is said."""
        before, snapshot = self._inbox, assembled.snapshot
        manifest = snapshot.manifest
        assert manifest.inbox is not None
        self._begin_sync(manifest, snapshot.digest, manifest.inbox, before.heard)
        if time.monotonic() - self._deleted_s > _DELETE_EVERY_S:
            self._deleted_s = time.monotonic()
            self._messages.delete(manifest.inbox)
        self._warn(assembled)
        self._tell(
            "folded",
            version=manifest.version,
            digest=snapshot.digest.hex(),
            rows=manifest.rows_seen,
            hosts={each.host: each.rows for each in manifest.contributions},
            refused=[{"host": each.host, "reason": each.reason.value, "rows": each.rows} for each in before.refused],
            missing=sorted(before.expected - before.answered),
            interval_s=self._pace.interval_s,
            bytes=letters.bytes + assembled.bytes,
            transaction_s=transaction_s,
            dead_letters=dict(letters.causes.rows.most_common()),
        )
        if self._ceiling.passed(assembled.columns.slots):
            raise CheckFailed(
                f"{self._publisher.name_of(0)}: {self._ceiling.dead} of the last {self._ceiling.rows} rows are dead "
                f"letters, records.max_dead_letter_share allows {self._ceiling.share:g}: {letters.causes.describe()}; "
                f"{self._publisher.advice}"
            )

    def _warn(self, assembled: Assembled) -> None:
        """Warns once of a model that is worse than the constant prediction."""
        self._learning.add(assembled.logs.metrics.get("total", {}), assembled.columns.slots)
        if not self._has_warned and (warning := self._learning.warning):
            self._has_warned = True
            log.warning(f"{self._job.name}: {warning}")
