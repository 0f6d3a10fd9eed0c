"""The manifest: what a snapshot is. The last message of a snapshot; its SHA-256 is the snapshot's digest."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, field
from typing import Any, NamedTuple

from streamtrain.errors import SnapshotError
from streamtrain.topics.topic import MESSAGE_BYTES, sha256
from streamtrain.topics.wire import DIGEST_BYTES, HEX_128_BIT, Reader, pack, plain

WIRE_VERSION = 6
CHUNK_BYTES = MESSAGE_BYTES
_PAYLOAD_LIMIT = 1 << 40  # bytes; a manifest that claims more is damaged
_CHUNK_LIMIT = _PAYLOAD_LIMIT // CHUNK_BYTES
_SHELF = re.compile(r"[abs]/[0-9]{4,9}")
WHAT = "snapshot manifest"


class Position(NamedTuple):
    """The next record of a partition is `offset`; `row` rows of it are used already."""

    offset: int
    row: int = 0


@dataclass(frozen=True)
class Positions:
    """The positions that a snapshot has seen of the records topic, one per partition."""

    topic_id: str
    partitions: tuple[Position, ...]


@dataclass(frozen=True)
class Run:
    number: int
    id: str  # 128 bits, hex


@dataclass(frozen=True)
class Parent:
    """The snapshot this one was trained from; `offset` of its manifest in the topic."""

    version: int
    digest: bytes
    offset: int


@dataclass(frozen=True)
class Restored:
    """`--restore`: whose parameters these are is the parent; whose positions, the manifest named here."""

    version: int
    digest: bytes


@dataclass(frozen=True)
class Imported:
    """A snapshot of another job or cluster, whose parameters a lineage began with; no topic here may hold it."""

    job: str
    version: int
    digest: bytes
    lineage: str  # 128 bits, hex
    cluster: str  # Kafka's cluster id
    positions: str  # where training went on here: one of POSITIONS


POSITIONS = ("keep", "beginning", "end")  # the snapshot's own, or what the records topic holds here


@dataclass(frozen=True)
class Kept:
    """Another snapshot that the topic holds when this one is written, under `shelf`: "s/0003", archived "a/0000", one
    that was the best "b/0003"."""

    shelf: str
    version: int
    offset: int
    digest: bytes
    model_chunks: int
    trainer_chunks: int
    created_ms: int

    @property
    def archived(self) -> bool:
        return self.shelf.startswith("a/")

    @property
    def best(self) -> bool:
        return self.shelf.startswith("b/")


@dataclass(frozen=True)
class Contribution:
    """A host's part of a snapshot: contribution `sequence` of that `life`, counted from 0."""

    host: str
    life: str  # 128 bits, hex
    sequence: int
    head: bytes  # SHA-256 of the message that describes it
    rows: int  # trained
    weight: float  # in the mean


class Counts(NamedTuple):
    """Rows since the lineage's first snapshot, where all are 0; tombstones are records without a value."""

    trained: int = 0
    dead: int = 0
    filtered: int = 0
    tombstones: int = 0


@dataclass(frozen=True)
class Slot:
    row_capacity: int
    range_capacity: int


@dataclass(frozen=True)
class Payload:
    """One safetensors file: its bytes, SHA-256 and the SHA-256 of each chunk of at most CHUNK_BYTES."""

    size: int = 0
    digest: bytes = sha256(b"")
    chunks: tuple[bytes, ...] = ()

    @classmethod
    def of(cls, data: bytes | memoryview) -> Payload:
        return cls(len(data), sha256(data), tuple(sha256(chunk) for chunk in split(data)))


