"""The contributions topic: what each of many hosts learned since a snapshot, on its way to the host that publishes.

A host says hello when it joins. For each snapshot it sends an offer, its contribution in chunks, and a head that
describes them. A contribution is the bytes of its parts one after the other; the columns are those of a round log.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from streamtrain.errors import CheckFailed
from streamtrain.topics.documents import Document, key_of
from streamtrain.topics.manifest import Counts, Position, Run, split
from streamtrain.topics.rounds import BYTE_DTYPE, RANGE_DTYPE, ROUND_DTYPE, SLOT_DTYPE, RoundLog, Structs
from streamtrain.topics.terms import Terms
from streamtrain.topics.terms import decode as decode_terms
from streamtrain.topics.terms import encode as encode_terms
from streamtrain.topics.topic import Message, Topic, sha256
from streamtrain.topics.wire import DIGEST_BYTES, HEX_128_BIT, Reader, pack

HELP = "what hosts that train together have learned, until it is published"
WIRE_VERSION = 1
TOPIC = Topic(
    key="contributions",
    config={"cleanup.policy": "delete", "retention.ms": "600000", "max.message.bytes": "1048588"},
    fixed_partitions=True,
    wire_version=WIRE_VERSION,
    hosts="many",
)
_COLUMNS = {"rounds": ROUND_DTYPE, "slots": SLOT_DTYPE, "ranges": RANGE_DTYPE, "schemas": BYTE_DTYPE}
_HELLO = re.compile(rb"([0-9a-f]{32})/hello")
_SENT = re.compile(rb"([0-9a-f]{32})/(0|[1-9][0-9]{0,17})/(offer|head|0|[1-9][0-9]{0,8})")
_PAYLOAD_LIMIT = 1 << 40  # bytes; a head that claims more is damaged
_NO_RUN = Run(1, "0" * HEX_128_BIT)  # of a log that no leader has published


class Span(NamedTuple):
    """The rows of a partition from one position to another."""

    partition: int
    begin: Position
    end: Position


class Sizes(NamedTuple):
    """The bytes of each part of a contribution, in their order."""

    state: int = 0  # joined shares of the workers, as a mean buffer has them
    rounds: int = 0  # one round
    slots: int = 0
    ranges: int = 0
    schemas: int = 0  # that the records name
    letters: int = 0  # dead letters, as the arena's ring has them


@dataclass(frozen=True)
class Hello:
    """A host has joined."""

    job: str
    host: str
    life: str  # 128 bits, hex: of this process tree


@dataclass(frozen=True)
class Offer:
    """The announcement of a contribution: its host closes the round and sends it now."""

    job: str
    lineage: str  # 128 bits, hex
    host: str
    life: str  # 128 bits, hex
    sequence: int  # counts the contributions of a life from 0
    base_version: int  # of the snapshot that it was trained from
    base_digest: bytes  # of that one's manifest
    spans: tuple[Span, ...]  # by partition; none: the host has no rows
    size: int  # bytes of all its chunks
    early: bool  # closed before its time: the ring is full, a partition is taken, or the host stops
    send_ms: int  # that the host takes to send so much, as it has measured


@dataclass(frozen=True)
class Head(Offer):
    """The description of a contribution whose chunks lie before it: an offer, and what came of it."""

    round: int  # the snapshot's and one
    layout: bytes  # digest of the state's layout
    terms: Terms  # the round settings of this host
    worker_deaths: int  # of the life so far
    counts: Counts  # sums of the batches
    weight: float  # sum over the workers of the sums of their batches' weights
    sizes: Sizes  # of its parts
    letter_entries: int  # in the dead letters
    chunks: tuple[bytes, ...]  # SHA-256 of each chunk
    idle_ms: int  # from when the round before was due to close until this one began to train

    @property
    def is_empty(self) -> bool:
        """The host is there and has nothing."""
        return not self.spans and not self.size


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of the bytes of a contribution."""

    life: str
    sequence: int
    index: int
    data: bytes


def layout_digest(blocks: Sequence[tuple[str, str, str, Sequence[int]]]) -> bytes:
    """Returns the SHA-256 of a state layout: name, dtype, rule and shape of each block in order."""
    return sha256(pack([[name, dtype, rule, list(shape)] for name, dtype, rule, shape in blocks]))


