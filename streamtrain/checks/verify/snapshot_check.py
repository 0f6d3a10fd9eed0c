"""Guarantees 3 to 5 on the snapshots topic: every snapshot whole, versions rising, every number finite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from streamtrain.checks.verify.verify_report import Check
from streamtrain.columns.served import schema_and_model
from streamtrain.compute.model import Model
from streamtrain.compute.snapshot import MODEL_GROUPS, TRAINER_GROUPS, differences
from streamtrain.compute.snapshot import decode as decode_tensors
from streamtrain.errors import SnapshotError
from streamtrain.kafka.clients import Message
from streamtrain.record_sources.source_kind import Topic
from streamtrain.topics.chunks import Chunks, Located, Stored
from streamtrain.topics.manifest import Manifest
from streamtrain.topics.manifest import decode as decode_manifest
from streamtrain.topics.manifest import encode as encode_manifest
from streamtrain.topics.shelves import chunk_keys, is_manifest, manifest_key
from streamtrain.topics.topic import sha256


@dataclass(frozen=True)
class Snapshots:
    """`manifests` by offset. `current`: versions whose key holds nothing newer, so that their chunks are there.
    `read`: gives the whole snapshot of one of these."""

    manifests: tuple[Located, ...]
    current: frozenset[int]
    read: Callable[[Located], Stored]

    @property
    def newest(self) -> Located:
        return self.manifests[-1]


@dataclass(frozen=True)
class _Fault:
    """Something wrong with the message at `offset`; with a `key` only as long as no later message has taken it."""

    offset: int
    text: str
    key: bytes | None = None


@dataclass
class _Pass:
    """The data that one pass over the topic gathers. It keeps the chunks of only one snapshot in memory at a time."""

    job: str
    topic: str
    found: list[Located] = field(default_factory=list)
    faults: list[_Fault] = field(default_factory=list)
    taken: dict[bytes, int] = field(default_factory=dict)  # offset of the newest message of each key that has a value
    waiting: list[Message] = field(default_factory=list)  # chunks whose manifest is still to come
    model: tuple[object, Model] | None = None  # of the newest manifest, behind what it is made of

    def take(self, message: Message) -> None:
        key, value = message.key, message.value
        if key is None:
            self.faults.append(_Fault(message.offset, f"{self.topic}@{message.offset}: a message without a key"))
        elif value is None:
            self.taken.pop(key, None)
        else:
            self.taken[key] = message.offset
            if is_manifest(key):
                self._take_manifest(message.offset, key, value)
                self.waiting = []
            else:
                self.waiting.append(message)

    def _take_manifest(self, offset: int, key: bytes, value: bytes) -> None:
        where = f"{self.topic}@{offset}"
        try:
            manifest = decode_manifest(value)
        except SnapshotError as error:
            self.faults.append(_Fault(offset, f"{where}: {error}"))
            return
        located = Located(manifest, sha256(value), offset)
        self.found.append(located)
        if manifest.job != self.job or manifest_key(manifest.shelf) != key:
            text = f"expected job {self.job} under its own key {key!r}, got {manifest.job}, shelf {manifest.shelf}"
            self.faults.append(_Fault(offset, f"{where}: snapshot {manifest.version}: {text}"))
        if encode_manifest(manifest) != value:
            self.faults.append(_Fault(offset, f"{where}: snapshot {manifest.version}: bytes no trainer writes"))
        names = chunk_keys(manifest.shelf, len(manifest.model.chunks), len(manifest.trainer.chunks))
        there = {message.key for message in self.waiting}.issuperset(names)  # else a later snapshot may have taken them
        self.faults += [_Fault(offset, text, None if there else key) for text in self._payload_faults(where, located)]

    def _payload_faults(self, where: str, located: Located) -> Iterator[str]:
        """Chunks missing or altered, tensors that are not the model's, numbers that are not finite."""
        manifest = located.manifest
        gathered = Chunks(manifest, trainer=True)
        for message in self.waiting:
            gathered.add(message.key, message.value)
        try:
            stored = gathered.stored(located, where)
            layout = self._model(manifest).layout.published(manifest.workers)
            for expected, payload, groups in (
                (manifest.model, stored.model, MODEL_GROUPS), (manifest.trainer, stored.trainer or b"", TRAINER_GROUPS)
            ):  # fmt: skip
                if sha256(payload) != expected.digest:
                    yield f"{where}: snapshot {manifest.version}: a payload has another digest than its manifest says"
                tensors = decode_tensors(payload)
                for name, array in tensors.items():
                    if not np.isfinite(array).all():
                        yield f"snapshot {manifest.version}: {name} holds a NaN or infinity"
                yield from (f"{where}: snapshot {manifest.version}: {each}; the model cannot load it"
                            for each in differences(layout, tensors, groups))  # fmt: skip
        except SnapshotError as error:
            yield str(error)

    def _model(self, manifest: Manifest) -> Model:
        """The manifest's model; the newest is kept, for most are the same."""
        key = manifest.model_spec, manifest.schema
        if self.model is None or self.model[0] != key:
            self.model = key, schema_and_model(manifest)[1]
        return self.model[1]