@dataclass(frozen=True)
class Manifest:
    """The description of a snapshot. The mappings are plain data: None, bool, int, float, str, list, dict with text
    keys."""

    job: str
    version: int
    lineage: str  # 128 bits, hex
    parent: Parent | None
    run: Run
    round: int  # the last one averaged into it; -1 before the first
    positions: Positions
    job_settings: Mapping[str, Any]  # the effective job but [kafka]
    config_digest: str  # SHA-256, hex
    seed: int  # of all random numbers
    workers: int
    slot: Slot
    build: str  # of the trainer: streamtrain/build.py
    model_spec: Mapping[str, Any]  # what compute.model.Model takes
    schema: Mapping[str, Any]  # what streamtrain.columns takes
    metrics: Mapping[str, Any]  # window, total and constant prediction
    untrained: bool  # no row is trained into its parameters
    rows_seen: int  # trained into the parameters; after --restore the restored snapshot's
    created_ms: int
    chain: bytes  # SHA-256 over all round logs of the lineage: topics/rounds.py says how
    counts: Counts
    gaps: tuple[Mapping[str, Any], ...] = ()  # records removed before they were trained, as --accept-gap allowed
    archived: bool = False
    best: int | None = None  # the version of the best one by early stopping, its own or one before; None: none yet
    restored: Restored | None = None
    imported: tuple[Imported, ...] = ()  # of the whole lineage: each came from the one before it, the last came here
    kept: tuple[Kept, ...] = ()  # the other snapshots in the topic
    model: Payload = field(default_factory=Payload)  # parameters and statistics
    trainer: Payload = field(default_factory=Payload)  # optimizer state and scores
    shelf: str = ""  # first part of its keys, such as "s/0003"
    contributions: tuple[Contribution, ...] = ()  # in the order of its round logs; none where one host trains the job
    inbox: int | None = None  # lowest offset of the contributions topic that is still needed; None for one host
    interval_ms: int | None = None  # to the next snapshot; None for one host

    @property
    def chunk_count(self) -> int:
        return len(self.model.chunks) + len(self.trainer.chunks)

    @property
    def parameters_digest(self) -> str:
        """Returns the SHA-256 of parameters and statistics, in hex: equal for equal models of any lineage."""
        return self.model.digest.hex()

    @property
    def is_import(self) -> bool:
        """It is the one that came from elsewhere: no snapshot here is before it."""
        return self.parent is None and self.imported != ()

    @property
    def is_folded(self) -> bool:
        """Many hosts train the job: a snapshot after the first of a lineage is the fold of what they contributed."""
        return self.inbox is not None

    @property
    def is_continuation(self) -> bool:
        """It begins a lineage with all that the newest snapshot before it had learned: classes were added."""
        return self.restored is not None and self.parent is not None and self.parent.version == self.restored.version


def split(data: bytes | memoryview) -> list[memoryview]:
    """Slices of at most CHUNK_BYTES, without a copy."""
    view = memoryview(data).cast("B")
    return [view[at : at + CHUNK_BYTES] for at in range(0, len(view), CHUNK_BYTES)]


def encode(manifest: Manifest) -> bytes:
    """The manifest's bytes: equal manifests give equal bytes. Its SHA-256 is the snapshot's digest."""
    parent, restored = manifest.parent, manifest.restored
    document: dict[str, object] = {
        "wire": WIRE_VERSION,
        "job": manifest.job,
        "version": manifest.version,
        "lineage": manifest.lineage,
        "parent": parent and {"version": parent.version, "digest": parent.digest, "offset": parent.offset},
        "run": {"number": manifest.run.number, "id": manifest.run.id},
        "round": manifest.round,
        "positions": {
            "topic_id": manifest.positions.topic_id,
            "partitions": [[position.offset, position.row] for position in manifest.positions.partitions],
        },
        "job_settings": plain(manifest.job_settings),
        "config_digest": manifest.config_digest,
        "seed": manifest.seed,
        "workers": manifest.workers,
        "slot": [manifest.slot.row_capacity, manifest.slot.range_capacity],
        "build": manifest.build,
        "model_spec": plain(manifest.model_spec),
        "schema": plain(manifest.schema),
        "metrics": plain(manifest.metrics),
        "untrained": manifest.untrained,
        "rows_seen": manifest.rows_seen,
        "created_ms": manifest.created_ms,
        "chain": manifest.chain,
        "counts": manifest.counts._asdict(),
        "gaps": [plain(gap) for gap in manifest.gaps],
        "archived": manifest.archived,
        "best": manifest.best,
        "restored": restored and {"version": restored.version, "digest": restored.digest},
        "imported": [asdict(each) for each in manifest.imported],
        "kept": [list(astuple(entry)) for entry in manifest.kept],
        "model": _encode_payload(manifest.model),
        "trainer": _encode_payload(manifest.trainer),
        "shelf": manifest.shelf,
        "contributions": [asdict(each) for each in manifest.contributions],
        "inbox": manifest.inbox,
        "interval_ms": manifest.interval_ms,
    }
    return pack(document)


def _encode_payload(payload: Payload) -> dict[str, object]:
    return {"size": payload.size, "digest": payload.digest, "chunks": b"".join(payload.chunks)}


