"""Many hosts that train one job, in simulated time. The product's own Inbox decides which contributions are folded and
when the leader closes; what hosts, broker and groups do is modelled here."""

from __future__ import annotations

import heapq
import itertools
import random
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import contributed
import numpy as np
from contributed import BASE, TERMS, Draft

from streamtrain._native import CloseReason
from streamtrain.topics.accepting import Base, Inbox, Pace, StateShape
from streamtrain.topics.contributions import Hello, message
from streamtrain.topics.manifest import Position, Slot
from streamtrain.topics.rounds import RANGE_DTYPE, ROUND_DTYPE, SLOT_DTYPE
from streamtrain.topics.terms import contribution_seed
from streamtrain.topics.topic import Message, sha256

SHAPE = StateShape(sha256(b"one number"), 8, ((0, "f64", 8),))
SESSION_S = 10.0  # a host that is silent so long loses its partitions, and the role of the leader
ELECTION_S = 1.0  # until the next leader has read what it needs
RESTART_S = 20.0
LATENCY_S = 0.01
BROKER_BYTES_PER_S = 1e9  # that one partition takes
STATE_BYTES = 1e5  # of the model
COMMIT_S, FOLD_S = 0.1, STATE_BYTES / 2.5e9  # of a publication; of a contribution
PUBLISH_INTERVAL_S = 5.0
SETTINGS = replace(TERMS, workers=1, slot=Slot(1 << 30, 1 << 20))


@dataclass
class Host:
    """A host, and what became of its rows."""

    number: int
    speed: float  # rows/s
    load_s: float
    send_s: float
    is_up: bool = False
    life: int = 0
    sequence: int = 0
    own: dict[int, int] = field(default_factory=dict)  # partitions, and at which snapshot it was given each
    parts: list[int] = field(default_factory=list)  # of its round
    base: Base | None = None  # of its round, or of what it has sent
    version: int = 0  # that it saw last
    seen_s: float = 0.0
    interval_s: float = 0.0  # that the manifest of its base names
    trains_s: float | None = None  # since when; None: it does not
    over_s: float | None = None  # when the time of its last round was over, however early it closed
    sent: tuple[bytes, int] | None = None  # digest of its head, rows
    epoch: int = 0  # of its round: later events are of another
    folded: int = 0
    refused: int = 0
    up_s: float = 0.0
    left_s: float = 0.0  # what its own load and send time leave of the syncs that it began
    since_s: float = 0.0

    @property
    def name(self) -> str:
        return f"host-{self.number}"


