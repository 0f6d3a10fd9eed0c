"""Messages of one of a job's topics, oldest first within a partition, as any program with the job file can read them.

Read-committed; joins no group and commits nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamtrain.errors import StreamtrainError, UserMistake
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.consumer import PARTITION_EOF, KafkaConsumer, Message, ingest_config

_CONSUME_TIMEOUT_S = 0.1  # how soon Ctrl-C and a passed end are seen
_CONSUME_ROWS = 1_000


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
    many offsets of each other partition. Raises UserMistake where there is no such topic.
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
    open_ = {partition for partition in range(state.partitions) if not until_end or starts[partition] < ends[partition]}
    if not open_:
        return
    with KafkaConsumer(ingest_config(job.kafka_consumer(), group=f"{job.name}.read")) as consumer:
        consumer.assign(name, [(partition, starts[partition]) for partition in sorted(open_)])
        while open_:
            for message in consumer.consume(_CONSUME_ROWS, _CONSUME_TIMEOUT_S):
                past = until_end and message.offset >= ends[message.partition]
                if message.error == PARTITION_EOF:
                    if past:
                        open_.discard(message.partition)
                elif message.error:
                    raise StreamtrainError(f"topic {name}[{message.partition}]: {message.error_text}")
                elif not past and message.partition in open_:
                    yield message
                if until_end and message.offset + 1 >= ends[message.partition]:
                    open_.discard(message.partition)