def read_snapshots(job: str, topic: Topic) -> tuple[Check, Snapshots]:
    """Reads the snapshots of the topic. Leaves out unreadable manifests, and those that `--fresh` skipped."""
    check = Check("snapshots", "whole, digests match, versions never go down, every number finite")
    seen = _Pass(job, topic.name)
    for message in topic.messages():
        seen.take(message)
    over = [_passed_over(located) for located in seen.found if passes_over(located.manifest)]
    check.not_checkable += [f"{topic.name} offsets {span.start} to {span.stop}: damaged, passed over" for span in over]
    for fault in seen.faults:
        is_current = fault.key is None or seen.taken.get(fault.key) == fault.offset
        check.expect(not is_current or _within(fault.offset, over), fault.text)
    manifests = [located for located in seen.found if not _within(located.offset, over)]
    current = [each for each in manifests if seen.taken.get(manifest_key(each.manifest.shelf)) == each.offset]
    _check_keys(check, topic.name, seen.taken, current, over)
    for before, after in pairwise(manifests):
        check.expect(
            before.manifest.version < after.manifest.version,
            f"version {after.manifest.version} at offset {after.offset} comes after {before.manifest.version}",
        )
    if manifests:
        first, last = manifests[0].manifest.version, manifests[-1].manifest.version
        check.span = f"{len(current)} snapshots, {len(manifests)} manifests, versions {first} to {last}"
    versions = frozenset(located.manifest.version for located in current)

    def read(located: Located) -> Stored:
        gathered = Chunks(located.manifest, trainer=True)
        begin = max((each.offset for each in seen.found if each.offset < located.offset), default=-1) + 1
        for message in topic.partitions[0].read(begin, located.offset):
            gathered.add(message.key, message.value)
        return gathered.stored(located, topic.name)

    return check, Snapshots(tuple(manifests), versions, read)


def passes_over(manifest: Manifest) -> bool:
    """It begins a lineage above damaged snapshots: only then versions are left out."""
    before = manifest.parent.version if manifest.parent else 0
    begins = manifest.round < 0 and manifest.restored is None and not manifest.is_import
    return begins and manifest.version > before + 1


def _passed_over(located: Located) -> range:
    """The offsets between the newest snapshot a new lineage found whole and its own first one."""
    return range(max((entry.offset for entry in located.manifest.kept), default=-1) + 1, located.offset)


def _within(offset: int, spans: list[range]) -> bool:
    return any(offset in span for span in spans)


def _check_keys(check: Check, topic: str, taken: dict[bytes, int], current: list[Located], over: list[range]) -> None:
    """Every key that holds a value is of a snapshot that is there; shelves with something damaged are left out."""
    known = set()
    for located in current:
        manifest = located.manifest
        counts = len(manifest.model.chunks), len(manifest.trainer.chunks)
        known |= {manifest_key(manifest.shelf), *chunk_keys(manifest.shelf, *counts)}
    damaged = {_shelf(key) for key, offset in taken.items() if _within(offset, over)}
    for key, offset in taken.items():
        if key not in known and _shelf(key) not in damaged:
            check.problems.append(f"{topic}@{offset}: key {key!r} is of no snapshot that the topic holds")


def _shelf(key: bytes) -> bytes:
    return b"/".join(key.split(b"/")[:2])
