"""The reading of snapshots: what is read, and how one's chunks are gathered: whole and with the right digests, or an
error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from streamtrain.errors import SnapshotError
from streamtrain.topics import shelves
from streamtrain.topics.manifest import Kept, Manifest
from streamtrain.topics.shelves import chunk_keys
from streamtrain.topics.topic import sha256


class Located(NamedTuple):
    """A manifest, its digest and where it lies in the topic."""

    manifest: Manifest
    digest: bytes
    offset: int


@dataclass(frozen=True)
class Stored:
    """A whole snapshot; `trainer` is None where only the model was asked for."""

    manifest: Manifest
    digest: bytes
    offset: int
    model: bytes
    trainer: bytes | None

    def kept(self) -> tuple[Kept, ...]:
        """Returns what the next snapshot's manifest lists as kept."""
        return shelves.kept_after(self.manifest, self.digest, self.offset)


class TopicContents(NamedTuple):
    """The contents of the topic before a new lineage begins. No snapshot in it has a version above `version`."""

    newest: Located | None = None
    kept: tuple[Kept, ...] = ()
    version: int = 0

    @classmethod
    def of(cls, newest: Located) -> TopicContents:
        """Returns the contents of a topic in which nothing is damaged."""
        return cls(newest, shelves.kept_after(*newest), newest.manifest.version)

    def above(self, version: int) -> TopicContents:
        """Returns the same contents, so that no version at or below `version` is given again."""
        return self._replace(version=max(self.version, version))


class Chunks:
    """Gathers the chunks one manifest names and checks each; `put` takes them, by their place, where it is given."""

    def __init__(self, manifest: Manifest, trainer: bool, put: Callable[[int, bytes], None] | None = None) -> None:
        model, rest = len(manifest.model.chunks), len(manifest.trainer.chunks) if trainer else 0
        self._manifest = manifest
        self._trainer = trainer
        self._keys = chunk_keys(manifest.shelf, model, rest)
        self._missing = dict(zip(self._keys, manifest.model.chunks + manifest.trainer.chunks, strict=False))
        self._altered: set[bytes] = set()
        self._found: dict[bytes, bytes] = {}
        self._put = put

    @property
    def complete(self) -> bool:
        return not self._missing

    def add(self, key: bytes | None, value: bytes | None) -> None:
        if key is None or value is None or key not in self._missing:
            return
        if sha256(value) == self._missing[key]:
            if self._put is None:
                self._found[key] = value
            else:
                self._put(self._keys.index(key), value)
            del self._missing[key]
        else:
            self._altered.add(key)

    def check_whole(self, located: Located, where: str) -> None:
        """SnapshotError names the first chunk that is missing or altered."""
        if self._missing:
            key = next(iter(self._missing))
            fault = "altered (its digest differs)" if key in self._altered else "missing"
            raise SnapshotError(
                f"{where}: snapshot {located.manifest.version}: chunk {key.decode()} is {fault}; "
                f"expected {len(self._keys)} whole chunks before the manifest"
            )

    def stored(self, located: Located, where: str) -> Stored:
        """The whole snapshot; raises as check_whole()."""
        self.check_whole(located, where)
        count = len(self._manifest.model.chunks)
        model = self._join(self._keys[:count], self._manifest.model.size)
        trainer = self._join(self._keys[count:], self._manifest.trainer.size) if self._trainer else None
        return Stored(located.manifest, located.digest, located.offset, model, trainer)

    def _join(self, keys: list[bytes], size: int) -> bytes:
        joined = b"".join([self._found.pop(key) for key in keys])
        if len(joined) != size:
            raise SnapshotError(
                f"snapshot {self._manifest.version}: expected {size} bytes, got {len(joined)} in its chunks"
            )
        return joined
