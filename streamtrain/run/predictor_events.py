"""Events of the native predictor's Kafka clients: logged, and checked for errors that waiting does not fix."""

from __future__ import annotations

import time
from collections.abc import Iterable

from streamtrain import _native
from streamtrain._native import KafkaCode
from streamtrain.errors import KafkaDenied, KafkaUnreachable, StreamtrainError, TooManyOpenFiles, UserMistake
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.clients import Event
from streamtrain.kafka.error_codes import Heard, explain, is_passing
from streamtrain.log import logger_without_repeats

log = logger_without_repeats(f"{__name__}.kafka")
_FAILED = "PREDICT"  # the facility of what failed in the predictor's own calls
_LOOK_S = 5.0  # between two looks for topics, while something fails


class Events:
    """`topics`: that a bounded run needs; none: a topic that is deleted is waited for."""

    def __init__(self, kafka: dict[str, str], topics: Iterable[str]) -> None:
        self._kafka, self._topics = kafka, list(topics)
        self._heard = Heard(kafka)
        self._failed: list[Event] = []
        self._batches = 0
        self._looked_s = float("-inf")

    def log(self, native: _native.Predictor) -> None:
        """Logs what there is."""
        batches = native.counters()["batches"]
        if batches != self._batches:
            self._batches = batches
            self._heard.clear()
        for event in (Event(*fields) for fields in native.drain_events()):
            say = log.warning if event.level <= 4 else log.debug
            say(event.text, facility=event.facility)
            if event.facility == _FAILED:
                self._failed.append(event)
            elif event.level <= 4:
                self._heard.take(event.code, event.text)

    def check(self) -> None:
        """Raises what no waiting mends: KafkaDenied for a client that is not let in, TooManyOpenFiles for one that can
        connect no more, UserMistake where a bounded run's topic is gone."""
        failed, self._failed = self._failed, []
        for event in failed:
            if not is_passing(event.code):
                continue
            error = self.explained(event.code, event.text)
            if isinstance(error, KafkaDenied | TooManyOpenFiles):
                raise error
            if time.monotonic() - self._looked_s >= _LOOK_S:
                self._looked_s = time.monotonic()
                self._look()

    def _look(self) -> None:
        """A topic that is gone is often told by a time-out alone."""
        admin = Admin(self._kafka["bootstrap.servers"], self._kafka)
        for topic in self._topics:
            try:
                if admin.absent(topic):
                    raise deleted(topic)
            except KafkaUnreachable:
                return

    def explained(self, code: int, text: str) -> StreamtrainError:
        """Our error for a failure that ended the native predictor."""
        if code == KafkaCode.INCONSISTENT:
            return deleted(self._topics[0])
        what, _, text = text.partition(": ")
        return explain(code, text, what, self._kafka["bootstrap.servers"], self._heard)


def deleted(topic: str) -> UserMistake:
    return UserMistake(
        f"{topic}: expected the topic that there was at the start of this bounded run, found that it was deleted; "
        "make it again with 'streamtrain topics create', then start again"
    )
