"""The rule by which contributions make the next snapshot: a function of the newest snapshot and of the messages of the
contributions topic in their order. Also the rule for when the host that publishes closes."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from streamtrain import _native
from streamtrain.errors import CheckFailed
from streamtrain.topics.contributions import (
    Chunk,
    Head,
    Hello,
    Offer,
    decode,
    layout_digest,
    round_log,
    spans_of,
)
from streamtrain.topics.log_rules import broken, miscounted, misended
from streamtrain.topics.manifest import CHUNK_BYTES, Counts, Manifest, Position
from streamtrain.topics.ring_structs import dead_rows
from streamtrain.topics.rounds import RoundLog, check, counts_after
from streamtrain.topics.terms import columns_digest, contribution_seed, model_digest
from streamtrain.topics.topic import sha256

_FLOATS: dict[str, np.dtype[Any]] = {"f32": np.dtype("f4"), "f64": np.dtype("f8")}
_QUANTILE = 0.9
_RECENT = 9  # syncs by which the next one is paced
GRACE_SHARE, MIN_GRACE_S, GRACE_SPREADS = 0.15, 0.2, 2.0
SEND_TIMES = 2.0  # as many times as its host takes to send it, an offer may take
IDLE_TIMES = 6.0  # a sync lasts as many times as long as the hosts do not train: at most 15 % are lost
_FROM_START = Position(0)  # of a partition that no snapshot has seen


class Reason(StrEnum):
    """The reason why a contribution to the next snapshot is not folded."""

    JOB = "it is of another job"
    LINEAGE = "it is of another lineage"
    ROUND = "it is of another round than the next"
    LAYOUT = "its state has another layout"
    MODEL = "its columns, its model or its optimizer differ from the snapshot's"
    TOPIC = "its records are of another topic id"
    INCOMPLETE = "not all of its chunks are there"
    DIGEST = "a chunk has another digest"
    NOT_FINITE = "a value of its state is not finite"
    LOG = "its round log is not one round of a host"
    RANGES = "its spans are not its log's ranges, or they have a hole or an overlap"
    SUMS = "its counts or its weight are not its log's sums"
    DEAD_LETTERS = "its dead letters are not the dead rows of its log"
    BEGIN = "it does not begin where the snapshot ends"
    END = "it ends beyond the committed records"
    TAKEN = "a partition of it is in a contribution accepted before"
    SEED = "its random numbers are of none of its partitions, or another contribution's"


_SENT_AGAIN = (Reason.INCOMPLETE, Reason.DIGEST)  # which a host mends by sending the same once more


class Ignored(StrEnum):
    """The reason why a message is passed over: it is no contribution to the next snapshot."""

    UNREADABLE = "unreadable"
    OTHER_JOB = "of another job"
    OTHER_BASE = "of another snapshot"
    DOUBLED = "of a contribution already decided"


@dataclass(frozen=True)
class StateShape:
    """The form of the bytes of a state, as one number for all hosts, and where its floats are."""

    digest: bytes
    size: int
    floats: tuple[tuple[int, str, int], ...]  # (offset, dtype, bytes) of each block of floats

    @classmethod
    def of(cls, layout: _native.StateLayout) -> StateShape:
        blocks = layout.blocks
        digest = layout_digest([(block.name, block.dtype, block.rule, block.shape) for block in blocks])
        floats = tuple((block.offset, block.dtype, block.bytes) for block in blocks if block.dtype in _FLOATS)
        return cls(digest, layout.state_bytes, floats)

    def is_finite(self, at: int, data: bytes) -> bool:
        """Returns whether all floats in a piece of a state are finite; it begins `at` bytes from the state's start."""
        for offset, dtype, size in self.floats:
            begin, end = max(offset, at) - at, min(offset + size, at + len(data)) - at
            count = (end - begin) // _FLOATS[dtype].itemsize
            if count > 0 and not np.isfinite(np.frombuffer(data, _FLOATS[dtype], count, begin)).all():
                return False
        return True


