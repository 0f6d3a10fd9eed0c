"""Publishes made-up snapshots to a real Kafka as the coordinator does, one transaction each; also damaged ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from confluent_kafka import Producer
from waiting import wait_for

from streamtrain.kafka.admin import Admin
from streamtrain.topics.manifest import Counts, Kept, Manifest, Parent, Position, Positions, Restored, Run, Slot
from streamtrain.topics.shelves import kept_after
from streamtrain.topics.snapshots import Publication, publish
from streamtrain.topics.topic import Message, job_topics, sha256


def example_manifest(version: int = 7, **changes: object) -> Manifest:
    manifest = Manifest(
        job="flights",
        version=version,
        lineage="0123456789abcdef" * 2,
        parent=Parent(version - 1, sha256(b"parent"), 41) if version > 1 else None,
        run=Run(3, "fedcba9876543210" * 2),
        round=120,
        positions=Positions("2Zk7Jx8LTPO4jX2vS0Q1fg", (Position(1000, 3), Position(2_000_000_000_000))),
        job_settings={"train": {"workers": 2, "batch_rows": 256}, "optimizer": {"name": "adam", "learning_rate": 3e-3}},
        config_digest=sha256(b"config").hex(),
        seed=2**64 - 1,
        workers=2,
        slot=Slot(256, 64),
        build="0.1.0+abcdef",
        model_spec={"layers": [{"dense": 64, "activation": "relu"}], "loss": "binary_cross_entropy"},
        schema={"columns": [{"name": "Verspätung", "kind": "number"}]},
        metrics={"window": {"log_loss": 0.28, "auc": float("nan")}, "total": {"rows": 10}, "constant": {}},
        untrained=False,
        rows_seen=123_456,
        created_ms=1_750_000_000_000,
        chain=sha256(b"chain"),
        counts=Counts(123_000, 400, 50, 6),
        gaps=({"partition": 0, "from": [10, 0], "to": [20, 0], "reason": "retention"},),
        restored=Restored(version - 1, sha256(b"positions")) if version > 1 else None,
    )
    return replace(manifest, **changes)  # type: ignore[arg-type]


class Publisher:
    """One producer of a job's snapshots topic, which it makes."""

    def __init__(self, bootstrap: str, job: str, keep: int = 3, config: dict[str, str] | None = None) -> None:
        self.job = job
        self.topic = f"{job}.snapshots"
        self.keep = keep
        self.kept: tuple[Kept, ...] = ()
        self._admin = Admin(bootstrap)
        settings = {"snapshots": {"config": config or {}}}
        self._admin.ensure(wish for wish in job_topics(job, settings) if wish.key == "snapshots")
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap, "transactional.id": job, "retry.backoff.ms": 1,
                "retry.backoff.max.ms": 20, "linger.ms": 1,
            }
        )  # fmt: skip
        self._producer.init_transactions(10)

    def make(self, version: int, model: bytes, trainer: bytes = b"", **changes: Any) -> Publication:
        """The messages of one snapshot."""
        changes = {"kept": self.kept, **changes}
        return publish(example_manifest(version, job=self.job, **changes), model, trainer, self.keep, 24)

    def write(self, messages: Iterable[Message], commit: bool = True) -> int:
        """Writes messages in one transaction; gives the offset of the last."""
        self.begin(messages)
        if commit:
            self.commit()
        else:
            self._producer.abort_transaction(10)
        return self.offset

    def begin(self, messages: Iterable[Message]) -> None:
        """Leaves the transaction open; the messages have reached the broker."""
        self._producer.begin_transaction()
        for message in messages:
            value = None if message.value is None else bytes(message.value)  # produce() takes no memoryview
            self._producer.produce(self.topic, value, message.key, on_delivery=self._delivered)
        assert self._producer.flush(60) == 0

    def commit(self) -> None:
        """Returns when readers can see it: the commit's answer comes before its markers are written."""
        self._producer.commit_transaction(60)
        wait_for(lambda: self._admin.last_stable(self.topic, 1)[0] > self.offset)

    def _delivered(self, error: object, message: Any) -> None:
        assert error is None, error
        self.offset: int = message.offset()

    def put(self, version: int, model: bytes, trainer: bytes = b"", **changes: Any) -> Publication:
        """Publishes one good snapshot."""
        publication = self.make(version, model, trainer, **changes)
        offset = self.write(publication.messages)
        self.kept = kept_after(publication.manifest, publication.digest, offset)
        return publication

    def put_damaged(self, version: int, model: bytes, damage: Callable[[list[Message]], list[Message]]) -> None:
        """Publishes a snapshot whose messages `damage` has changed."""
        self.write(damage(list(self.make(version, model).messages)))
