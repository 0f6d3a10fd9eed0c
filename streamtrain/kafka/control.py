"""Reads a job's control topic: all of it once, then what has been added since the last look."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from streamtrain.errors import CheckFailed
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.reader import read
from streamtrain.kafka.renewing import Renewing
from streamtrain.kafka.settings import Purpose
from streamtrain.topics.control import Control


class ControlTopic:
    """The control topic `name`. Opens one consumer that joins no group; one thread at a time."""

    def __init__(self, kafka: Mapping[str, object], name: str) -> None:
        self.name = name
        self._clients = Renewing(lambda: KafkaConsumer.open(Purpose.READ, kafka))
        self._seen = Control()
        self._next = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._clients.close()

    def look(self) -> Control:
        """What the topic holds up to its last stable offset.

        Raises KafkaUnreachable when that could not be read to its end, CheckFailed for an entry that is malformed.
        """
        return self._clients.ask(self._look)

    def _look(self, consumer: KafkaConsumer) -> Control:
        low, end = consumer.bounds(self.name, 0)
        if end < self._next:  # the topic was deleted and made again
            self._seen, self._next = Control(), 0
        for message in read(consumer, self.name, 0, max(low, self._next), end):
            try:
                self._seen.take(message.key, message.value)
            except CheckFailed as error:
                raise CheckFailed(
                    f"{self.name}@{message.offset}: {error}; to go on without it write a tombstone under its key, "
                    f"{(message.key or b'').decode(errors='replace')!r}"
                ) from None
        self._next = end
        return self._seen