@dataclass(frozen=True)
class Base:
    """The newest snapshot, N, as far as contributions depend on it."""

    job: str
    version: int
    digest: bytes  # of its manifest
    lineage: str
    round: int
    positions: tuple[Position, ...]
    topic_id: str
    shape: StateShape
    columns_digest: bytes
    model_digest: bytes
    optimizer: Mapping[str, Any]  # with every setting but the learning rate
    seed: int  # of the lineage
    folded: frozenset[str] = frozenset()  # hosts

    @classmethod
    def of(cls, manifest: Manifest, digest: bytes, shape: StateShape) -> Base:
        """Returns the base of a manifest with this digest."""
        return cls(
            job=manifest.job,
            version=manifest.version,
            digest=digest,
            lineage=manifest.lineage,
            round=manifest.round,
            positions=manifest.positions.partitions,
            topic_id=manifest.positions.topic_id,
            shape=shape,
            columns_digest=columns_digest(manifest.schema),
            model_digest=model_digest(manifest.model_spec),
            optimizer=manifest.model_spec["optimizer"],
            seed=manifest.seed,
            folded=frozenset(each.host for each in manifest.contributions),
        )

    def position(self, partition: int) -> Position:
        return self.positions[partition] if partition < len(self.positions) else _FROM_START


@dataclass(frozen=True)
class Accepted:
    """An accepted contribution."""

    head: Head
    head_digest: bytes  # SHA-256 of the head's bytes
    offset: int  # of the head in the topic
    chunk_offsets: tuple[int, ...]
    state: bytes | None  # None where states are not kept: it is read again by the offsets
    log: RoundLog  # as contributions.round_log() has it
    letters: bytes  # dead letters, as the arena's ring has them


@dataclass(frozen=True)
class Refused:
    """A contribution to the next snapshot that is not folded."""

    host: str
    life: str
    sequence: int
    reason: Reason
    rows: int  # that it trained


class _Piece(NamedTuple):
    """A chunk that has come; `data` is without the state where states are not kept."""

    offset: int
    digest: bytes
    is_finite: bool
    size: int
    data: bytes


class _Parts(NamedTuple):
    """The parts of a whole contribution."""

    state: bytes | None
    log: RoundLog
    letters: bytes


@dataclass
class _Coming:
    """The messages of one contribution so far."""

    pieces: dict[int, _Piece] = field(default_factory=dict)
    offset: int = -1  # of its first message
    at_s: float = 0.0  # when it was offered
    send_s: float = 0.0  # that its host takes to send it
    over: Ignored | None = None  # it is decided, or of another snapshot: why what comes of it is passed over


class _Refusal(Exception):
    def __init__(self, reason: Reason) -> None:
        self.reason = reason


