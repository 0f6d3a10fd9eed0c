"""The rounds topic: what every round trained, in row order, and under which terms. A publication has one log, or one of
each host that contributed; each is cut into parts.

A part is one message with all but the other parts' columns. The columns are raw little-endian structs, Range of
native/ring/slot.h and those of native/train/round_log.h."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from streamtrain import _native
from streamtrain.errors import CheckFailed
from streamtrain.topics.documents import Document
from streamtrain.topics.manifest import Counts, Run
from streamtrain.topics.named_schemas import Answer
from streamtrain.topics.named_schemas import decode as decode_schemas
from streamtrain.topics.terms import Terms
from streamtrain.topics.terms import decode as decode_terms
from streamtrain.topics.terms import encode as encode_terms
from streamtrain.topics.topic import MESSAGE_BYTES, Message, Topic, sha256
from streamtrain.topics.wire import DIGEST_BYTES, HEX_128_BIT, Reader, pack, plain

HELP = "the round log: what was trained, in row order"
WIRE_VERSION = 6
TOPIC = Topic(
    key="rounds",
    config={"cleanup.policy": "delete", "max.message.bytes": "1048588"},
    fixed_partitions=True,
    loses="what verify and replay read",
    wire_version=WIRE_VERSION,
    written="alone",
)

RANGE_DTYPE = np.dtype(_native.RANGE)
SLOT_DTYPE = np.dtype(_native.SLOT_RECORD)
ROUND_DTYPE = np.dtype(_native.ROUND_RECORD)
BYTE_DTYPE = np.dtype("u1")
_STRUCTS = {"rounds": ROUND_DTYPE, "slots": SLOT_DTYPE, "ranges": RANGE_DTYPE}
_COLUMNS = {**_STRUCTS, "schemas": BYTE_DTYPE}
_COLUMN_BYTES = 100  # room for the names and lengths of a part's columns, its number and the snapshot's digest
_WHAT = "round log"
Structs = npt.NDArray[Any]


@dataclass(frozen=True)
class RoundLog:
    """The rounds between two published snapshots, as structured arrays in round, slot and row order.

    `version` and `digest` name the snapshot whose transaction carries the log; the one it starts from is that one's
    parent. A part of a log has the same form, with a slice of each column; `part` of `parts` counts from 0.

    The contribution of a `host`, number `contribution` of `contributions` to the snapshot, is one round, whose slots
    count from 0. `closed_window` of that round is the same in all of them: the window closes after their fold.
    """

    job: str
    lineage: str
    run: Run
    version: int
    digest: bytes
    terms: tuple[Terms, ...]  # the first in force at the first round, others where they change within the log
    metrics: Mapping[str, Any]  # the manifest's
    created_ms: int  # the manifest's
    worker_deaths: int  # of the run so far
    rounds: Structs
    slots: Structs
    ranges: Structs
    schemas: Structs = field(default_factory=lambda: np.empty(0, BYTE_DTYPE))  # as named_schemas encodes them
    part: int = 0
    parts: int = 1
    host: str = ""  # that contributed; "": one host trained all of the snapshot
    contribution: int = 0
    contributions: int = 1

    @property
    def weight(self) -> float:
        """The weight of the log's rounds in a mean, with the bits that the workers' sums have."""
        return weight_of(self.slots, self.terms[-1].workers)

    @property
    def smallest_partition(self) -> int:
        return int(self.ranges["partition"].min(initial=2**31 - 1))

    @property
    def rows_trained(self) -> int:
        return int(self.slots["trained"].sum(dtype=np.int64))

    @property
    def newest_event_ms(self) -> int:
        """The newest event time among the log's rows (of jobs without one: record timestamp); -1 if there is none."""
        return int(self.rounds["newest_event_ms"].max(initial=-1))

    @cached_property
    def named_schemas(self) -> dict[str, Answer]:
        """Returns the schemas that a whole log's records name, by name. CheckFailed where they are broken."""
        return decode_schemas(self.schemas.tobytes())

    def terms_at(self, round_: int) -> Terms:
        """The terms in force in a round of the log."""
        return [terms for terms in self.terms if terms.first_round <= round_][-1]


def weight_of(slots: Structs, workers: int) -> float:
    """Returns the weight of a round's slots in a mean, with the bits that the sums of so many workers have."""
    of_workers = [slots["weight_sum"][worker::workers].cumsum() for worker in range(min(workers, len(slots)))]
    return float(np.cumsum([sums[-1] for sums in of_workers] or [0.0])[-1])


def first_chain(lineage: str) -> bytes:
    """The chain in the manifest of a lineage's first snapshot, which no log leads to."""
    return sha256(lineage.encode("ascii"))


def chain_after(chain: bytes, log: RoundLog) -> bytes:
    """The chain in the manifest that `log` leads to from a snapshot whose manifest has `chain`."""
    return sha256(chain + log_digest(log))


def counts_after(counts: Counts, log: RoundLog) -> Counts:
    """A manifest's counts, from its parent's and the log between them."""
    return Counts(*(before + found for before, found in zip(counts, counts_of(log.slots), strict=True)))


