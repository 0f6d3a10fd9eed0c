"""Records for a chaos run: single rows, many in a record, bad ones, tombstones, and transactions that are aborted."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Iterator
from concurrent.futures import Future

import msgpack
from confluent_kafka import KafkaError, KafkaException, Producer

from streamtrain.background import in_background
from tests.e2e.harness import rows

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
            found["x1"] = "n/a"  # a dead row
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
