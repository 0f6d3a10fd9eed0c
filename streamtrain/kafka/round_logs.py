"""The round logs a rounds topic holds, one after the other; they are many, so never all at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamtrain.errors import CheckFailed
from streamtrain.kafka.consumer import KafkaConsumer, ingest_config
from streamtrain.kafka.reading import bounds, read
from streamtrain.topics.rounds import RoundLog, decode, join


def round_logs(kafka: Mapping[str, object], topic: str) -> Iterator[RoundLog]:
    """Every log up to the topic's end as it is now, in the order they were committed.

    One whose first parts retention has removed is passed over. CheckFailed names what is not a part of a log.
    """
    parts: list[RoundLog] = []
    with KafkaConsumer(ingest_config(kafka)) as consumer:
        for message in read(consumer, topic, 0, *bounds(consumer, topic, 0)):
            try:
                part = decode(message.value or b"")
                if part.part == 0:
                    parts = []
                parts.append(part)
                if part.part == part.parts - 1 and len(parts) == part.parts:
                    yield join(parts)
            except CheckFailed as error:
                raise CheckFailed(f"{topic}@{message.offset}: {error}") from None