class Inbox:
    """The messages of the contributions topic since the newest snapshot, and which contributions make the next one.

    `start`: offset of the first message that will be taken. `ends`: last stable offsets of the records, by partition,
    as far as they are known. `heard`: hosts heard in the sync before. Without `keep_states` only the rest of each
    contribution stays in memory.
    """

    def __init__(
        self,
        base: Base,
        ends: Mapping[int, int] | None = None,
        *,
        start: int = 0,
        heard: Collection[str] = (),
        keep_states: bool = True,
    ) -> None:
        self.base = base
        self.ignored: Counter[Ignored] = Counter()
        self.heard: set[str] = set()  # hosts that sent a hello, an offer or a head
        self.answered: set[str] = set()  # hosts whose head has come
        self.idle_s: dict[str, float] = {}  # by host: how long it did not train
        self._ends = ends or {}
        self._before = {*base.folded, *heard}
        self._keep_states = keep_states
        self._next = start
        self._coming: dict[tuple[str, int], _Coming] = {}
        self._under_way: dict[tuple[str, int], _Coming] = {}  # offered for the next snapshot, without a head so far
        self._accepted: list[Accepted] = []
        self._refused: dict[tuple[str, int], Refused] = {}
        self._taken: set[int] = set()  # partitions of accepted contributions
        self._seeds: set[int] = set()  # of their random numbers
        self._first_s = math.inf  # when the first offer came
        self._in_phase_s: list[float] = []  # when each offer came that was not early
        self._last_s = -math.inf  # when the last contribution was accepted

    @property
    def accepted(self) -> list[Accepted]:
        """The contributions that make the next snapshot, in the order in which they are folded."""
        return sorted(self._accepted, key=lambda each: each.head.spans[0].partition)

    @property
    def refused(self) -> list[Refused]:
        return list(self._refused.values())

    @property
    def expected(self) -> set[str]:
        """Hosts that are thought to be training."""
        return self._before | self.heard

    @property
    def inbox(self) -> int:
        """The lowest offset that is still needed: of an unfinished contribution to the next snapshot, else the next."""
        return min((each.offset for each in self._under_way.values()), default=self._next)

    @property
    def spread_s(self) -> float | None:
        """Seconds from the first offer in phase until nine of ten of them were there; None if none was."""
        return _p90([at_s - self._in_phase_s[0] for at_s in self._in_phase_s]) if self._in_phase_s else None

    def take(self, offset: int, key: bytes | None, value: bytes | None, at_s: float) -> None:
        """Takes the next message. `at_s`: when it came, by the receiver's monotonic clock; only closing depends on
        it."""
        self._next = offset + 1
        try:
            entry = decode(key, value)
        except CheckFailed:
            self.ignored[Ignored.UNREADABLE] += 1
            return
        if isinstance(entry, Hello):
            self._hear(entry)
        elif isinstance(entry, Chunk):
            self._take_chunk(offset, entry)
        else:
            self._take_offer(offset, entry, sha256(value or b""), at_s)

    def _hear(self, hello: Hello) -> None:
        if hello.job == self.base.job:
            self.heard.add(hello.host)
        else:
            self.ignored[Ignored.OTHER_JOB] += 1

    def _take_chunk(self, offset: int, chunk: Chunk) -> None:
        coming = self._coming_of(chunk.life, chunk.sequence, offset)
        if coming.over is not None:
            self.ignored[coming.over] += 1
            return
        at, data, size = chunk.index * CHUNK_BYTES, chunk.data, self.base.shape.size
        is_finite = self.base.shape.is_finite(at, data)
        kept = data if self._keep_states else data[max(size - at, 0) :]
        coming.pieces[chunk.index] = _Piece(offset, sha256(data), is_finite, len(data), kept)

    def _take_offer(self, offset: int, entry: Offer, digest: bytes, at_s: float) -> None:
        """Takes an offer, or a head, which is one too."""
        if entry.job == self.base.job:
            self.heard.add(entry.host)
        coming = self._coming_of(entry.life, entry.sequence, offset)
        if coming.over is None and (entry.base_version, entry.base_digest) != (self.base.version, self.base.digest):
            coming.over, coming.pieces = Ignored.OTHER_BASE, {}
        if coming.over is not None:
            self.ignored[coming.over] += 1
            return
        if (entry.life, entry.sequence) not in self._under_way:
            coming.at_s, coming.send_s = at_s, entry.send_ms / 1_000
            self._under_way[entry.life, entry.sequence] = coming
            if entry.spans:
                self._first_s = min(self._first_s, at_s)
                self._in_phase_s += [] if entry.early else [at_s]
        if isinstance(entry, Head):
            self._decide(offset, entry, digest, coming, at_s)

    def _coming_of(self, life: str, sequence: int, offset: int) -> _Coming:
        return self._coming.setdefault((life, sequence), _Coming(offset=offset))

    def _decide(self, offset: int, head: Head, digest: bytes, coming: _Coming, at_s: float) -> None:
        key = head.life, head.sequence
        del self._under_way[key]
        self.answered.add(head.host)
        self.idle_s[head.host] = head.idle_ms / 1_000
        try:
            parts = self._checked(head, coming)
        except _Refusal as refusal:
            self._refused[key] = Refused(head.host, *key, refusal.reason, head.counts.trained)
            if refusal.reason not in _SENT_AGAIN:
                coming.over, coming.pieces = Ignored.DOUBLED, {}
            return
        self._refused.pop(key, None)
        if parts is not None:
            chunk_offsets = tuple(coming.pieces[index].offset for index in range(len(head.chunks)))
            self._accepted.append(Accepted(head, digest, offset, chunk_offsets, *parts))
            self._taken.update(span.partition for span in head.spans)
            self._seeds.add(head.terms.seed)
            self._last_s = at_s
        coming.over, coming.pieces = Ignored.DOUBLED, {}

    # -- the checks ---------------------------------------------------------------------------------------------------

    def _checked(self, head: Head, coming: _Coming) -> _Parts | None:
        """Returns the parts of a contribution that may be folded; None if it is empty. Raises _Refusal."""
        base, terms = self.base, head.terms
        _refuse(head.job != base.job, Reason.JOB)
        _refuse(head.lineage != base.lineage, Reason.LINEAGE)
        _refuse(head.round != base.round + 1 or terms.first_round != head.round, Reason.ROUND)
        _refuse(head.layout != base.shape.digest, Reason.LAYOUT)
        model = terms.columns_digest, terms.model_digest, terms.optimizer, terms.average_optimizer_state
        _refuse(model != (base.columns_digest, base.model_digest, base.optimizer, True), Reason.MODEL)
        _refuse(terms.topic_id != base.topic_id, Reason.TOPIC)
        if head.is_empty:
            _refuse(any(head.counts) or bool(head.weight) or bool(head.chunks), Reason.SUMS)
            return None
        parts = self._whole(head, coming)
        _refuse(bool(broken(parts.log)) or spans_of(parts.log.ranges) != head.spans, Reason.RANGES)
        is_sum = counts_after(Counts(), parts.log) == head.counts
        _refuse(not is_sum or parts.log.weight != head.weight, Reason.SUMS)
        _refuse(not _letters_match(head, parts), Reason.DEAD_LETTERS)
        _refuse(any(span.begin != base.position(span.partition) for span in head.spans), Reason.BEGIN)
        _refuse(any(not self._is_committed(span.partition, span.end) for span in head.spans), Reason.END)
        _refuse(any(span.partition in self._taken for span in head.spans), Reason.TAKEN)
        _refuse(terms.seed in self._seeds or not self._is_seed(terms.seed, head.spans[0].partition), Reason.SEED)
        return parts

    def _whole(self, head: Head, coming: _Coming) -> _Parts:
        """Returns the parts of a contribution whose chunks are all there, unaltered, finite, and a round's."""
        shape, size = self.base.shape, head.size
        _refuse(head.sizes.state != shape.size, Reason.LAYOUT)
        pieces = [coming.pieces.get(index) for index in range(len(head.chunks))]
        found = [piece for piece in pieces if piece is not None]
        _refuse(len(found) < len(pieces), Reason.INCOMPLETE)
        _refuse(tuple(piece.digest for piece in found) != head.chunks, Reason.DIGEST)
        last = size - (len(found) - 1) * CHUNK_BYTES
        _refuse([piece.size for piece in found] != [*[CHUNK_BYTES] * (len(found) - 1), last], Reason.DIGEST)
        _refuse(not all(piece.is_finite for piece in found), Reason.NOT_FINITE)
        data = b"".join(piece.data for piece in found)
        state, rest = (data[: shape.size], data[shape.size :]) if self._keep_states else (None, data)
        try:
            log = round_log(head, rest)
            check(log)
            letters = rest[len(rest) - head.sizes.letters :]
        except CheckFailed:
            raise _Refusal(Reason.LOG) from None
        _refuse(not len(log.ranges) or any((*miscounted(log), *misended(log))), Reason.LOG)
        return _Parts(state, log, letters)

    def _is_seed(self, seed: int, smallest: int) -> bool:
        """Returns whether it is that of the host's lowest partition: the smallest with a row, or one before it."""
        return any(seed == contribution_seed(self.base.seed, partition) for partition in range(smallest, -1, -1))

    def _is_committed(self, partition: int, end: Position) -> bool:
        known = self._ends.get(partition)
        return known is None or end <= Position(known)

    # -- closing ------------------------------------------------------------------------------------------------------

    def closes_at(self, now_s: float, interval_s: float, grace_s: float) -> float:
        """Returns when the next snapshot is made of what is accepted then: `now_s` if nothing more is waited for,
        infinity as long as nothing is accepted. For `grace_s` see grace()."""
        if not self._accepted:
            return math.inf
        if not self._under_way and self.expected <= self.answered:
            return now_s
        closes_s = min([self._first_s + interval_s, *self._in_phase_s[:1]]) + grace_s
        offered = [each for each in self._under_way.values() if each.at_s <= closes_s]
        until_s = (each.at_s + min(SEND_TIMES * each.send_s + MIN_GRACE_S, interval_s) for each in offered)
        return max([closes_s, *until_s])

    def waited_s(self, closed_s: float) -> float:
        """Returns how long the leader waited in vain before it closed: since the last contribution that came."""
        return max(closed_s - self._last_s, 0.0)