def spans_of(ranges: Structs) -> tuple[Span, ...]:
    """Returns where each partition's first range begins and its last one ends, by partition."""
    if not len(ranges):
        return ()
    partitions, first = np.unique(ranges["partition"], return_index=True)
    last = len(ranges) - 1 - np.unique(ranges["partition"][::-1], return_index=True)[1]
    columns = [
        ranges[f"{side}_{what}"][at].tolist()
        for side, at in (("from", first), ("to", last)) for what in ("offset", "row")
    ]  # fmt: skip
    rows = zip(partitions.tolist(), *columns, strict=True)
    return tuple(Span(partition, Position(*each[:2]), Position(*each[2:])) for partition, *each in rows)


def round_log(head: Head, behind_state: bytes | memoryview) -> RoundLog:
    """Returns a contribution's round log from what its payload holds behind the state. It has no run, digest and time
    yet: the leader adds those. CheckFailed where the parts are not whole."""
    at = 0
    columns: dict[str, Any] = {}
    for name, dtype in _COLUMNS.items():
        size = getattr(head.sizes, name)
        if size % dtype.itemsize or at + size > len(behind_state):
            raise CheckFailed(f"contribution.{name}: expected structs of {dtype.itemsize} bytes, got {size} bytes")
        columns[name] = np.frombuffer(behind_state[at : at + size], dtype)
        at += size
    return RoundLog(
        job=head.job, lineage=head.lineage, run=_NO_RUN, version=head.base_version + 1, digest=b"",
        terms=(head.terms,), metrics={}, created_ms=0, worker_deaths=head.worker_deaths, host=head.host, **columns,
    )  # fmt: skip


def message(entry: Hello | Offer | Head) -> Message:
    """Returns the message for an entry but a chunk's."""
    if isinstance(entry, Hello):
        return Message(f"{entry.life}/hello".encode(), encode(entry))
    kind = "head" if isinstance(entry, Head) else "offer"
    return Message(f"{entry.life}/{entry.sequence}/{kind}".encode(), encode(entry))


def chunk_messages(life: str, sequence: int, payload: bytes | memoryview) -> Iterator[Message]:
    """Yields the chunks of a contribution."""
    for index, chunk in enumerate(split(payload)):
        yield Message(f"{life}/{sequence}/{index}".encode(), chunk)


def encode(entry: Hello | Offer | Head) -> bytes:
    """The entry's bytes: equal entries give equal bytes."""
    if isinstance(entry, Hello):
        return pack({"wire": WIRE_VERSION, **asdict(entry)})
    spans = [[span.partition, *span.begin, *span.end] for span in entry.spans]
    document: dict[str, object] = {
        "wire": WIRE_VERSION,
        "job": entry.job,
        "lineage": entry.lineage,
        "host": entry.host,
        "life": entry.life,
        "sequence": entry.sequence,
        "base": {"version": entry.base_version, "digest": entry.base_digest},
        "spans": spans,
        "size": entry.size,
        "early": entry.early,
        "send_ms": entry.send_ms,
    }
    if isinstance(entry, Head):
        document |= {
            "round": entry.round,
            "layout": entry.layout,
            "terms": encode_terms(entry.terms),
            "worker_deaths": entry.worker_deaths,
            "counts": entry.counts._asdict(),
            "weight": entry.weight,
            "sizes": entry.sizes._asdict(),
            "letter_entries": entry.letter_entries,
            "chunks": b"".join(entry.chunks),
            "idle_ms": entry.idle_ms,
        }
    return pack(document)


def decode(key: bytes | None, value: bytes | None) -> Hello | Offer | Head | Chunk:
    """The entry in a message; CheckFailed says what is wrong with another message."""
    name = key or b""
    if value is None:
        raise CheckFailed("contribution: expected a value, got a tombstone")
    if _HELLO.fullmatch(name):
        read = Reader.unpack(value, "hello", WIRE_VERSION, CheckFailed)
        found: Hello | Offer = Hello(read.text("job"), read.text("host"), read.hexadecimal("life", HEX_128_BIT))
    elif sent := _SENT.fullmatch(name):
        life, sequence, what = sent.groups()
        if what not in (b"offer", b"head"):
            return Chunk(life.decode(), int(sequence), int(what), value)
        read = Reader.unpack(value, what.decode(), WIRE_VERSION, CheckFailed)
        offer = _decode_offer(read)
        found = _decode_head(read, offer) if what == b"head" else offer
    else:
        raise CheckFailed(f"contribution: expected a key <life>/hello or <life>/<sequence>/<what>, got {name[:80]!r}")
    if message(found).key != name:
        read.fail("life and sequence", f"those of the key {name.decode()}", message(found).key)
    return found


