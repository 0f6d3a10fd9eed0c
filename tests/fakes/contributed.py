"""Contributions of hosts that never lived: a base snapshot, and the messages of a round that was never trained."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from streamtrain._native import CloseReason
from streamtrain.topics.accepting import Base, StateShape
from streamtrain.topics.contributions import Head, Offer, Sizes, chunk_messages, layout_digest, message, spans_of
from streamtrain.topics.manifest import CHUNK_BYTES, Counts, Position, Slot, split
from streamtrain.topics.rounds import RANGE_DTYPE, ROUND_DTYPE, SLOT_DTYPE
from streamtrain.topics.terms import Terms, contribution_seed
from streamtrain.topics.topic import Message, sha256

BLOCKS = [("w", "f32", "learned", (4,)), ("n", "i64", "sum", (1,)), ("m", "f64", "extremes", (1, 3))]
SHAPE = StateShape(layout_digest(BLOCKS), 192, ((0, "f32", 16), (128, "f64", 24)))
STATE = struct.pack("<4f48xq56x3d40x", 0.5, -1.5, 0.0, 2.0, -1, 3.0, -1.0, 1.0)
BASE = Base(
    job="flights", version=7, digest=sha256(b"snapshot 7"), lineage="ab" * 16, round=4,
    positions=tuple(Position(100 * at, at % 3) for at in range(12)), topic_id="topic-id", shape=SHAPE,
    columns_digest=sha256(b"columns"), model_digest=sha256(b"model"),
    optimizer={"name": "sgd"}, seed=7,
)  # fmt: skip
TERMS = Terms(
    first_round=5, learning_rate={"name": "constant", "rate": 3e-3}, optimizer={"name": "sgd"},
    average_optimizer_state=True, averaging_frequency=64, workers=2, slot=Slot(256, 64),
    batch_growth={"name": "off"}, format={"name": "json"}, columns_digest=BASE.columns_digest,
    model_digest=BASE.model_digest, topic_id=BASE.topic_id, seed=7, build="0.1.0",
)  # fmt: skip
_SLOT_ROWS = 100


def life_of(number: int) -> str:
    return f"{number:032x}"


def letter(partition: int, rows: int, round_: int) -> bytes:
    """An entry of the ring of dead letters: so many rows of a record that went by reference."""
    reason = b"no number"
    body = struct.pack("<qqII", 0, rows, 1, len(reason)) + b"$" + reason
    size = 72 + len(body) + -(72 + len(body)) % 8
    head = struct.pack("<QqqqqiIIIIIQ", size, round_, 0, 0, 0, partition, 1, 0, 0, 0, 0, 512)
    return (head + body).ljust(size, b"\0")


@dataclass
class Draft:
    """A contribution before it is sent: what a test changes in it."""

    state: bytes
    rounds: Any
    slots: Any
    ranges: Any
    letters: bytes
    head: dict[str, Any]
    payload: bytes = b""
    chunks: list[bytes] = field(default_factory=list)

    def sealed(self) -> Head:
        """Returns its head, with the sums, sizes and digests of what is in it, but for those that `head` gives."""
        parts = [self.state, self.rounds.tobytes(), self.slots.tobytes(), self.ranges.tobytes(), b"", self.letters]
        self.payload = b"".join(parts)
        sums = (int(self.slots[name].sum()) for name in Counts._fields)
        own = {
            "spans": spans_of(self.ranges), "size": len(self.payload), "counts": Counts(*sums),
            "sizes": Sizes(*map(len, parts)), "chunks": tuple(sha256(chunk) for chunk in split(self.payload)),
            "weight": float(self.slots["weight_sum"].sum()), "letter_entries": int(bool(self.letters)),
        }  # fmt: skip
        return Head(**{**own, **self.head})


def contribution(
    base: Base = BASE, host: str = "a", life: str = life_of(1), sequence: int = 0, partitions: Sequence[int] = (0, 1),
    rows: int = 200, dead: int = 0, early: bool = False, terms: Terms = TERMS, idle_ms: int = 40,
    send_ms: int = 100,
) -> Draft:  # fmt: skip
    """A round over these partitions, so many rows of each in batches of 100; the first range has dead rows too."""
    parts = [(partition, at) for partition in partitions for at in range(0, rows, _SLOT_ROWS)]
    rounds, slots, ranges = (
        np.zeros(count, dtype)
        for count, dtype in ((1, ROUND_DTYPE), (len(parts), SLOT_DTYPE), (len(parts), RANGE_DTYPE))
    )  # fmt: skip
    for index, (partition, at) in enumerate(parts):
        begin, count = base.position(partition), min(_SLOT_ROWS, rows - at)
        ranges[index]["partition"], ranges[index]["trained"], ranges[index]["record_rows"] = partition, count, -1
        ranges[index]["from_offset"], ranges[index]["to_offset"] = begin.offset + at, begin.offset + at + count
        ranges[index]["from_row"] = begin.row if at == 0 else 0
    ranges["dead"][:1] = dead
    slots["slot"], slots["range_count"] = np.arange(len(parts)), 1
    for name in ("rows", "trained"):
        slots[name] = ranges["trained"]
    slots["dead"], slots["weight_sum"] = ranges["dead"], ranges["trained"]
    rounds["round"], rounds["slots"], rounds["workers"] = base.round + 1, len(parts), terms.workers
    rounds["closed_by"], rounds["newest_event_ms"] = CloseReason.INTERVAL, -1
    head = {
        "job": base.job, "lineage": base.lineage, "host": host, "life": life, "sequence": sequence,
        "base_version": base.version, "base_digest": base.digest, "early": early, "send_ms": send_ms,
        "round": base.round + 1, "layout": base.shape.digest, "worker_deaths": 0, "idle_ms": idle_ms,
        "terms": replace(terms, first_round=base.round + 1, seed=contribution_seed(base.seed, min(partitions))),
    }  # fmt: skip
    letters = letter(partitions[0], dead, base.round + 1) if dead else b""
    return Draft(STATE[: base.shape.size].ljust(base.shape.size, b"\0"), rounds, slots, ranges, letters, head)


def messages(draft: Draft) -> list[Message]:
    """Returns its offer, chunks and head."""
    head = draft.sealed()
    offer = Offer(**{name: getattr(head, name) for name in Offer.__dataclass_fields__})
    sent = chunk_messages(head.life, head.sequence, draft.payload)
    return [message(offer), *(Message(each.key, bytes(each.value or b"")) for each in sent), message(head)]


def empty(base: Base = BASE, host: str = "a", life: str = life_of(1), sequence: int = 0, **changes: Any) -> Message:
    """The head of a host that has nothing."""
    draft = contribution(base, host, life, sequence)
    head: Mapping[str, Any] = {
        "spans": (), "size": 0, "counts": Counts(), "sizes": Sizes(), "chunks": (), "weight": 0.0, "letter_entries": 0,
    }  # fmt: skip
    return message(Head(**{**draft.head, **head, **changes}))


def large(base: Base = BASE) -> tuple[Base, bytes]:
    """A base whose state is longer than a chunk, and such a state."""
    floats = CHUNK_BYTES // 4 + 100
    shape = StateShape(sha256(b"large"), 4 * floats, ((0, "f32", 4 * floats),))
    return replace(base, shape=shape), np.linspace(-1, 1, floats, dtype="f4").tobytes()


def offsets() -> Iterator[int]:
    """The offsets of a topic, with holes."""
    return iter(range(1_000, 10**9, 3))
