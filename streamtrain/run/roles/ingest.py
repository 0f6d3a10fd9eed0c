"""Ingest: reads all partitions by manual assignment, decodes records straight into slots, fixes ranges and rounds.

The one reader of the records topic; publishes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

from streamtrain import _native, exits
from streamtrain._native import KafkaResponse
from streamtrain.columns.schema import Schema
from streamtrain.compute.state import attach
from streamtrain.errors import KafkaBroken, KafkaUnreachable, TooManyOpenFiles
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import NO_GROUP, KafkaConsumer
from streamtrain.kafka.error_codes import response_to
from streamtrain.kafka.renewing import Renewing
from streamtrain.kafka.settings import Purpose, client_settings
from streamtrain.log import get_logger
from streamtrain.run.heap import return_free_memory
from streamtrain.run.ready import round_cutter, wait_ready
from streamtrain.schemas import Answers, SchemaRegistry, decoded_by

HELP = "reads records and turns them into batches"
log = get_logger(__name__)

_RUN_S = 0.5  # one native call; what only Python does may wait so long
_METADATA_S = 5.0  # between two looks at the topic: it may have new partitions, or be gone


@dataclass(frozen=True)
class Config:
    arena: int  # descriptor
    kafka: dict[str, str]
    topic: str
    format: Mapping[str, Any]  # {"name": …} and its options
    registry: Mapping[str, Any]  # properties of its client; may hold secrets
    schema: dict[str, Any]
    round_interval_s: float | None
    batch_growth: int | None
    min_batch_rows: int
    until_end: bool
    threads: int
    end_offsets: list[list[int]]  # [partition, offset]: the last stable offsets at the start, for until_end
    is_share: bool = False  # the run has a share of the partitions, so none is added


def run(config: Config) -> int:
    arena = attach(config.arena)
    plan = Schema.from_dict(config.schema).native_plan(arena.slot_layout)
    with ExitStack() as clients:
        readers = [clients.enter_context(closing(_clients(config))) for _ in range(config.threads)]
        if not wait_ready(arena):
            return exits.RUN_OVER
        cutter = round_cutter(arena, config.round_interval_s, config.batch_growth, config.min_batch_rows)
        answers = Answers()  # one to each id, whichever thread has asked
        return _together([_Thread(config, cutter, plan, own, answers) for own in readers], cutter)


def _clients(config: Config) -> Renewing[KafkaConsumer]:
    """A thread's consumer; what may lie in all of them together is bounded."""
    settings = client_settings(Purpose.INGEST, config.kafka, {"group.id": NO_GROUP}, config.threads)
    return Renewing(lambda: KafkaConsumer(settings))


def _together(threads: list[_Thread], cutter: _native.RoundCutter) -> int:
    """The exit code of the first that does not end well: then all leave."""
    with ThreadPoolExecutor(len(threads), "ingest") as pool:
        pending = {pool.submit(thread.run) for thread in threads}
        try:
            for ended in as_completed(pending):
                if code := ended.result():
                    return code
        finally:
            cutter.leave()
    return 0


class _Thread:
    """Reads partitions of its own with a client of its own, into slots of its own."""

    def __init__(
        self,
        config: Config,
        cutter: _native.RoundCutter,
        plan: _native.DecodePlan,
        readers: Renewing[KafkaConsumer],
        answers: Answers,
    ) -> None:
        self._config, self._readers = config, readers
        self._schemas = SchemaRegistry(config.registry, config.topic, config.format["name"], answers)
        self._source = _native.KafkaSource(
            readers.client.native,
            config.topic,
            end_offsets=[(partition, offset) for partition, offset in config.end_offsets],
            bounded=config.until_end,
        )
        self._ingest = _native.Ingest(cutter, self._source, decoded_by(config.format, self._schemas.ask), plan)
        self._partitions = cutter.partitions

    def run(self) -> int:
        self._ingest.start()
        look_at = time.monotonic() + _METADATA_S
        try:
            while True:
                status = self._ingest.run(_RUN_S)
                if status == _native.IngestStatus.ENDED:
                    return 0
                if status == _native.IngestStatus.LEAVE:
                    return exits.RUN_OVER
                if status == _native.IngestStatus.WAITING and self._schemas.ask_again():
                    self._ingest.rewind()
                for event in self._readers.client.events():
                    say = log.debug if event.level > 4 else log.warning
                    say(event.text, facility=event.facility)
                if time.monotonic() >= look_at:
                    look_at = time.monotonic() + _METADATA_S
                    self._look_at_topic()
                    return_free_memory()  # the largest fetches' buffers: 4 MB of an ingest that only waits
        except _native.KafkaFailure as failure:
            error = self._readers.client.explain(failure)
            if not isinstance(error, KafkaBroken | KafkaUnreachable):
                raise error from None
            topic = self._config.topic
            log.warning(f"{topic}: cannot be read on ({failure.args[1]}); a new run looks at what is left of it")
            return exits.UNEXPECTED  # the new run's coordinator names the gap as at any start

    def _look_at_topic(self) -> None:
        """Adds new partitions, unless the range is bounded; raises KafkaFailure where the topic is gone.

        A consumer that has gone deaf is replaced.
        """
        config, client_count = self._config, self._readers.client_count
        try:
            count = self._readers.ask(lambda consumer: _partition_count(config, consumer))
        except TooManyOpenFiles:
            raise
        except (KafkaUnreachable, KafkaBroken) as cause:
            if self._readers.client_count > client_count:
                log.warning(f"{cause}; reading on with another client", topic=config.topic)
                self._source.read_with(self._readers.client.native)
                self._ingest.rewind()
            return  # the broker is away or settling; ingest waits for it anyway
        if config.until_end or config.is_share:
            return
        for partition in filter(self._ingest.owns, range(self._partitions, count)):
            log.info("new partition", topic=config.topic, partition=partition)
            self._ingest.add_partition(partition)
        self._partitions = max(self._partitions, count)


def _partition_count(config: Config, consumer: KafkaConsumer) -> int:
    """Returns the number of partitions. Consumes nothing, so that no record is lost.

    Raises KafkaFailure if a new run has to check what is left, else our errors.
    """
    try:
        count = consumer.native.partition_count(config.topic, 2000)
        deaf = consumer.native.is_deaf(2000)
    except _native.KafkaFailure as failure:
        response = response_to(failure.args[0])
        if response is KafkaResponse.RENEW or (response is KafkaResponse.MISSING and _is_gone(config)):
            raise
        raise consumer.explain(failure, reads_on=True) from None
    if deaf:
        raise KafkaBroken("nothing comes of what there is")
    consumer.answered()
    return count


def _is_gone(config: Config) -> bool:
    """Returns whether the controller knows no such topic. Another broker that knows none may be behind. False where
    Kafka does not answer."""
    try:
        return bool(Admin(config.kafka["bootstrap.servers"], config.kafka).absent(config.topic))
    except KafkaUnreachable:
        return False
