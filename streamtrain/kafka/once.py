"""Transactions that hold all that was written in them or nothing, by the rules of native/kafka/transaction.h.

For whoever goes on from offsets that go with what it writes, and so need not know what became of a transaction: an
error ends it, and who starts again reads what is committed. A trainer, which must know, has transaction.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from streamtrain import _native
from streamtrain._native import KafkaEnding, KafkaNext, KafkaOutcome
from streamtrain.kafka.clients import ANY_PARTITION, TransactionalProducer
from streamtrain.kafka.error_codes import is_passing
from streamtrain.kafka.settings import Purpose

_PREPARE_S = 60.0  # for another's transaction of this name to end, and a broker to come back
_AGAIN_S = 0.5


class Once:
    """Writes to `topic`, under a name that from here on nobody else writes by. One thread at a time.

    Raises our errors for Kafka's: KafkaUnreachable where it is waited for too long, KafkaBroken where another has taken
    the name. What was written in a transaction that did not end well counts for nothing, unless Kafka had committed it
    and its answer was lost.
    """

    def __init__(self, kafka: Mapping[str, object], name: str, topic: str, patience_s: float = _PREPARE_S) -> None:
        self._topic = topic
        self._offsets: tuple[Any, ...] = ()
        self._producer = TransactionalProducer.open(Purpose.RESEND, kafka, name)
        try:
            self._prepare(patience_s)
        except BaseException:
            self._producer.close()
            raise

    def _prepare(self, patience_s: float) -> None:
        until_s = time.monotonic() + patience_s
        while (outcome := self._producer.native.prepare()).code:
            again = is_passing(outcome.code) or outcome.next(over=False) is KafkaNext.AGAIN
            if not again or time.monotonic() > until_s:
                raise self._explained(outcome)
            time.sleep(_AGAIN_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._producer.close()

    @property
    def native(self) -> _native.KafkaTransactionalProducer:
        """For what writes from C++; `queued` checks what it gives."""
        return self._producer.native

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commits what is written within, and where it was moved the group; aborts it where an exception leaves it."""
        self._check(self.native.begin())
        self._offsets = ()
        try:
            yield
        except BaseException:
            self.native.abort("not all of it was written")
            raise
        ended = self.native.commit(*self._offsets)  # fails where the delivery of one has
        if ended.ending is not KafkaEnding.COMMITTED:
            raise self._explained(ended.why)

    def write(
        self, value: bytes | memoryview, key: bytes | None, headers: Sequence[tuple[str, bytes | None]],
        partition: int = ANY_PARTITION,
    ) -> None:  # fmt: skip
        """One record of the open transaction."""
        self.queued(self._producer.produce(self._topic, value, key, partition=partition, headers=headers))

    def queued(self, code: int) -> None:
        """Raises where `code` is one of a record that cannot be sent."""
        if code:
            self._check(_native.kafka_not_queued(code, self._topic))

    def move(self, topic: str, offsets: Sequence[tuple[int, int]], group: bytes) -> None:
        """With the open transaction the offsets of a group in `topic` go there; its metadata are `group`."""
        self._offsets = topic, list(offsets), group

    def _check(self, outcome: KafkaOutcome) -> None:
        if outcome.code:
            raise self._explained(outcome)

    def _explained(self, outcome: KafkaOutcome) -> Exception:
        return self._producer.explain(outcome.code, outcome.text, f"topic {self._topic}")