def _refuse(is_wrong: bool, reason: Reason) -> None:
    if is_wrong:
        raise _Refusal(reason)


def _letters_match(head: Head, parts: _Parts) -> bool:
    try:
        found = dead_rows(parts.letters, head.letter_entries, head.round)
    except CheckFailed:
        return False
    ranges = parts.log.ranges
    expected: Counter[int] = Counter()
    for partition, dead in zip(ranges["partition"].tolist(), ranges["dead"].tolist(), strict=True):
        expected[partition] += dead
    return {partition: rows for partition, rows in found.items() if rows} == {
        partition: rows for partition, rows in expected.items() if rows
    }


def grace(interval_s: float, spreads_s: Collection[float]) -> float:
    """Returns how long after the first offer in phase a leader waits for hosts that have not answered. `spreads_s`:
    Inbox.spread_s of the last syncs. Their median counts: one that came late makes no leader wait longer for the
    next."""
    return max(GRACE_SHARE * interval_s, MIN_GRACE_S, GRACE_SPREADS * _median(spreads_s))


def interval(publish_interval_s: float, idle_s: Collection[float]) -> float:
    """Returns the seconds of the next sync. `idle_s`: the p90 of the time in which hosts did not train, of each of the
    last syncs. Their median counts, for one in which a leader died is no reason to make the next ones long."""
    return max(publish_interval_s, IDLE_TIMES * _median(idle_s))


