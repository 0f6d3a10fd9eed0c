"""Records for a chaos run: single rows, many in a record, bad ones, tombstones, and transactions that are aborted."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import msgpack
from confluent_kafka import KafkaError, KafkaException, Producer

from tests.e2e.harness import rows

JUNK = b"\xc1 not msgpack"
_PAUSE_S = 0.02
_ABORTED_SHARE = 0.25


def records(seed: int) -> Iterator[bytes | None]:
    """An endless mix; None is a tombstone."""
    chance = random.Random(seed)
    source = iter(())  # type: Iterator[dict[str, object]]
    part = 0

    def row() -> dict[str, object]:
        nonlocal source, part
        found = next(source, None)
        if found is None:
            part += 1
            source = rows(2000, seed=seed * 1000 + part)
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
        self._bootstrap = bootstrap
        self._topic = topic
        self._partitions = partitions
        self._seed = seed
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._plain, self._transactional)]
        self.failure: Exception | None = None

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Returns when everything that was begun has been delivered or given up."""
        self._stop.set()
        for thread in self._threads:
            thread.join(300)
            assert not thread.is_alive(), "the producers do not end; is the broker back?"
        if self.failure is not None:
            raise self.failure

    def _plain(self) -> None:
        try:
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
        except Exception as error:
            self.failure = error

    def _transactional(self) -> None:
        chance = random.Random(self._seed + 1)
        mix = records(self._seed + 1)
        try:
            while not self._stop.is_set():
                producer = Producer(
                    {"bootstrap.servers": self._bootstrap, "transactional.id": f"{self._topic}-feed", "log_level": 0}
                )
                try:
                    producer.init_transactions(240)
                    self._transactions(producer, mix, chance)
                except KafkaException as error:  # fenced, timed out: what it wrote is decided by the broker alone
                    if error.args[0].code() == KafkaError._FATAL:
                        continue
        except Exception as error:
            self.failure = error

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
