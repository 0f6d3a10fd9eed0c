"""Terms: what a round's result depends on beside its start and its rows. Every round log begins with those in force.

Columns and model are named by digest here; they stand in the manifest of every snapshot of the lineage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streamtrain.topics.manifest import Slot
from streamtrain.topics.topic import sha256
from streamtrain.topics.wire import DIGEST_BYTES, Plain, Reader, pack, plain

Named = Mapping[str, Any]  # {"name": …} and the settings of what is named, as plain data
_OF_THE_OPTIMIZER = ("optimizer", "average_optimizer_state")  # in a model spec: may change between starts


@dataclass(frozen=True)
class Terms:
    """In force from round `first_round` on."""

    first_round: int
    learning_rate: Named  # a schedule with its settings: {"name": "constant", "rate": 0.003, "warm_up": 0}
    optimizer: Named  # with every setting but the learning rate
    average_optimizer_state: bool
    averaging_frequency: int  # batches of a worker in a full round
    workers: int
    slot: Slot  # its row_capacity is the rows of a full batch
    batch_growth: Named  # {"name": "off"}: every batch may fill its slot
    format: Named  # of the records: {"name": "json"}, and its options
    columns_digest: bytes  # see columns_digest()
    model_digest: bytes  # see model_digest()
    topic_id: str  # of the records topic the ranges speak of
    seed: int
    build: str

    @property
    def round_slots(self) -> int:
        """Slots of a full round."""
        return self.workers * self.averaging_frequency

    def model_spec(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """The model spec `spec` of any snapshot of the lineage as it was under these terms."""
        return {
            **spec, "optimizer": dict(self.optimizer), "average_optimizer_state": self.average_optimizer_state,
        }  # fmt: skip


def columns_digest(schema: Mapping[str, Any]) -> bytes:
    """SHA-256 of a manifest's `schema` in canonical form."""
    return sha256(pack(plain(schema)))


def model_digest(model_spec: Mapping[str, Any]) -> bytes:
    """SHA-256 of a manifest's `model_spec` in canonical form, without the optimizer, which the terms hold."""
    return sha256(pack(plain({key: value for key, value in model_spec.items() if key not in _OF_THE_OPTIMIZER})))


def contribution_seed(seed: int, partition: int) -> int:
    """The seed of a host's random numbers, from the lineage's and the lowest partition that the host has."""
    return int.from_bytes(sha256(pack([seed, partition]))[:8], "little")


def encode(terms: Terms) -> dict[str, Plain | bytes]:
    """A map for msgpack; equal terms give equal bytes."""
    return {
        "first_round": terms.first_round,
        "learning_rate": plain(terms.learning_rate),
        "optimizer": plain(terms.optimizer),
        "average_optimizer_state": terms.average_optimizer_state,
        "averaging_frequency": terms.averaging_frequency,
        "workers": terms.workers,
        "slot": [terms.slot.row_capacity, terms.slot.range_capacity],
        "batch_growth": plain(terms.batch_growth),
        "format": plain(terms.format),
        "columns_digest": terms.columns_digest,
        "model_digest": terms.model_digest,
        "topic_id": terms.topic_id,
        "seed": terms.seed,
        "build": terms.build,
    }


def decode(read: Reader) -> Terms:
    """One entry; `read` raises where it is not one."""
    row_capacity, range_capacity = read.pair(read.value("slot"), "slot")
    return Terms(
        first_round=read.integer("first_round"),
        learning_rate=_named(read, "learning_rate"),
        optimizer=_named(read, "optimizer"),
        average_optimizer_state=read.flag("average_optimizer_state"),
        averaging_frequency=read.integer("averaging_frequency", 1, 2**31 - 1),
        workers=read.integer("workers", 1, 2**31 - 1),
        slot=Slot(row_capacity, range_capacity),
        batch_growth=_named(read, "batch_growth"),
        format=_named(read, "format"),
        columns_digest=read.binary("columns_digest", DIGEST_BYTES),
        model_digest=read.binary("model_digest", DIGEST_BYTES),
        topic_id=read.text("topic_id"),
        seed=read.integer("seed", 0, 2**64 - 1),
        build=read.text("build"),
    )


def _named(read: Reader, name: str) -> Named:
    found = read.mapping(name)
    if not isinstance(found.get("name"), str):
        read.fail(name, "a map with a name and settings", found)
    return found