class Pace:
    """The interval and the grace of a sync, from the last ones. A new leader begins with the manifest's interval, as if
    all syncs had been so."""

    def __init__(self, publish_interval_s: float, interval_s: float) -> None:
        self._publish_interval_s = publish_interval_s
        self._idle_s = deque([interval_s / IDLE_TIMES] * _RECENT, maxlen=_RECENT)
        self._spreads_s: deque[float] = deque(maxlen=_RECENT)
        self._waited_s = 0.0  # in the sync before

    @property
    def interval_s(self) -> float:
        return interval(self._publish_interval_s, self._idle_s)

    @property
    def grace_s(self) -> float:
        return grace(self.interval_s, self._spreads_s)

    def add(self, inbox: Inbox, closed_s: float) -> None:
        """Adds a sync that was closed. The heads in it say how long their hosts did not train before it; that the
        leader waited then for hosts that did not answer does not count: this wait grows with the interval."""
        if inbox.idle_s:
            self._idle_s.append(max(_p90(inbox.idle_s.values()) - self._waited_s, 0.0))
        self._waited_s = inbox.waited_s(closed_s)
        if inbox.spread_s is not None:
            self._spreads_s.append(inbox.spread_s)


def _median(values: Collection[float]) -> float:
    return float(np.median(list(values))) if len(values) else 0.0


def _p90(values: Collection[float]) -> float:
    return float(np.quantile(list(values), _QUANTILE)) if len(values) else 0.0
