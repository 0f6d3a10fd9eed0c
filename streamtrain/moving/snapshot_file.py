"""A snapshot as one file: a line that says what it is, that line's digest, the manifest's bytes, then every chunk.

The line is JSON, so that `head -1` shows it. Each section has a SHA-256 in one before it, and nothing lies behind the
last; nothing of a file is used before that has been looked at. Memory is a chunk's, whatever the snapshot's size.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256 as hashing
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NoReturn, Self

import numpy as np

from streamtrain.compute.snapshot import Place, places
from streamtrain.errors import SnapshotError, UserMistake
from streamtrain.topics import manifest as wire
from streamtrain.topics.chunks import Stored
from streamtrain.topics.manifest import CHUNK_BYTES, Manifest, Payload
from streamtrain.topics.topic import MESSAGE_BYTES, sha256
from streamtrain.topics.wire import DIGEST_BYTES, Reader

WIRE_VERSION = 1
WHAT = "snapshot file"
SUFFIX = ".snapshot"
SAVED = f"model{SUFFIX}"  # in a folder of Fitted.save
_LINE_LIMIT = 64 * 1024  # bytes
_HEX_DIGEST = 2 * DIGEST_BYTES
_PIECE = 1 << 20  # numbers looked at at a time
_NEXT = "nothing was used of it; copy the file again, or export the snapshot again"


@dataclass(frozen=True)
class Origin:
    """The place in Kafka that a file's snapshot was exported from; the snapshot may be gone from there."""

    cluster: str  # Kafka's cluster id
    topic: str
    offset: int  # of the manifest
    exported_ms: int


def head(origin: Origin, manifest: Manifest, value: bytes) -> bytes:
    """Returns the start of the file, up to the first chunk; `value` is the manifest's bytes."""
    document = {
        "streamtrain": WHAT,
        "wire": WIRE_VERSION,
        "job": manifest.job,
        "version": manifest.version,
        "digest": sha256(value).hex(),
        "manifest_bytes": len(value),
        "model_bytes": manifest.model.size,
        "trainer_bytes": manifest.trainer.size,
        "cluster": origin.cluster,
        "topic": origin.topic,
        "offset": origin.offset,
        "exported_ms": origin.exported_ms,
    }
    line = json.dumps(document, ensure_ascii=False).encode() + b"\n"
    return line + sha256(line).hex().encode() + b"\n" + value


def place_of(manifest: Manifest, chunk: int) -> int:
    """Returns where a chunk begins, in bytes after the head."""
    model = len(manifest.model.chunks)
    return chunk * CHUNK_BYTES if chunk < model else manifest.model.size + (chunk - model) * CHUNK_BYTES