class Simulation:
    """Hosts that share partitions, each killed and paused `faults` times an hour. A tenth of them loads, sends and
    trains ten times slower, a twentieth joins later. `lost`: this share of all messages never arrives."""

    def __init__(
        self, hosts: int, partitions: int, seconds: float, seed: int, faults: int = 2, lost: float = 1 / 2_000
    ) -> None:
        self._lost = lost
        self.draw = random.Random(seed)
        self.now_s, self.seconds = 0.0, seconds
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._numbers = itertools.count()
        self.hosts = [self._host(number, number < hosts / 10) for number in range(hosts)]
        self.partitions = partitions
        self.intervals_s: list[float] = []
        self.published_s: list[float] = []
        self.reasons: dict[str, int] = {}
        self._base = replace(
            BASE, shape=SHAPE, round=0, version=1, positions=tuple(Position(0) for _ in range(partitions))
        )
        self._pace = Pace(PUBLISH_INTERVAL_S, PUBLISH_INTERVAL_S)
        self._interval_s = self._pace.interval_s
        self._log: deque[tuple[int, bytes, bytes]] = deque()  # the topic: offset, key, value
        self._end = 0
        self._broker_free_s = 0.0
        self._inbox: Inbox | None = None
        self._is_folding, self._closed_s = False, 0.0
        self._start = 0  # inbox of the newest manifest
        self._leader, self._leader_epoch = self.hosts[-1], 0
        self._heard: set[str] = set()
        late_ones = set(range(7, hosts, 20))
        early_ones = [host for host in self.hosts if host.number not in late_ones]
        for partition in range(partitions):
            early_ones[partition % len(early_ones)].own[partition] = 0
        for host in self.hosts:
            late = host.number in late_ones
            joins_s = self.draw.uniform(0, seconds) if late else 0.0
            self.at(joins_s, self._come_up, host)
            for _ in range(int(faults * seconds / 3_600 + self.draw.random())):
                self.at(self.draw.uniform(joins_s, seconds), self._go_down, host, RESTART_S, True)
                self.at(self.draw.uniform(joins_s, seconds), self._go_down, host, self.draw.uniform(1, 40), False)

    def _host(self, number: int, slow: bool) -> Host:
        times = 10 if slow else 1
        load_s, send_s = self.draw.uniform(0.05, 0.3), STATE_BYTES / self.draw.uniform(2e6, 10e6)
        return Host(number, self.draw.uniform(500, 2_000) / times, load_s * times, send_s * times)

    def at(self, when_s: float, do: Callable[..., None], *arguments: Any) -> None:
        heapq.heappush(self._events, (when_s, next(self._numbers), do, arguments))

    def run(self) -> Simulation:
        self.at(0.0, self._lead, self._leader, 0)
        while self._events and self._events[0][0] <= self.seconds:
            self.now_s, _, do, arguments = heapq.heappop(self._events)
            do(*arguments)
        self.now_s = self.seconds
        for host in self.hosts:
            if host.is_up:
                host.up_s += self.now_s - host.since_s
        return self

    # -- hosts that come and go ---------------------------------------------------------------------------------------

    def _come_up(self, host: Host) -> None:
        if host.is_up:
            return
        host.is_up, host.since_s = True, self.now_s
        host.life += 1
        host.sequence = 0
        host.over_s = host.base = host.sent = None
        hello = message(Hello(BASE.job, host.name, self._life(host)))
        self._send([hello], LATENCY_S)
        if self.now_s > 0:
            self._take_from_others(host)
        self._see(host)

    def _take_from_others(self, host: Host) -> None:
        """Gives a host its share: of hosts that have more, which contribute first and then let go."""
        share = self.partitions // sum(each.is_up for each in self.hosts)
        rich = [each for each in self.hosts if each.is_up and each is not host and len(each.own) > share]
        self.draw.shuffle(rich)
        for each in rich:
            while len(each.own) > share and len(host.own) < share:
                partition = each.own.popitem()[0]
                host.own[partition] = self._base.version
                self._close(each, each.epoch, early=True)

    def _go_down(self, host: Host, for_s: float, is_killed: bool) -> None:
        if not host.is_up:
            return
        host.is_up = False
        host.up_s += self.now_s - host.since_s
        if host is self._leader:
            self._lose_leader(for_s, is_killed)
        if is_killed:
            host.epoch += 1
            host.trains_s = None
            self.at(self.now_s + SESSION_S, self._give_away, host, host.life)
            self.at(self.now_s + for_s, self._come_up, host)
        else:
            if for_s > SESSION_S:
                self.at(self.now_s + SESSION_S, self._give_away, host, host.life)
            self.at(self.now_s + for_s, self._wake, host, for_s)

    def _give_away(self, host: Host, life: int) -> None:
        """Gives the partitions of a host whose session is over to others, which read them from the next manifest."""
        if host.is_up and host.life == life:
            return
        others = [each for each in self.hosts if each.is_up and each is not host]
        self.draw.shuffle(others)
        others.sort(key=lambda each: len(each.own))
        for partition, other in zip(sorted(host.own), itertools.cycle(others), strict=False):
            other.own[partition] = self._base.version
        host.own.clear()

    def _wake(self, host: Host, paused_s: float) -> None:
        """A paused host goes on where it was: it closes its round if it is late, and learns what it has lost."""
        host.is_up, host.since_s = True, self.now_s
        if host.trains_s is not None:
            host.trains_s += paused_s
            self.at(max(self.now_s, self._due_s(host)), self._close, host, host.epoch)
        elif host.parts and host.sent is None:
            self.at(self.now_s + host.load_s, self._train, host, host.epoch)
        if not host.own:
            self._take_from_others(host)
        self._see(host)

    # -- a sync on a host ---------------------------------------------------------------------------------------------

    def _see(self, host: Host) -> None:
        """Begins a round from the newest manifest; what was trained from an older one and is not in it is refused."""
        if not host.is_up or (host.base is not None and host.version == self._base.version):
            return
        if host.trains_s is not None and host.base is not self._base:
            host.refused += self._rows(host)
        if host.sent is not None:
            digest, rows = host.sent
            if digest not in self._named:
                host.refused += rows
            host.sent = None
        host.version, host.base, host.seen_s = self._base.version, self._base, self.now_s
        host.interval_s = self._interval_s
        host.epoch += 1
        host.trains_s = None
        host.parts = sorted(partition for partition, version in host.own.items() if version < self._base.version)
        if host.parts:
            host.left_s += max(self._interval_s - host.load_s - host.send_s, 0.0)
            self.at(self.now_s + host.load_s, self._train, host, host.epoch)

    _named: frozenset[bytes] = frozenset()  # heads that the newest manifest names

    def _train(self, host: Host, epoch: int) -> None:
        if host.epoch != epoch or not host.is_up:
            return
        host.trains_s = self.now_s
        self.at(max(self._due_s(host), self.now_s + 0.05), self._close, host, epoch)

    def _due_s(self, host: Host) -> float:
        """Returns when its round is to be closed."""
        assert host.base is not None
        return host.seen_s + host.interval_s - host.send_s * self.draw.uniform(0.9, 1.1)

    def _rows(self, host: Host) -> int:
        assert host.trains_s is not None
        return max(int(host.speed * (self.now_s - host.trains_s)), len(host.parts))

    def _close(self, host: Host, epoch: int, early: bool = False) -> None:
        if host.epoch != epoch or not host.is_up or host.trains_s is None:
            return
        base, rows = host.base, self._rows(host)
        assert base is not None
        idle_s = host.trains_s - (host.seen_s if host.over_s is None else host.over_s)
        host.over_s = max(self.now_s, host.seen_s + host.interval_s - host.send_s)
        sent = contributed.messages(self._draft(host, base, rows, early, idle_s))
        host.trains_s, host.sequence = None, host.sequence + 1
        host.sent = sha256(bytes(sent[-1].value or b"")), rows
        self._send(sent[:1], LATENCY_S)
        self._send(sent[1:], host.send_s + LATENCY_S)
        self.at(self.now_s + max(3 * self._interval_s, 10.0), self._send_again, host, host.epoch, sent)

    def _send_again(self, host: Host, epoch: int, sent: list[Message]) -> None:
        if host.epoch == epoch and host.is_up and host.sent is not None:
            self._send(sent, host.send_s + LATENCY_S)

    def _life(self, host: Host) -> str:
        return contributed.life_of(1_000 * host.number + host.life)

    def _draft(self, host: Host, base: Base, rows: int, early: bool, idle_s: float) -> Draft:
        own = host.parts
        ranges, slots, rounds = np.zeros(len(own), RANGE_DTYPE), np.zeros(1, SLOT_DTYPE), np.zeros(1, ROUND_DTYPE)
        begins = np.array([base.positions[partition].offset for partition in own])
        trained = np.full(len(own), rows // len(own))
        trained[0] += rows - trained.sum()
        ranges["partition"], ranges["from_offset"], ranges["to_offset"] = own, begins, begins + trained
        ranges["trained"], ranges["record_rows"] = trained, -1
        slots["rows"] = slots["trained"] = slots["weight_sum"] = rows
        slots["range_count"], rounds["slots"], rounds["workers"] = len(own), 1, 1
        rounds["round"], rounds["closed_by"], rounds["newest_event_ms"] = base.round + 1, CloseReason.INTERVAL, -1
        head = {
            "job": base.job, "lineage": base.lineage, "host": host.name, "sequence": host.sequence,
            "life": self._life(host), "base_version": base.version,
            "base_digest": base.digest, "early": early, "send_ms": int(1_000 * host.send_s),
            "round": base.round + 1, "layout": SHAPE.digest,
            "terms": replace(SETTINGS, first_round=base.round + 1, seed=contribution_seed(base.seed, own[0])),
            "worker_deaths": 0,
            "idle_ms": max(int(1_000 * idle_s), 0),
        }  # fmt: skip
        return Draft(bytes(8), rounds, slots, ranges, b"", head)

    # -- the topic ----------------------------------------------------------------------------------------------------

    def _send(self, messages: list[Message], after_s: float) -> None:
        """A few are lost; one partition takes so many bytes a second."""
        takes_s = STATE_BYTES / BROKER_BYTES_PER_S if len(messages) > 1 else 0.0
        self._broker_free_s = max(self._broker_free_s, self.now_s) + takes_s
        arrives_s = max(self.now_s + after_s, self._broker_free_s)
        for found in messages:
            if self.draw.random() >= self._lost:
                self.at(arrives_s, self._append, found.key, bytes(found.value or b""))

    def _append(self, key: bytes, value: bytes) -> None:
        self._log.append((self._end, key, value))
        self._end += 1
        if self._inbox is not None:
            self._take(*self._log[-1])

    # -- the leader ---------------------------------------------------------------------------------------------------

    def _lead(self, host: Host, epoch: int) -> None:
        """A new leader reads from the inbox of the newest manifest on."""
        if epoch != self._leader_epoch:
            return
        while not host.is_up:
            host = self.draw.choice(self.hosts)
        self._leader, self._is_folding = host, False
        self._pace = Pace(PUBLISH_INTERVAL_S, self._interval_s)
        self._open(())

    def _open(self, heard: tuple[str, ...] | set[str]) -> None:
        self._inbox = Inbox(self._base, start=self._start, heard=heard)
        for each in [each for each in self._log if each[0] >= self._start]:
            self._take(*each)

    def _take(self, offset: int, key: bytes, value: bytes) -> None:
        assert self._inbox is not None
        self._inbox.take(offset, key, value, self.now_s)
        self._look(self._inbox)

    def _look(self, inbox: Inbox) -> None:
        """Closes if it is time, else comes again when it is."""
        if inbox is not self._inbox or self._is_folding:
            return
        closes_s = inbox.closes_at(self.now_s, self._interval_s, self._pace.grace_s)
        if closes_s <= self.now_s:
            self._is_folding = True
            cost_s = COMMIT_S + FOLD_S * len(inbox.accepted)
            self._closed_s = self.now_s
            self.at(self.now_s + cost_s, self._publish, inbox, inbox.accepted, inbox.inbox, self._leader_epoch)
        elif closes_s < float("inf"):
            self.at(closes_s, self._look, inbox)

    def _publish(self, inbox: Inbox, accepted: list[Any], start: int, epoch: int) -> None:
        if epoch != self._leader_epoch:
            return
        positions = list(self._base.positions)
        by_name = {host.name: host for host in self.hosts}
        for each in accepted:
            by_name[each.head.host].folded += each.head.counts.trained
            for span in each.head.spans:
                assert positions[span.partition] == span.begin
                positions[span.partition] = span.end
        for refused in inbox.refused:
            self.reasons[refused.reason.name] = self.reasons.get(refused.reason.name, 0) + 1
        for ignored, count in inbox.ignored.items():
            self.reasons[ignored.name] = self.reasons.get(ignored.name, 0) + count
        self._pace.add(inbox, self._closed_s)
        self._interval_s = self._pace.interval_s
        self._base = replace(
            self._base, version=self._base.version + 1, digest=sha256(b"%d" % self._base.version),
            round=self._base.round + 1, positions=tuple(positions),
            folded=frozenset(each.head.host for each in accepted),
        )  # fmt: skip
        self._named = frozenset(each.head_digest for each in accepted)
        self._start, self._is_folding = start, False
        while self._log and self._log[0][0] < start:
            self._log.popleft()
        self.intervals_s.append(self._interval_s)
        self.published_s.append(self.now_s)
        self._open(inbox.heard)
        for host in self.hosts:
            self.at(self.now_s + LATENCY_S * self.draw.uniform(1, 5), self._see, host)

    def _lose_leader(self, for_s: float, is_killed: bool) -> None:
        """The partition of the leaders' group moves when the session is over; a shorter pause is waited out."""
        self._leader_epoch += 1
        self._inbox = None
        stalls_s = SESSION_S + ELECTION_S if is_killed or for_s > SESSION_S else for_s
        host = self._leader if stalls_s == for_s else self.draw.choice(self.hosts)
        self.at(self.now_s + stalls_s, self._lead, host, self._leader_epoch)

    # -- what became of it --------------------------------------------------------------------------------------------

    def figures(self) -> dict[str, float]:
        """Rows of all rows that hosts would train if they did nothing else; rows refused; the least host's share of
        what its own load and send time leave; seconds between snapshots."""
        folded, refused = sum(host.folded for host in self.hosts), sum(host.refused for host in self.hosts)
        gaps_s = np.diff(self.published_s)
        lived = [host for host in self.hosts if host.up_s > 20 * np.median(gaps_s)] or self.hosts
        return {
            "of ideal rows": folded / sum(host.up_s * host.speed for host in self.hosts),
            "refused": refused / (folded + refused),
            "least host": min(host.folded / max(host.left_s * host.speed, 1) for host in lived),
            "interval_s": float(np.median(gaps_s)),
            "snapshots": len(self.published_s),
        }


if __name__ == "__main__":  # python -m tests.topics.simulated_hosts HOSTS PARTITIONS SECONDS
    many, over, long = map(int, sys.argv[1:])
    print(Simulation(hosts=many, partitions=over, seconds=long, seed=1).run().figures())
