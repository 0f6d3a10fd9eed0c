"""Guarantee 4 for predictions: each names a snapshot that was published, with its digest."""

from __future__ import annotations

from streamtrain import _native
from streamtrain.job import Job
from streamtrain.kafka.chunks import Located
from streamtrain.kafka.consumer import KafkaConsumer, ingest_config
from streamtrain.kafka.reading import bounds, read
from streamtrain.topics.predictions import DIGEST_HEADER, ERROR_HEADER, VERSION_HEADER
from streamtrain.topics.rounds import RoundLog
from streamtrain.verify.report import Check


def check_predictions(job: Job, manifests: list[Located], logs: list[RoundLog]) -> Check:
    check = Check("predictions", "every prediction carries the version and digest of a published snapshot")
    topic = job.topic("predictions").name
    assert topic is not None
    digests = {log.version: log.digest for log in logs}
    digests.update({located.manifest.version: located.digest for located in manifests})
    seen = unknown = 0
    with KafkaConsumer(ingest_config(job.kafka_consumer())) as consumer:
        try:
            partitions = consumer.native.partition_count(topic, 8000)
        except _native.KafkaFailure:
            check.span = f"no topic {topic}"
            return check
        for partition in range(partitions):
            for message in read(consumer, topic, partition, *bounds(consumer, topic, partition)):
                headers = dict(message.headers)
                if ERROR_HEADER in headers:
                    continue
                seen += 1
                version, digest = int(headers.get(VERSION_HEADER) or 0), headers.get(DIGEST_HEADER)
                where = f"{topic}[{partition}]@{message.offset}"
                if version not in digests:
                    unknown += 1
                    newest = manifests[-1].manifest.version
                    check.expect(0 < version <= newest, f"{where}: version {version} was never published")
                    continue
                told = digests[version].hex().encode()
                check.expect(digest in (digests[version], told), f"{where}: version {version} has another digest")
    if unknown:
        check.not_checkable.append(f"{unknown} predictions of versions older than snapshots and round log go back")
    check.span = f"{seen} predictions"
    return check
