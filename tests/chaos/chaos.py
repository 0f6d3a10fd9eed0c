"""One chaos run: a job on a Kafka of its own, rows all the time, faults one after the other, then every check."""

from __future__ import annotations

import itertools
import json
import random
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgpack
from confluent_kafka import KafkaError, KafkaException, Producer

from streamtrain.background import in_background
from streamtrain.broker import Broker
from tests.chaos.faults import Fault, hold
from tests.chaos.trainer import Trainer
from tests.chaos.witness import Witness
from tests.e2e.harness import LiveJob, rows

HANG_S = 180.0  # after a fault: nothing of what is waited for is so slow, on a busy machine either
# What the witness reads: on a busy machine a run is long enough that some would be compacted away.
_KEPT = 'snapshots = { config = { "min.compaction.lag.ms" = "86400000" } }'
_IDLE_START_S = 3.0  # a trainer's first start takes less on an idle machine
_QUIET_S = (0.2, 3.0)  # between a recovery and the next fault


@dataclass
class Chaos:
    broker: Broker
    folder: Path
    seed: int
    partitions: int = 3
    workers: int = 2
    recoveries: list[tuple[Fault, float]] = field(default_factory=list)
    slowness: float = 1.0  # by how much more the machine took for the first start than an idle one

    def __post_init__(self) -> None:
        self.bootstrap = self.broker.bootstrap
        self.job = LiveJob(
            self, self.folder, "chaos", partitions=self.partitions, workers=self.workers, keep=40,
            publish_interval="100ms", max_dead_letter_share=1.0, more_topics=_KEPT,
        )  # fmt: skip
        self._trainers = 0

    def fresh_name(self, prefix: str) -> str:
        return f"{prefix}-{self.seed}"

    def start_trainer(self) -> None:
        self._trainers += 1
        self.trainer = Trainer(self.job, self.folder / f"trainer-{self.seed}-{self._trainers}.log")

    def started(self) -> None:
        assert self.trainer.wait("started", timeout_s=HANG_S), self._describe("the trainer did not start")

    def suffer(self, faults: Sequence[Fault], quiet_s: tuple[float, float]) -> None:
        """Goes through the faults while rows come, a quiet time before each; notes how long each recovery takes."""
        feed = Feed(self.bootstrap, self.job.records, self.partitions, self.seed)
        chance = random.Random(self.seed)
        began = time.monotonic()
        self.start_trainer()
        self.started()
        self.slowness = max(1.0, (time.monotonic() - began) / _IDLE_START_S)
        feed.start()
        try:
            self._publishes_after(time.monotonic())
            for fault in faults:
                hold(chance.uniform(*quiet_s))
                self.recoveries.append((fault, self._recovery_s(fault)))
        except BaseException:
            self.trainer.kill()
            raise
        finally:
            feed.stop()

    def run(self, faults: Sequence[Fault]) -> dict[str, Any]:
        """Goes through the faults; AssertionError where a guarantee does not hold or nothing is published any more."""
        self.suffer(faults, _QUIET_S)
        return self._check()

    def _recovery_s(self, fault: Fault) -> float:
        """Does it; seconds from its end to the next publication, of the next run where it has ended this one."""
        fault.run(self)
        over = begun = time.monotonic()
        if fault.ends_run:
            started = self.trainer.wait("started", after=over, timeout_s=HANG_S)
            assert started is not None, self._describe(f"no run started in {HANG_S:.0f} s after {fault}")
            begun, _ = started
        return self._publishes_after(begun, fault) - over

    def _publishes_after(self, moment: float, fault: Fault | None = None) -> float:
        published = self.trainer.wait("published", after=moment, timeout_s=HANG_S)
        assert published is not None, self._describe(f"nothing was published in {HANG_S:.0f} s after {fault}")
        return published[0]

    def _check(self) -> dict[str, Any]:
        witness = Witness(self.bootstrap, self.job.name, self.job.records, self.partitions)
        last_records, until = witness.last_records(), time.monotonic() + HANG_S
        while not self._reached(last_records):
            assert time.monotonic() < until, self._describe(f"expected all up to {last_records}")
            time.sleep(0.1)
        code = self.trainer.end()
        assert code == 0, self._describe(f"expected exit code 0 after SIGTERM, got {code}")
        counts = witness.check()
        report = self.job.verified()
        rows = {"trained": counts["trained"], "dead_lettered": counts["dead"], "filtered": counts["filtered"]}
        assert {name: report["rows"][name] for name in rows} == rows, (report["rows"], rows)
        self.job.replayed()
        recoveries = [[str(fault), round(seconds, 2)] for fault, seconds in self.recoveries]
        return {"seed": self.seed, **counts, "recoveries": recoveries}

    def _reached(self, last_offsets: Sequence[int]) -> bool:
        published = [event for _, event in self.trainer.timed if event["event"] == "published"]
        if not published:
            return False
        positions = published[-1]["positions"]
        return len(positions) == len(last_offsets) and all(
            offset > last and row == 0 for (offset, row), last in zip(positions, last_offsets, strict=True)
        )

    def _describe(self, what: str) -> str:
        last = json.dumps(self.trainer.timed[-1][1]) if self.trainer.timed else "no event"
        return f"seed {self.seed}: {what}; last event {last}\n{self.trainer.errors()}"