def decode(value: bytes) -> Manifest:
    """The manifest in `value`; SnapshotError says what is wrong with bytes that are not one."""
    read = Reader.unpack(value, WHAT, WIRE_VERSION, SnapshotError)
    positions, run, counts = read.child("positions"), read.child("run"), read.child("counts")
    parent = None if read.value("parent") is None else read.child("parent")
    restored = None if read.value("restored") is None else read.child("restored")
    version = read.integer("version", 1)
    shelf = read.text("shelf")
    if not _SHELF.fullmatch(shelf):
        read.fail("shelf", "s/, a/ or b/ and a number", shelf)
    kept = tuple(_decode_kept(read, item, version) for item in read.items("kept"))
    row_capacity, range_capacity = read.pair(read.value("slot"), "slot")
    inbox, interval_ms = (None if read.value(name) is None else read.integer(name) for name in ("inbox", "interval_ms"))
    contributions = tuple(_decode_contribution(child) for child in read.children("contributions"))
    if (inbox is None) != (interval_ms is None) or (inbox is None and contributions):
        read.fail("inbox", "with interval_ms, and where there are contributions", (inbox, interval_ms))
    return Manifest(
        job=read.text("job"),
        version=version,
        lineage=read.hexadecimal("lineage", HEX_128_BIT),
        parent=None if parent is None else Parent(*_decode_named(parent, version), parent.integer("offset")),
        run=Run(run.integer("number", 1), run.hexadecimal("id", HEX_128_BIT)),
        round=read.integer("round", -1),
        positions=Positions(
            positions.text("topic_id"),
            tuple(Position(*positions.pair(item, "partitions")) for item in positions.items("partitions")),
        ),
        job_settings=read.mapping("job_settings"),
        config_digest=read.hexadecimal("config_digest", 2 * DIGEST_BYTES),
        seed=read.integer("seed", 0, 2**64 - 1),
        workers=read.integer("workers", 1, 2**31 - 1),
        slot=Slot(row_capacity, range_capacity),
        build=read.text("build"),
        model_spec=read.mapping("model_spec"),
        schema=read.mapping("schema"),
        metrics=read.mapping("metrics"),
        untrained=read.flag("untrained"),
        rows_seen=read.integer("rows_seen"),
        created_ms=read.integer("created_ms"),
        chain=read.binary("chain", DIGEST_BYTES),
        counts=Counts(*(counts.integer(name) for name in Counts._fields)),
        gaps=tuple(read.mappings("gaps")),
        archived=read.flag("archived"),
        best=None if read.value("best") is None else read.integer("best"),
        restored=None if restored is None else Restored(*_decode_named(restored, version)),
        imported=tuple(_decode_imported(child, version) for child in read.children("imported")),
        kept=kept,
        model=_decode_payload(read.child("model")),
        trainer=_decode_payload(read.child("trainer")),
        shelf=shelf,
        contributions=contributions,
        inbox=inbox,
        interval_ms=interval_ms,
    )


def _decode_named(read: Reader, version: int) -> tuple[int, bytes]:
    return read.integer("version", 1, version - 1), read.binary("digest", DIGEST_BYTES)


def _decode_imported(read: Reader, version: int) -> Imported:
    positions = read.text("positions")
    if positions not in POSITIONS:
        read.fail("positions", " or ".join(POSITIONS), positions)
    number, digest = _decode_named(read, version)
    lineage = read.hexadecimal("lineage", HEX_128_BIT)
    return Imported(read.text("job"), number, digest, lineage, read.text("cluster"), positions)


def _decode_kept(read: Reader, item: object, version: int) -> Kept:
    match item:
        case [str(shelf), int(number), int(offset), bytes(digest), int(model), int(trainer), int(created_ms)]:
            chunks_fit = 0 <= model <= _CHUNK_LIMIT and 0 <= trainer <= _CHUNK_LIMIT
            numbers_fit = 0 < number < version and offset >= 0 and chunks_fit and created_ms >= 0
            if _SHELF.fullmatch(shelf) and numbers_fit and len(digest) == DIGEST_BYTES:
                return Kept(shelf, number, offset, digest, model, trainer, created_ms)
    expected = f"[shelf, version below {version}, offset, digest, model chunks, trainer chunks, created_ms]"
    read.fail("kept", expected, item)


def _decode_contribution(read: Reader) -> Contribution:
    weight = read.value("weight")
    if type(weight) is not float or not 0 <= weight < math.inf:
        read.fail("weight", "a finite number from 0.0 on", weight)
    return Contribution(
        host=read.text("host") or read.fail("host", "a name", ""),
        life=read.hexadecimal("life", HEX_128_BIT),
        sequence=read.integer("sequence"),
        head=read.binary("head", DIGEST_BYTES),
        rows=read.integer("rows"),
        weight=weight,
    )


def _decode_payload(read: Reader) -> Payload:
    size, digests = read.integer("size", 0, _PAYLOAD_LIMIT), read.binary("chunks")
    expected = -(-size // CHUNK_BYTES) * DIGEST_BYTES
    if len(digests) != expected:
        read.fail("chunks", f"{expected} bytes of digests for {size} bytes", f"{len(digests)} bytes")
    chunks = tuple(digests[at : at + DIGEST_BYTES] for at in range(0, len(digests), DIGEST_BYTES))
    return Payload(size, read.binary("digest", DIGEST_BYTES), chunks)
