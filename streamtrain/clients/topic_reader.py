"""Messages of one of a job's topics, oldest first within a partition, as any program with the job file can read them.

Read-committed; joins no group and commits nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer, Message
from streamtrain.kafka.error_codes import no_such_topic
from streamtrain.kafka.reader import read_all
from streamtrain.kafka.settings import Purpose


def read_messages(
    job: Job,
    key: str,
    *,
    from_beginning: bool = True,
    until_end: bool = False,
    begin: Mapping[int, int] | None = None,
    newest: int | None = None,
) -> Iterator[Message]:
    """Messages of the topic `key` ("records", "dead-letters", …); without `from_beginning` only those still to come.

    With `until_end` it ends where the topic ends when called. `begin`: {partition: offset to begin at}; `newest`: so
    many offsets of each other partition. Raises UserMistake where there is no such topic, KafkaUnreachable where an end
    is not reached.
    """
    name = job.topic(key).name
    assert name is not None
    found = Admin(job.kafka.bootstrap, job.kafka_admin()).spans(name)
    if found is None:
        raise no_such_topic(name, job.kafka.bootstrap)
    spans: dict[int, tuple[int, int | None]] = {}
    for partition, (low, end) in enumerate(found):
        first = (begin or {}).get(partition, 0 if newest is None else end - newest)
        start = max(low, min(first, end)) if from_beginning else end
        spans[partition] = (start, end if until_end else None)
    with KafkaConsumer.open(Purpose.READ, job.kafka_consumer()) as consumer:
        yield from read_all(consumer, name, spans)
