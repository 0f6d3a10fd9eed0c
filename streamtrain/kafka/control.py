"""Reads a job's control topic: all of it once, then what has been added since the last look."""

from __future__ import annotations

from collections.abc import Mapping

from streamtrain.closing import Closing
from streamtrain.errors import CheckFailed
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.reader import read
from streamtrain.kafka.renewing import Renewing
from streamtrain.kafka.settings import Purpose
from streamtrain.topics.control import TOPIC, Control, RunEntry


class ControlTopic(Closing):
    """The control topic `name`. Opens one consumer that joins no group, unless `clients` has one; one thread at a
    time."""

    def __init__(self, kafka: Mapping[str, object], name: str, clients: Renewing[KafkaConsumer] | None = None) -> None:
        self.name = name
        self._bootstrap = str(kafka["bootstrap.servers"])
        self._clients = clients or Renewing(lambda: KafkaConsumer.open(Purpose.READ, kafka))
        self._seen = Control()
        self._next = 0

    def close(self) -> None:
        self._clients.close()

    def look(self) -> Control:
        """Returns what the topic holds up to its last stable offset.

        Raises KafkaUnreachable when that could not be read to its end, CheckFailed for an entry that no trainer of this
        job wrote, with the command that takes it back.
        """
        return self._clients.ask(self._look)

    def _look(self, consumer: KafkaConsumer) -> Control:
        low, end = consumer.bounds(self.name, 0)
        if end < self._next:  # the topic was deleted and made again
            self._seen, self._next = Control(), 0
        # what was taken back or written again counts no more, though Kafka may still hold it
        latest = {message.key: message for message in read(consumer, self.name, 0, max(low, self._next), end)}
        for message in latest.values():
            try:
                entry = self._seen.take(message.key, message.value)
            except CheckFailed as error:
                raise self._refused(f"@{message.offset}: {error}", message.key or b"") from None
            if isinstance(entry, RunEntry) and f"{entry.job}.{TOPIC.suffix}" != self.name:
                raise self._refused(f"@{message.offset}: expected a run of its own job, got {entry.job}'s", message.key)
        if (key := self._seen.leap()) is not None:
            why = "expected a run's number near the one before; no trainer has counted so far, another program wrote it"
            raise self._refused(f" key {key.decode()}: {why}", key)
        self._next = end
        return self._seen

    def _refused(self, what: str, key: bytes | None) -> CheckFailed:
        return CheckFailed(f"{self.name}{what}; nothing was written; {take_back(self._bootstrap, self.name, key)}")


def take_back(bootstrap: str, topic: str, key: bytes | None) -> str:
    """The next step for an entry that another program wrote: the command that writes a tombstone under its key."""
    program = (
        f"from confluent_kafka import Producer; p = Producer({{'bootstrap.servers': {bootstrap!r}}}); "
        f"p.produce({topic!r}, key={key!r}, partition=0); p.flush()"
    )
    return f'to go on without that entry, losing nothing else: python -c "{program}" (add your security settings)'