def _decode_offer(read: Reader) -> Offer:
    base = read.child("base")
    return Offer(
        job=read.text("job"),
        lineage=read.hexadecimal("lineage", HEX_128_BIT),
        host=read.text("host") or read.fail("host", "a name", ""),
        life=read.hexadecimal("life", HEX_128_BIT),
        sequence=read.integer("sequence"),
        base_version=base.integer("version", 1),
        base_digest=base.binary("digest", DIGEST_BYTES),
        spans=tuple(_decode_span(read, item) for item in read.items("spans")),
        size=read.integer("size", 0, _PAYLOAD_LIMIT),
        early=read.flag("early"),
        send_ms=read.integer("send_ms"),
    )


def _decode_span(read: Reader, item: object) -> Span:
    match item:
        case [int(partition), int(offset), int(row), int(to_offset), int(to_row)] if all(
            type(number) is int and number >= 0 for number in item
        ):
            return Span(partition, Position(offset, row), Position(to_offset, to_row))
    read.fail("spans", "[partition, from offset, from row, to offset, to row]", item)


def _decode_head(read: Reader, offer: Offer) -> Head:
    counts, sizes = read.child("counts"), read.child("sizes")
    weight, digests = read.value("weight"), read.binary("chunks")
    if type(weight) is not float or not math.isfinite(weight) or weight < 0:
        read.fail("weight", "a number from 0 on", weight)
    if len(digests) % DIGEST_BYTES:
        read.fail("chunks", f"digests of {DIGEST_BYTES} bytes", f"{len(digests)} bytes")
    found = Sizes(*(sizes.integer(name, 0, _PAYLOAD_LIMIT) for name in Sizes._fields))
    if sum(found) != offer.size:
        read.fail("sizes", f"parts of {offer.size} bytes together", sum(found))
    return Head(
        **vars(offer),
        round=read.integer("round"),
        layout=read.binary("layout", DIGEST_BYTES),
        terms=decode_terms(read.child("terms")),
        worker_deaths=read.integer("worker_deaths"),
        counts=Counts(*(counts.integer(name) for name in Counts._fields)),
        weight=weight,
        sizes=found,
        letter_entries=read.integer("letter_entries"),
        chunks=tuple(digests[at : at + DIGEST_BYTES] for at in range(0, len(digests), DIGEST_BYTES)),
        idle_ms=read.integer("idle_ms"),
    )


def document(message: Message) -> Document:
    """Returns what `read` shows of a message: {"hello": …}, {"offer": …}, {"head": …} or {"chunk": …}. CheckFailed as
    decode()."""
    entry = decode(message.key, None if message.value is None else bytes(message.value))
    if isinstance(entry, Chunk):
        return {"chunk": {**asdict(entry), "data": len(entry.data)}}
    kind = {Hello: "hello", Offer: "offer", Head: "head"}[type(entry)]
    return {kind: _plain(asdict(entry))}


def _plain(value: Any) -> Any:
    """Returns a value as JSON can hold it, digests in hex."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value.hex() if isinstance(value, bytes) else value


def line(document: Document) -> str:
    match document:
        case {"hello": hello}:
            said = f"{hello['host']} has joined"
        case {"offer": offer}:
            said = f"{offer['host']} offers {offer['size']:,} bytes from snapshot {offer['base_version']}"
        case {"head": head}:
            rows, partitions = head["counts"]["trained"], len(head["spans"])
            said = f"{head['host']}: {rows:,} rows of {partitions} partitions from snapshot {head['base_version']}"
        case _:
            said = f"{key_of(document).strip()}: {document['chunk']['data']:,} bytes"
    return f"  {said}"