def counts_of(slots: Structs) -> Counts:
    """Returns the sums of some slots."""
    return Counts(*(int(slots[name].sum(dtype=np.int64)) for name in Counts._fields))


def log_digest(log: RoundLog) -> bytes:
    """SHA-256 of the whole log but the digest of its snapshot, however it is cut into parts."""
    hashed = hashlib.sha256(pack(_header(log)))
    for name in _COLUMNS:
        column = getattr(log, name).tobytes()
        hashed.update(len(column).to_bytes(8, "little"))
        hashed.update(column)
    return hashed.digest()


def messages(log: RoundLog) -> tuple[Message, ...]:
    """The log as messages of at most MESSAGE_BYTES, in order; empty when there was no round."""
    check(log)
    if not len(log.rounds):
        return ()
    header = _header(log)
    parts = _cut(log, MESSAGE_BYTES - len(pack(header)) - _COLUMN_BYTES - len(log.digest))
    return tuple(
        Message(message_key(log, index), _encode(log, header, columns, index, len(parts)))
        for index, columns in enumerate(parts)
    )


def message_key(log: RoundLog, part: int) -> bytes:
    """The key of a part."""
    return f"{log.version}/{log.contribution}/{part}".encode()


def _cut(log: RoundLog, room_bytes: int) -> list[dict[str, Structs]]:
    """Slices of the columns, whole structs, filled in the order rounds, slots, ranges."""
    parts: list[dict[str, Structs]] = [{}]
    left = room_bytes
    for name, dtype in _COLUMNS.items():
        column = getattr(log, name)
        at = 0
        while at < len(column):
            count = min(left // dtype.itemsize, len(column) - at)
            if count == 0:
                parts.append({})
                left = room_bytes
                continue
            parts[-1][name] = column[at : at + count]
            at += count
            left -= count * dtype.itemsize
    return parts


def _header(log: RoundLog) -> dict[str, object]:
    """Returns the header of every part, without the snapshot's digest: the log's own digest goes into that."""
    return {
        "wire": WIRE_VERSION,
        "job": log.job,
        "lineage": log.lineage,
        "run": {"number": log.run.number, "id": log.run.id},
        "version": log.version,
        "terms": [encode_terms(terms) for terms in log.terms],
        "metrics": plain(log.metrics),
        "created_ms": log.created_ms,
        "worker_deaths": log.worker_deaths,
        "host": log.host,
        "contribution": log.contribution,
        "contributions": log.contributions,
    }


def _encode(log: RoundLog, header: dict[str, object], columns: dict[str, Structs], part: int, parts: int) -> bytes:
    raw = {name: columns[name].tobytes() if name in columns else b"" for name in _COLUMNS}
    value = pack({**header, "digest": log.digest, "part": part, "parts": parts, **raw})
    assert len(value) <= MESSAGE_BYTES
    return value


def encode(part: RoundLog) -> bytes:
    """The bytes of one part."""
    return _encode(part, _header(part), {name: getattr(part, name) for name in _COLUMNS}, part.part, part.parts)


def decode(value: bytes) -> RoundLog:
    """One part; its columns are read-only views of `value`'s copy. CheckFailed says what is wrong with other bytes."""
    read = Reader.unpack(value, _WHAT, WIRE_VERSION, CheckFailed)
    run = read.child("run")
    columns = {}
    for name, dtype in _COLUMNS.items():
        raw = read.binary(name)
        if len(raw) % dtype.itemsize:
            read.fail(name, f"a multiple of {dtype.itemsize} bytes", f"{len(raw)} bytes")
        columns[name] = np.frombuffer(raw, dtype)
    parts, contributions = read.integer("parts", 1, 2**31 - 1), read.integer("contributions", 1, 2**31 - 1)
    return RoundLog(
        job=read.text("job"),
        lineage=read.hexadecimal("lineage", HEX_128_BIT),
        run=Run(run.integer("number", 1), run.hexadecimal("id", HEX_128_BIT)),
        version=read.integer("version", 1),
        digest=read.binary("digest", DIGEST_BYTES),
        terms=tuple(decode_terms(entry) for entry in read.children("terms")),
        metrics=read.mapping("metrics"),
        created_ms=read.integer("created_ms"),
        worker_deaths=read.integer("worker_deaths"),
        part=read.integer("part", 0, parts - 1),
        parts=parts,
        host=read.text("host"),
        contribution=read.integer("contribution", 0, contributions - 1),
        contributions=contributions,
        rounds=columns["rounds"],
        slots=columns["slots"],
        ranges=columns["ranges"],
        schemas=columns["schemas"],
    )


def join(parts: Sequence[RoundLog]) -> RoundLog:
    """The whole log from all its parts in order; CheckFailed where one is missing or they do not fit together."""
    first = parts[0] if parts else None
    if first is None or [part.part for part in parts] != list(range(first.parts)):
        raise CheckFailed(f"{_WHAT}: expected every part in order, got {[(part.part, part.parts) for part in parts]}")
    identity = (_header(first), first.digest, first.parts)
    for part in parts[1:]:
        if (_header(part), part.digest, part.parts) != identity:
            raise CheckFailed(f"{_WHAT}: part {part.part} belongs to another log than part 0, of {first.version}")
    rounds, slots, ranges, schemas = (np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS)
    whole = replace(first, part=0, parts=1, rounds=rounds, slots=slots, ranges=ranges, schemas=schemas)
    check(whole)
    return whole


def check(log: RoundLog) -> None:
    """The columns agree with each other: rounds follow one another, their slots and ranges are all there."""
    where = f"{_WHAT} of {log.job} version {log.version}"
    for name, dtype in _COLUMNS.items():
        if getattr(log, name).dtype != dtype:
            raise CheckFailed(f"{where}: expected {name} as {dtype}, got {getattr(log, name).dtype}")
    assert log.named_schemas is not None
    numbers, counts = log.rounds["round"], log.rounds["slots"].astype(np.int64)
    if len(numbers) and not np.array_equal(numbers, np.arange(len(numbers)) + numbers[0]):
        raise CheckFailed(f"{where}: expected rounds in a row, got {numbers[:20].tolist()}")
    slots, ranges = int(counts.sum()), int(log.slots["range_count"].sum(dtype=np.int64))
    if slots != len(log.slots) or ranges != len(log.ranges):
        raise CheckFailed(
            f"{where}: expected {slots} slots and {ranges} ranges, got {len(log.slots)} and {len(log.ranges)}"
        )
    if len(numbers):
        firsts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        expected = np.arange(len(log.slots)) + np.repeat(log.rounds["first_slot"] - firsts, counts)
        if not np.array_equal(log.slots["slot"], expected):
            raise CheckFailed(f"{where}: expected slot numbers to count on from each round's first_slot")
        _check_terms(log, where)
    first = log.rounds[:1]
    if log.contributions > 1 and not log.host:
        raise CheckFailed(f"{where}: expected the host of a contribution, got none")
    if log.host and (len(log.rounds) != 1 or first["first_slot"][0] != 0 or len(log.terms) != 1):
        got = f"{len(log.rounds)} rounds, the first from {first['first_slot'].tolist()}, {len(log.terms)} terms"
        raise CheckFailed(f"{where}: expected a contribution of one round from slot 0 and its terms, got {got}")


def _check_terms(log: RoundLog, where: str) -> None:
    """They begin with the log, rise within it, and its rounds keep to them."""
    firsts = np.array([terms.first_round for terms in log.terms], np.int64)
    numbers, counts = log.rounds["round"], log.rounds["slots"].astype(np.int64)
    if not len(firsts) or firsts[0] != numbers[0] or (firsts[1:] <= firsts[:-1]).any() or firsts[-1] > numbers[-1]:
        raise CheckFailed(
            f"{where}: expected terms from round {numbers[0]}, rising to {numbers[-1]} at most, got {firsts.tolist()}"
        )
    at = np.searchsorted(firsts, numbers, side="right") - 1
    workers = np.array([terms.workers for terms in log.terms])[at]
    room = np.array([terms.round_slots for terms in log.terms])[at]
    rows = np.repeat(np.array([terms.slot.row_capacity for terms in log.terms])[at], counts)
    if (log.rounds["workers"] != workers).any() or (counts > room).any() or (log.slots["rows"] > rows).any():
        raise CheckFailed(f"{where}: a round has other workers, more slots or larger batches than its terms say")


def document(message: Message) -> Document:
    """Returns what `read` shows of a message: one part of a log. CheckFailed as decode()."""
    log = decode(bytes(message.value or b""))
    return {
        "version": log.version,
        "digest": log.digest.hex(),
        "lineage": log.lineage,
        "run": log.run.number,
        "part": log.part,
        "parts": log.parts,
        "host": log.host,
        "contribution": log.contribution,
        "contributions": log.contributions,
        "created_ms": log.created_ms,
        "newest_event_ms": log.newest_event_ms,
        "worker_deaths": log.worker_deaths,
        "metrics": dict(log.metrics),
        "terms": [_describe_terms(terms) for terms in log.terms],
        "rows_trained": log.rows_trained,
        **{name: _describe_structs(getattr(log, name)) for name in _STRUCTS},
        "schemas": _describe_schemas(log),
    }


def _describe_terms(terms: Terms) -> Document:
    return {**asdict(terms), "columns_digest": terms.columns_digest.hex(), "model_digest": terms.model_digest.hex()}


def _describe_schemas(log: RoundLog) -> Document:
    """Returns the schemas of a log in one part, by name."""
    if log.parts > 1:
        return {}
    return {name: text or refusal for name, (text, refusal) in log.named_schemas.items()}


def _describe_structs(structs: Structs) -> list[Document]:
    names = [name for name in structs.dtype.names or () if name != "reserved"]
    return [{name: struct[name].item() for name in names} for struct in structs]


def line(document: Document) -> str:
    of_host = f" of {document['host']}" if document["host"] else ""
    return (
        f"  snapshot {document['version']}{of_host}: {len(document['rounds'])} rounds, "
        f"{len(document['slots'])} batches, {document['rows_trained']:,} rows trained"
    )
