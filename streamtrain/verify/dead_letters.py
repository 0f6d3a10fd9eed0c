"""Guarantee 2 across two topics: every dead row of the round log is in the dead-letters topic, and no other."""

from __future__ import annotations

from streamtrain import _native
from streamtrain.errors import CheckFailed
from streamtrain.job import Job
from streamtrain.kafka.consumer import KafkaConsumer, ingest_config
from streamtrain.kafka.reading import bounds, read
from streamtrain.topics import dead_letters
from streamtrain.topics.dead_letters import DeadLetter
from streamtrain.topics.rounds import RoundLog
from streamtrain.verify.report import Check


def check_dead_letters(job: Job, logs: list[RoundLog]) -> Check:
    check = Check("dead letters", "each row that was not trained is a dead letter, filtered, or a tombstone")
    topic = job.topic("dead-letters").name
    assert topic is not None
    rows: dict[int, int] = {}  # dead rows told of, by snapshot version
    span_of = [(log.run.number, int(log.rounds["round"][0]), int(log.rounds["round"][-1]), log.version) for log in logs]
    removed = False
    total = 0
    with KafkaConsumer(ingest_config(job.kafka_consumer())) as consumer:
        try:
            partitions = consumer.native.partition_count(topic, 8000)
        except _native.KafkaFailure as failure:
            raise consumer.explain(failure) from None
        for partition in range(partitions):
            low, end = bounds(consumer, topic, partition)
            removed = removed or low > 0
            for message in read(consumer, topic, partition, low, end):
                headers = [(name, value or b"") for name, value in message.headers]
                try:
                    letter = dead_letters.decode(message.key, message.value, headers)
                except CheckFailed as error:
                    check.problems.append(f"{topic}[{partition}]@{message.offset}: {error}")
                    continue
                version = _version(span_of, letter)
                rows[version] = rows.get(version, 0) + letter.row_count
                total += letter.row_count
    for log in logs:
        expected = int(log.slots["dead"].sum(dtype="i8"))
        got = rows.get(log.version, 0)
        if removed and got < expected:
            check.not_checkable.append(f"snapshot {log.version}: dead letters removed by retention")
            continue
        check.expect(
            got == expected, f"snapshot {log.version}: the round log has {expected} dead rows, the dead letters {got}"
        )
    check.span = f"{total} rows of dead letters, {len(logs)} publications"
    return check


def _version(spans: list[tuple[int, int, int, int]], letter: DeadLetter) -> int:
    for run, first, last, version in spans:
        if run == letter.run and first <= letter.round <= last:
            return version
    return -1
