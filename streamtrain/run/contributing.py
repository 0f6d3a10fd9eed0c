"""The contributor's loop: a round from snapshot N, what it has learned to the leader, snapshot N + 1, the next round.

What it has sent counts if the next snapshot names it. Else the run is over, and another begins at the newest snapshot:
so no row is lost or trained twice.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from enum import Enum
from typing import NamedTuple

import numpy as np

from streamtrain import _native
from streamtrain.background import in_background
from streamtrain.compute.model import Model
from streamtrain.compute.snapshot import load
from streamtrain.compute.state import view
from streamtrain.job import Job
from streamtrain.kafka.transaction import replaced
from streamtrain.log import get_logger
from streamtrain.run.named_schemas import NamedSchemas
from streamtrain.run.publishing import Tell
from streamtrain.run.round_log import Columns, UnpublishedRounds, positions_after
from streamtrain.run.sender import Learned, Sender, Sent
from streamtrain.run.snapshot_feed import Seen, SnapshotFeed
from streamtrain.run.watch import Watch
from streamtrain.topics import ring_structs
from streamtrain.topics.manifest import Manifest, Position
from streamtrain.topics.terms import contribution_seed

log = get_logger("streamtrain.train")

_TICK_S = 0.02
_PROGRESS_S = 0.5
_LEAST_PATIENCE_S = 10.0  # for the snapshot that names what was sent
_LAST_S = 2.0  # the same beyond two intervals, once it is to end


class Ended(Enum):
    """The reason for the end of the loop."""

    DONE = "drained"
    LEAVE = "told to leave"
    REFUSED = "what was trained is not in the next snapshot"
    MOVED = "others have trained rows of these partitions"
    SILENT = "no snapshot has come of what was sent"


class _Pending(NamedTuple):
    """A contribution that was sent and is not in a snapshot yet."""

    sending: Future[Sent]
    positions: list[Position]  # once it counts
    letters: tuple[int, int]  # bytes and entries of the dead letter ring
    rows: int


class Contributing:
    """Goes on with these `partitions` from snapshot to snapshot, as long as `watch` knows of no run of one host."""

    def __init__(
        self,
        job: Job,
        model: Model,
        ring: _native.CoordinatorEnd,
        sender: Sender,
        partitions: Sequence[int],
        feed: SnapshotFeed,
        watch: Watch,
        tell: Tell,
    ) -> None:
        self._job, self._ring, self._sender, self._tell = job, ring, sender, tell
        self._feed, self._watch = feed, watch
        self._partitions = sorted(partitions)
        self._layout = model.layout.published(job.train.workers)
        self._pending: _Pending | None = None
        self._trains = False  # the open round has begun, from the base
        self._had_rows = False  # when the snapshot was seen
        self._finished_s = math.inf  # when the last round was over, if it was not early
        self._idle_s = 0.0  # of the sync, without training though there were rows, but for early ends
        self._said_empty = False  # to the base
        self._send_s = 0.0  # what sending takes
        self._next_progress_s = 0.0

    def begin(self, base: Seen) -> None:
        """Puts the snapshot's state and positions in place, and sets READY."""
        self._base, manifest = base, base.stored.manifest
        self._positions = list(manifest.positions.partitions)
        self._load(0)
        self._ring.begin(
            round=manifest.round,
            learning_rate=self._job.optimizer.learning_rate,
            rows_seen=manifest.rows_seen,
            positions=[(partition, *_at(self._positions, partition)) for partition in self._partitions],
            joins=True,
        )
        self._unpublished, self._schemas = UnpublishedRounds(self._ring), NamedSchemas(self._ring)
        self._set_due()
        self._ring.start()

    def run(self) -> Ended:
        """Until it is to end, or what it has trained does not count. Raises Replaced, KafkaUnreachable."""
        while True:
            self._ring.beat()
            self._unpublished.gather()
            waiting_bytes = self._unpublished.nbytes + self._ring.dead_letter_bytes_waiting
            self._ring.hold(waiting_bytes > self._job.publish.pending_bytes)
            if (ended := self._take_newer() or self._ended()) is not None:
                return ended
            if self._pending is None:
                self._advance()
            self._say_progress()
            self._ring.wait_round(self._unpublished.gathered_round + 1, _TICK_S)

    @property
    def newest(self) -> Manifest:
        """Returns the manifest that it goes on from."""
        return self._base.stored.manifest

    def _ended(self) -> Ended | None:
        stop = self._ring.stop()
        if stop == _native.Stop.LEAVE:
            return Ended.LEAVE
        if self._pending is not None:
            return self._silent(stop)
        progress = self._ring.progress()
        is_empty = progress["slots_filled"] == progress["slots_released"] and not self._trains
        return Ended.DONE if stop and progress["ingest_ended"] and is_empty else None

    # -- snapshots ------------------------------------------------------------------------------------------------

    def _take_newer(self) -> Ended | None:
        """Goes on from the next snapshot, where one was seen."""
        if self._watch.replaced_by is not None:
            raise replaced(self._watch.replaced_by)
        seen = self._feed.next()
        if seen is None:
            return None
        if self._pending is not None:
            named = {each.life: each.head for each in seen.stored.manifest.contributions}.get(self._sender.life)
            if named is None or named != self._pending.sending.result().head:
                return self._refused(seen)
            self._positions = self._pending.positions
            self._ring.release_dead_letters(*self._pending.letters)
        elif self._trains:
            return self._refused(seen)
        counted, self._pending, self._base, self._said_empty = self._pending, None, seen, False
        published = seen.stored.manifest.positions.partitions
        if any(_at(published, partition) != _at(self._positions, partition) for partition in self._partitions):
            return Ended.MOVED
        self._say_published(counted)
        if counted is not None and self._ring.stop():
            return Ended.DONE  # what else was read is not trained: others read it
        self._load(self._ring.pin_newest()[0])
        self._set_due()
        self._idle_s = max(0.0, seen.at_s - self._finished_s)
        self._had_rows = self._has_rows(self._ring.progress())
        return None

    def _refused(self, seen: Seen) -> Ended:
        rows = 0 if self._pending is None else self._pending.rows
        self._tell("refused", rows=rows, version=seen.stored.manifest.version)
        return Ended.REFUSED

    def _silent(self, stop: _native.Stop) -> Ended | None:
        """Sends the same once more after a while; later a new run begins with the newest snapshot."""
        assert self._pending is not None
        if not self._pending.sending.done():
            return None
        sent = self._pending.sending.result()
        self._send_s = sent.took_s
        waited_s = time.monotonic() - sent.at_s
        if stop and waited_s > 2 * self._interval_s + _LAST_S:
            log.warning("what was sent last is not in a snapshot yet; if it never is, others train its rows")
            return Ended.DONE
        if waited_s < max(3 * self._interval_s, _LEAST_PATIENCE_S):
            return None
        if sent.again:
            return Ended.SILENT
        log.warning("no snapshot has come of what was sent; it is sent again", waited_s=round(waited_s, 1))
        again = in_background(self._sender.send_again, sent, name="send")
        self._pending = self._pending._replace(sending=again)
        return None

    def _load(self, buffer: int) -> None:
        stored = self._base.stored
        state = view(self._ring.mean_address(buffer), self._layout.state_bytes)
        load(self._layout, state, stored.model, stored.trainer)

    # -- the round ------------------------------------------------------------------------------------------------

    @property
    def _interval_s(self) -> float:
        interval_ms = self.newest.interval_ms  # None: of a run of one host
        return self._job.publish.interval_s if interval_ms is None else interval_ms / 1000

    def _set_due(self) -> None:
        self._trains = False
        self._due_s = self._base.at_s + max(0.0, self._interval_s - self._send_s)
        self._ring.publication_due(int(self._due_s * 1e9))

    def _advance(self) -> None:
        """Begins the round as soon as it has rows, and sends what it has learned as soon as it is over."""
        progress = self._ring.progress()
        if self._trains:
            if self._unpublished.last_round >= 0:
                self._send(progress["worker_deaths"])
        elif self._has_rows(progress):
            self._ring.begin_round(self.newest.round + 1, self._seed)
            self._trains = True
            if self._had_rows:
                self._idle_s += time.monotonic() - self._base.at_s
        elif not self._said_empty and time.monotonic() >= self._due_s:
            self._said_empty = True
            in_background(self._sender.send_empty, self._base.stored, name="send")

    @staticmethod
    def _has_rows(progress: Mapping[str, int]) -> bool:
        return progress["slots_filled"] > progress["slots_released"]

    @property
    def _seed(self) -> int:
        return contribution_seed(self.newest.seed, self._partitions[0])

    def _send(self, worker_deaths: int) -> None:
        buffer, last_round = self._ring.pin_newest()
        schemas = self._schemas.up_to(last_round)
        round_ = self.newest.round + 1
        columns = _numbered(self._unpublished.take(last_round), round_)
        letters, entries = self._ring.dead_letters(last_round)
        state = view(self._ring.mean_address(buffer), self._layout.state_bytes)
        is_early = time.monotonic() < self._due_s
        learned = Learned(
            state,
            replace(columns, schemas=schemas),
            ring_structs.numbered(letters, round_),
            entries,
            self._seed,
            worker_deaths,
            early=is_early,
            idle_s=self._idle_s,
            send_s=self._send_s,
        )
        self._idle_s, self._finished_s = 0.0, math.inf if is_early else time.monotonic()
        self._pending = _Pending(
            in_background(self._sender.send, self._base.stored, learned, name="send"),
            positions_after(self._positions, columns.ranges),
            (len(letters), entries),
            int(columns.slots["trained"].sum(dtype=np.int64)),
        )
        self._trains = False

    # -- what it says ---------------------------------------------------------------------------------------------

    def _say_published(self, counted: _Pending | None) -> None:
        manifest = self.newest
        newest = self._unpublished.newest_timestamp_ms
        sent = None if counted is None else counted.sending.result()
        self._tell(
            "published",
            version=manifest.version,
            digest=self._base.stored.digest.hex(),
            round=manifest.round,
            rows=manifest.rows_seen,
            rows_of_host=0 if counted is None else counted.rows,
            hosts=len(manifest.contributions),
            transaction_s=None if sent is None else self._base.at_s - sent.at_s + sent.took_s,
            event_age_s=None if newest < 0 else max(0.0, time.time() - newest / 1000),
            metrics=dict(manifest.metrics),
            dead_letters={},
            positions=[list(position) for position in manifest.positions.partitions],
        )

    def _say_progress(self) -> None:
        now_s = time.monotonic()
        if now_s >= self._next_progress_s:
            self._next_progress_s = now_s + _PROGRESS_S
            unreachable, waiting_bytes = self._watch.unreachable, self._unpublished.nbytes
            self._tell("progress", unreachable=unreachable, unpublished_bytes=waiting_bytes, **self._ring.progress())


def _at(positions: Sequence[Position], partition: int) -> Position:
    """A partition that is new since has position 0."""
    return positions[partition] if partition < len(positions) else Position(0)


def _numbered(columns: Columns, round_: int) -> Columns:
    """The log of one round as that round of the lineage, whose slots count from 0."""
    rounds, slots = columns.rounds.copy(), columns.slots.copy()
    assert len(rounds) == 1, rounds
    rounds["round"], rounds["first_slot"], rounds["statistics_pass"] = round_, 0, round_ == 0
    slots["slot"] = np.arange(len(slots))
    return replace(columns, rounds=rounds, slots=slots)