# -- records: single rows, many in a record, bad ones, tombstones, and transactions that are aborted ------------------

JUNK = b"\xc1 not msgpack"
_PAUSE_S = 0.02
_ABORTED_SHARE = 0.25


def records(seed: int) -> Iterator[bytes | None]:
    """An endless mix; None is a tombstone."""
    chance = random.Random(seed)
    source = (row for part in itertools.count(1) for row in rows(2000, seed=seed * 1000 + part))

    def row() -> dict[str, object]:
        found = next(source)
        if chance.random() < 0.01:
            found["x1"] = "bad"  # a dead row
        if chance.random() < 0.01:
            del found["y"]  # filtered
        return found

    while True:
        draw = chance.random()
        if draw < 0.6:
            yield msgpack.packb(row())
        elif draw < 0.96:
            yield msgpack.packb([row() for _ in range(chance.randrange(2, 40))])
        elif draw < 0.97:
            whole: bytes = msgpack.packb([row() for _ in range(chance.randrange(2, 40))])
            yield whole[: chance.randrange(4, len(whole))]  # rows, then a remainder nobody can decode
        elif draw < 0.985:
            yield JUNK
        else:
            yield None


class Feed:
    """Two threads that produce until `stop`: one plainly, one in transactions of which a quarter is aborted."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, seed: int) -> None:
        self._bootstrap, self._topic, self._partitions, self._seed = bootstrap, topic, partitions, seed
        self._stop = threading.Event()
        self._works: list[Future[None]] = []

    def start(self) -> None:
        self._works = [in_background(work, name="feed") for work in (self._plain, self._transactional)]

    def stop(self) -> None:
        """Returns when everything that was begun has been delivered or given up; raises what a producer has raised."""
        self._stop.set()
        for work in self._works:
            work.result(300)

    def _plain(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "enable.idempotence": True, "log_level": 0})
        mix = records(self._seed)
        at = 0
        while not self._stop.is_set():
            for _ in range(10):
                at += 1
                value = next(mix)
                key = f"k{at}".encode() if value is None else None
                producer.produce(self._topic, value=value, key=key, partition=at % self._partitions)
            producer.poll(0)
            self._stop.wait(_PAUSE_S)
        left = producer.flush(240)
        assert left == 0, f"{left} records were not delivered"

    def _transactional(self) -> None:
        chance = random.Random(self._seed + 1)
        mix = records(self._seed + 1)
        settings = {"bootstrap.servers": self._bootstrap, "transactional.id": f"{self._topic}-feed", "log_level": 0}
        while not self._stop.is_set():
            producer = Producer(settings)
            try:
                producer.init_transactions(240)
                self._transactions(producer, mix, chance)
            except KafkaException as error:  # fenced, timed out: what it wrote is decided by the broker alone
                if error.args[0].code() == KafkaError._FATAL:
                    continue

    def _transactions(self, producer: Producer, mix: Iterator[bytes | None], chance: random.Random) -> None:
        while not self._stop.is_set():
            producer.begin_transaction()
            for _ in range(chance.randrange(1, 12)):
                producer.produce(self._topic, value=next(mix), key=b"t", partition=chance.randrange(self._partitions))
            producer.flush(60)
            if chance.random() < _ABORTED_SHARE:
                producer.abort_transaction(60)
            else:
                producer.commit_transaction(60)
            self._stop.wait(_PAUSE_S)
