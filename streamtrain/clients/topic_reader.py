"""Messages of one of a job's topics, oldest first within a partition, as any program with the job file can read them.

Read-committed; joins no group and commits nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamtrain.errors import UserMistake
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.consumer import KafkaConsumer, Message, ingest_config
from streamtrain.kafka.reader import read_all


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
    admin = Admin(job.kafka.bootstrap, job.kafka_admin())
    state = admin.describe([name])[name]
    if state is None:
        raise UserMistake(
            f"topic {name}: not in Kafka at {job.kafka.bootstrap}; make it with `streamtrain topics create`"
        )
    ends = admin.last_stable(name, state.partitions)
    starts = admin.earliest(name, state.partitions) if from_beginning else list(ends)
    for partition, end in enumerate(ends):
        wanted = (begin or {}).get(partition, 0 if newest is None else end - newest)
        starts[partition] = max(starts[partition], min(wanted, end))
    if until_end and all(start >= end for start, end in zip(starts, ends, strict=True)):
        return
    with KafkaConsumer(ingest_config(job.kafka_consumer(), group=f"{job.name}.read")) as consumer:
        spans = {partition: (start, ends[partition] if until_end else None) for partition, start in enumerate(starts)}
        yield from read_all(consumer, name, spans)
