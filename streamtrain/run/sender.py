"""Sends what a host has learned to the topic from which a leader folds it: an offer, its chunks, and a head.

Used by the contributor, in threads of its own, one at a time.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from streamtrain.build import build_digest
from streamtrain.closing import Closing
from streamtrain.compute.model import Model
from streamtrain.errors import KafkaUnreachable
from streamtrain.job import Job
from streamtrain.kafka.clients import KafkaProducer
from streamtrain.kafka.settings import Purpose
from streamtrain.run.arena import slot_layout
from streamtrain.run.publication import round_terms
from streamtrain.run.round_log import Columns
from streamtrain.topics import named_schemas
from streamtrain.topics.chunks import Stored
from streamtrain.topics.contributions import (
    Head,
    Hello,
    Offer,
    Sizes,
    chunk_messages,
    layout_digest,
    message,
    spans_of,
)
from streamtrain.topics.manifest import Slot, split
from streamtrain.topics.rounds import counts_of, weight_of
from streamtrain.topics.topic import Message, sha256

_FLUSH_MS = 1000
_PATIENCE_S = 60.0  # for a broker that is away


@dataclass(frozen=True)
class Learned:
    """The results of a host's round. `state`: a mean buffer in which the workers' vectors are joined."""

    state: npt.NDArray[np.uint8]
    columns: Columns
    letters: bytes  # of the dead letter ring
    letter_entries: int
    seed: int  # of the round's random numbers
    worker_deaths: int
    early: bool  # the round closed before it was due
    idle_s: float  # without training, since the round before was over
    send_s: float  # that sending takes, as was measured


class Sent(NamedTuple):
    """A contribution that was sent: its head's digest, when Kafka had it, and how long that took."""

    head: bytes
    messages: tuple[Message, ...]
    at_s: float  # monotonic
    took_s: float
    again: bool = False


class Sender(Closing):
    """One life of the host `host`, which begins with a hello."""

    def __init__(self, job: Job, model: Model, kafka: Mapping[str, str], topic: str, host: str) -> None:
        self._job, self._topic, self._host = job, topic, host
        self.life, self._sequence = uuid.uuid4().hex, 0
        layout = slot_layout(job)
        self._slot = Slot(layout.row_capacity, layout.range_capacity)
        self._layout = digest_of(model)
        self._producer = KafkaProducer.open(Purpose.CONTRIBUTE, kafka)
        self._lock = threading.Lock()  # of the producer

    def close(self) -> None:
        self._producer.close()

    def hello(self) -> None:
        """Says that this host is there."""
        self._write([message(Hello(self._job.name, self._host, self.life))])

    def send_empty(self, base: Stored) -> None:
        """Says that the host has nothing for the snapshot after `base`."""
        nothing = Learned(np.empty(0, np.uint8), Columns.empty(), b"", 0, base.manifest.seed, 0, False, 0.0, 0.0)
        self._write([message(self._head(base, nothing, Sizes(), b""))])

    def send(self, base: Stored, learned: Learned) -> Sent:
        """Sends what was learned from `base`. Raises KafkaUnreachable where no broker takes it."""
        columns = learned.columns
        structs = [part.tobytes() for part in (learned.state, columns.rounds, columns.slots, columns.ranges)]
        parts = [*structs, named_schemas.encode(columns.schemas), learned.letters]
        payload = b"".join(parts)
        head = self._head(base, learned, Sizes(*map(len, parts)), payload)
        offer = Offer(**{name: getattr(head, name) for name in Offer.__dataclass_fields__})
        last = message(head)
        sequence = (message(offer), *chunk_messages(self.life, head.sequence, payload), last)
        return self._sent(sequence)

    def send_again(self, sent: Sent) -> Sent:
        """Sends the same messages."""
        return self._sent(sent.messages)._replace(again=True)

    def _sent(self, messages: tuple[Message, ...]) -> Sent:
        began_s = time.monotonic()
        self._write(messages)
        at_s, head = time.monotonic(), messages[-1].value
        assert head is not None
        return Sent(sha256(head), messages, at_s, at_s - began_s)

    def _head(self, base: Stored, learned: Learned, sizes: Sizes, payload: bytes) -> Head:
        manifest, columns, round_ = base.manifest, learned.columns, base.manifest.round + 1
        sequence, self._sequence = self._sequence, self._sequence + 1
        return Head(
            job=self._job.name,
            lineage=manifest.lineage,
            host=self._host,
            life=self.life,
            sequence=sequence,
            base_version=manifest.version,
            base_digest=base.digest,
            spans=spans_of(columns.ranges),
            size=len(payload),
            early=learned.early,
            send_ms=int(1000 * learned.send_s),
            round=round_,
            layout=self._layout,
            terms=round_terms(self._job, self._slot, build_digest(), manifest.positions.topic_id, learned.seed, round_),
            worker_deaths=learned.worker_deaths,
            counts=counts_of(columns.slots),
            weight=weight_of(columns.slots, self._job.train.workers),
            sizes=sizes,
            letter_entries=learned.letter_entries,
            chunks=tuple(sha256(chunk) for chunk in split(payload)),
            idle_ms=int(1000 * learned.idle_s),
        )

    def _write(self, messages: Iterable[Message]) -> None:
        """Writes all of them in this order. Raises KafkaUnreachable where no broker takes them."""
        with self._lock:
            for each in messages:
                code = self._producer.produce(self._topic, each.value, each.key, partition=0)
                if code:
                    raise self._producer.explain(code, "cannot be sent", self._topic)
            until_s = time.monotonic() + _PATIENCE_S
            while self._producer.native.flush(_FLUSH_MS):
                self._producer.hear()
                if time.monotonic() > until_s:
                    raise KafkaUnreachable(f"{self._topic}: no broker has taken what was sent for {_PATIENCE_S:.0f} s")
            self._producer.hear()


def digest_of(model: Model) -> bytes:
    """Returns the digest of the layout of a model's state, which contributions name."""
    blocks = model.layout.blocks
    return layout_digest([(block.name, str(block.dtype), block.rule, block.shape) for block in blocks])
