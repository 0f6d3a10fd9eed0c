"""Commits the positions of published snapshots as the group's offsets, after the fact: for tools that show its lag.

Used by the coordinator. The manifests are the truth: these offsets may lag behind, and a new run may move them back.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from threading import Condition, Thread

from streamtrain import _native
from streamtrain.errors import KafkaUnreachable
from streamtrain.kafka.clients import KafkaConsumer
from streamtrain.kafka.renewing import Renewing
from streamtrain.kafka.settings import Purpose

log = logging.getLogger("streamtrain.kafka")

_AGAIN_S = 2.0  # after an attempt that failed, unless newer offsets come


class LateOffsets:
    """One committer in a thread of its own; of what is given while it is busy only the newest is committed."""

    def __init__(self, kafka: Mapping[str, str], group: str, topic: str) -> None:
        self._kafka, self._group = kafka, group
        self._topic = topic
        self._newest: list[int] | None = None
        self._changed = Condition()
        Thread(target=self._run, name="late offsets", daemon=True).start()

    def commit(self, offsets: Sequence[int]) -> None:
        """The next offset of every partition; returns at once."""
        with self._changed:
            self._newest = list(offsets)
            self._changed.notify()

    def _run(self) -> None:
        # a consumer that never joins: its generation is -1, which a group without members accepts
        clients = Renewing(lambda: KafkaConsumer.open(Purpose.GROUP, self._kafka, self._group))
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._newest is not None)
                offsets, self._newest = self._newest, None
            try:
                clients.ask(partial(self._commit, offsets or []))
            except KafkaUnreachable as error:
                log.debug("%s: group offsets not committed: %s", self._topic, error)
                with self._changed:
                    if not self._changed.wait_for(lambda: self._newest is not None, _AGAIN_S):
                        self._newest = offsets

    def _commit(self, offsets: list[int], consumer: KafkaConsumer) -> None:
        consumer.assign(self._topic, [])
        try:
            consumer.native.commit(list(enumerate(offsets)))
        except _native.KafkaFailure as failure:
            raise KafkaUnreachable(failure.args[1]) from None
        finally:
            consumer.hear()
