"""Reads a job's predictions as they are written. Joins no group and commits nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping

from streamtrain.clients.arguments import address, job_name
from streamtrain.errors import CheckFailed
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.error_codes import no_such_topic
from streamtrain.kafka.reader import read_all
from streamtrain.kafka.settings import Purpose
from streamtrain.topics import predictions
from streamtrain.topics.predictions import Answer

log = logging.getLogger("streamtrain.predictions")


def read_predictions(
    job: str,
    bootstrap: str,
    kafka: Mapping[str, object] | None = None,
    *,
    topic: str | None = None,
    from_beginning: bool = True,
    until_end: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Answer]:
    """The answers of the predictors, in order within a partition; without `from_beginning` only those still to come.

    `topic` is its name where the job file renames it. With `until_end` it ends where the topic ended at the call, else
    when `stop()` is true. A message that is no answer is left out, with a warning in the log. Raises UserMistake for a
    name or an address that can be none and where there is no such topic, KafkaUnreachable when no broker answers.
    """
    name = predictions.TOPIC.name(job_name("read_predictions", job), topic)
    found = Admin(address("read_predictions", bootstrap), kafka).spans(name)
    if found is None:
        raise no_such_topic(name, bootstrap)
    settings = {**(kafka or {}), "bootstrap.servers": bootstrap}
    consumer = KafkaConsumer.open(Purpose.ANSWERS, settings, "streamtrain-predictions")
    spans = {
        partition: (low if from_beginning else end, end if until_end else None)
        for partition, (low, end) in enumerate(found)
    }
    return _read(consumer, name, spans, stop)


def _read(
    opened: KafkaConsumer, name: str, spans: Mapping[int, tuple[int, int | None]], stop: Callable[[], bool]
) -> Iterator[Answer]:
    with opened as consumer:
        for message in read_all(consumer, name, spans, stop):
            try:
                headers = [(header, value or b"") for header, value in message.headers]
                yield predictions.decode(message.key, message.value, headers)
            except CheckFailed as error:
                log.warning("%s[%d]@%d: %s", name, message.partition, message.offset, error)