class SnapshotFile:
    """One that is read, at a path or as SAVED in a folder. What it says of itself is checked when it is opened, the
    rest by `check`.

    SnapshotError says at which byte it is not what was written, UserMistake that it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path = path / SAVED if path.is_dir() else path
        try:
            self._file: IO[bytes] = path.open("rb")
        except OSError as error:
            raise UserMistake(f"{path}: cannot be read: {error.strerror}") from error
        try:
            self._open()
        except BaseException:
            self._file.close()
            raise

    def _open(self) -> None:
        line = self._file.readline(_LINE_LIMIT)
        read = self._line(line)
        sizes = [read.integer(f"{part}_bytes") for part in ("manifest", "model", "trainer")]
        self.origin = Origin(
            read.text("cluster"), read.text("topic"), read.integer("offset"), read.integer("exported_ms")
        )
        self.digest = bytes.fromhex(read.hexadecimal("digest", _HEX_DIGEST))
        at = len(line) + _HEX_DIGEST + 1
        if not 0 < sizes[0] <= MESSAGE_BYTES:
            self.fail(0, "manifest", f"at most {MESSAGE_BYTES} bytes", f"{sizes[0]}")
        value = self._bytes(at, sizes[0], "manifest")
        if sha256(value) != self.digest:
            self.fail(at, "manifest", f"the digest {self.digest.hex()[:12]}…", f"{sha256(value).hex()[:12]}…")
        try:
            self.manifest = wire.decode(value)
        except SnapshotError as error:
            raise SnapshotError(f"{self.path}@{at}: {error}") from None
        self._begin = at + sizes[0]
        manifest_says = (self.manifest.job, self.manifest.version, self.manifest.model.size, self.manifest.trainer.size)
        line_says = (read.text("job"), read.integer("version"), *sizes[1:])
        if manifest_says != line_says:
            self.fail(0, "first line", f"job, version and sizes {manifest_says}, as its manifest says", f"{line_says}")
        self.bytes = self._begin + sum(sizes[1:])
        size = self._file.seek(0, 2)
        if size > self.bytes:
            self.fail(self.bytes, "end", "the end of the file", f"{size - self.bytes:,} bytes more")

    def _line(self, line: bytes) -> Reader:
        """The first line, as the second says that it was written."""
        if not line.endswith(b"\n") or not line.startswith(b'{"streamtrain"'):
            self.fail(0, "first line", f"that of a {WHAT} of streamtrain", f"{line[:40]!r}")
        second = self._file.read(_HEX_DIGEST + 1)
        if second != sha256(line).hex().encode() + b"\n":
            self.fail(len(line), "second line", "the first line's digest", f"{second[:16]!r}…")
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            self.fail(0, "first line", "JSON", f"{line[:40]!r}")
        read = Reader(document, f"{self.path}: {WHAT}", SnapshotError)
        found = read.integer("wire")
        if read.text("streamtrain") != WHAT or found != WIRE_VERSION:
            hint = "install a newer streamtrain to read it" if found > WIRE_VERSION else "an older one wrote it"
            self.fail(0, "first line", f"a {WHAT} of wire version {WIRE_VERSION}", f"{found}; {hint}")
        return read

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def fail(self, at: int, section: str, expected: str, got: str) -> NoReturn:
        raise SnapshotError(f"{self.path}@{at}: {section}: expected {expected}, got {got}; {_NEXT}")

    def _bytes(self, at: int, count: int, section: str) -> bytes:
        self._file.seek(at)
        found = self._file.read(count)
        if len(found) != count:
            self.fail(at, section, f"{count:,} bytes", f"{len(found):,}: the file is cut off")
        return found

    def chunks(self) -> Iterator[bytes]:
        """The model's, then the trainer state's, each as the manifest says."""
        manifest = self.manifest
        for index, digest in enumerate((*manifest.model.chunks, *manifest.trainer.chunks)):
            payload, before = self._payload_of(index)
            at = place_of(manifest, index)
            size = min(CHUNK_BYTES, before + payload.size - at)
            section = f"chunk {index + 1} of {manifest.chunk_count}"
            chunk = self._bytes(self._begin + at, size, section)
            if sha256(chunk) != digest:
                self.fail(self._begin + at, section, f"the digest {digest.hex()[:12]}…", f"{sha256(chunk).hex()[:12]}…")
            yield chunk

    def _payload_of(self, chunk: int) -> tuple[Payload, int]:
        """And where it begins behind the head."""
        manifest = self.manifest
        first = chunk < len(manifest.model.chunks)
        return (manifest.model, 0) if first else (manifest.trainer, manifest.model.size)

    def stored(self) -> Stored:
        """The whole snapshot in memory; SnapshotError where a chunk is not what was written."""
        chunks = list(self.chunks())
        model = len(self.manifest.model.chunks)
        payloads = b"".join(chunks[:model]), b"".join(chunks[model:])
        return Stored(self.manifest, self.digest, self.origin.offset, *payloads)

    def check(self, on_chunk: Callable[[int], Any] = lambda size: None) -> dict[str, Place]:
        """Goes over all of it: every digest, and every number is one. Gives the tensors of both payloads by name.

        `on_chunk` hears how many bytes have been looked at.
        """
        hashes = {True: hashing(), False: hashing()}
        for index, chunk in enumerate(self.chunks()):
            hashes[index < len(self.manifest.model.chunks)].update(chunk)
            on_chunk(len(chunk))
        found: dict[str, Place] = {}
        for name, payload, begin in (
            ("model", self.manifest.model, self._begin),
            ("trainer state", self.manifest.trainer, self._begin + self.manifest.model.size),
        ):
            got = hashes[name == "model"].digest()
            if got != payload.digest:
                self.fail(begin, name, f"the digest {payload.digest.hex()[:12]}…", f"{got.hex()[:12]}…")
            found |= self._tensors(name, payload, begin)
        return found

    def _tensors(self, name: str, payload: Payload, begin: int) -> dict[str, Place]:
        try:
            found = places(payload.size, lambda start, end: self._bytes(begin + start, end - start, name))
        except SnapshotError as error:
            raise SnapshotError(f"{self.path}@{begin}: {name}: {error}; {_NEXT}") from None
        for tensor, place in found.items():
            step = _PIECE * place.dtype.itemsize
            for at in range(place.begin, place.end, step):
                piece = self._bytes(begin + at, min(step, place.end - at), tensor)
                if not np.isfinite(np.frombuffer(piece, place.dtype)).all():
                    self.fail(begin + at, tensor, "numbers", "a NaN or infinity")
        return found
