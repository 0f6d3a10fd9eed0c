"""The snapshots topic: chunks of a payload, then the manifest that says what they are. Compacted, one partition.

A reader needs nothing but this topic.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from streamtrain.errors import SnapshotError
from streamtrain.topics.documents import Document, key_of
from streamtrain.topics.manifest import WHAT, WIRE_VERSION, Manifest, Payload, decode, encode, split
from streamtrain.topics.shelves import all_keys, chunk_keys, is_manifest, manifest_key, shelved
from streamtrain.topics.topic import MESSAGE_BYTES, Message, Topic, sha256
from streamtrain.topics.wire import plain

HELP = "published parameters with their manifests"
TOPIC = Topic(
    key="snapshots",
    config={
        "cleanup.policy": "compact",
        "min.compaction.lag.ms": "60000",  # a reader has a minute to fetch the chunks of a manifest it has seen
        "min.cleanable.dirty.ratio": "0.1",
        "segment.bytes": str(16 * 1024 * 1024),  # only closed segments are compacted
        "segment.ms": "600000",
        "max.message.bytes": "1048588",
    },
    fixed_partitions=True,
    loses="the model; 'streamtrain snapshots export' it first, then delete control too and 'snapshots import' it",
    renameable=False,
    wire_version=WIRE_VERSION,
    written="alone",
)


@dataclass(frozen=True)
class Publication:
    """The messages that one snapshot puts into the topic, in this order, in one transaction."""

    manifest: Manifest
    digest: bytes
    messages: tuple[Message, ...]

    @property
    def size(self) -> int:
        return sum(len(message.value) for message in self.messages if message.value is not None)


def publish(
    manifest: Manifest,
    model: bytes | memoryview,
    trainer: bytes | memoryview,
    keep: int,
    archive_keep: int | None = None,
) -> Publication:
    """The messages of a snapshot: tombstones of what it displaces, chunks (slices of the payloads, no copy), manifest.

    `manifest.kept` lists what the topic holds before (see `kept_after`); with `manifest.archived` it goes under a key
    of the archive, with `best` under that of the best, else under `version mod keep`. `archive_keep` None leaves
    archived snapshots as they are. The payloads must stay as they are until the messages are delivered. SnapshotError
    if the manifest outgrows a message.
    """
    full, value = placed(manifest, Payload.of(model), Payload.of(trainer), keep, archive_keep)
    chunk_names = chunk_keys(full.shelf, len(full.model.chunks), len(full.trainer.chunks))
    written = {*chunk_names, manifest_key(full.shelf)}
    keys = [key for entry in manifest.kept if entry not in full.kept for key in all_keys(entry)]
    gone = [key for key in keys if key not in written]
    messages = [Message(key, None) for key in gone]
    chunks = [*split(model), *split(trainer)]
    messages += [Message(key, chunk) for key, chunk in zip(chunk_names, chunks, strict=True)]
    messages.append(Message(manifest_key(full.shelf), value))
    return Publication(full, sha256(value), tuple(messages))


def placed(
    manifest: Manifest, model: Payload, trainer: Payload, keep: int, archive_keep: int | None = None
) -> tuple[Manifest, bytes]:
    """`manifest` on its shelf with what it is of, and its bytes; SnapshotError if they outgrow a message."""
    shelf, stays = shelved(manifest, keep, archive_keep)
    full = replace(manifest, shelf=shelf, kept=stays, model=model, trainer=trainer)
    value = encode(full)
    if len(value) > MESSAGE_BYTES:
        raise SnapshotError(
            f"{WHAT} of {manifest.job} version {manifest.version}: expected at most {MESSAGE_BYTES} bytes, "
            f"got {len(value)}; lower publish.keep or publish.archive.keep, or name fewer columns: one of kind = "
            '"vector" holds many numbers'
        )
    return full, value


def document(message: Message) -> Document:
    """Returns what `read` shows of a message: {"manifest": …}, {"chunk_bytes": …} or a tombstone. SnapshotError as
    decode()."""
    if message.value is None:
        return {"tombstone": True}
    value = bytes(message.value)
    if not is_manifest(message.key):
        return {"chunk_bytes": len(value)}
    manifest = decode(value)
    fields = plain({**_without_bytes(asdict(manifest)), "digest": sha256(value).hex()})
    return {"manifest": fields}


def _without_bytes(document: Any) -> Any:
    """Digests as hex, but for those of chunks, which are counted."""
    if isinstance(document, dict):
        return {name: len(part) if name == "chunks" else _without_bytes(part) for name, part in document.items()}
    if isinstance(document, list | tuple):
        return [_without_bytes(part) for part in document]
    return document.hex() if isinstance(document, bytes) else document


def line(document: Document) -> str:
    match document:
        case {"manifest": found}:
            chunks = found["model"]["chunks"] + found["trainer"]["chunks"]
            size = found["model"]["size"] + found["trainer"]["size"]
            about = f"{found['rows_seen']:,} rows seen, {size:,} bytes in {chunks} chunks"
            return f"{key_of(document)}  snapshot {found['version']}: round {found['round']}, {about}"
        case {"chunk_bytes": size}:
            return f"{key_of(document)}  a chunk of {size:,} bytes"
    return f"{key_of(document)}  gave way"
