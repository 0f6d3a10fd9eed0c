"""A published snapshot to a file, one chunk at a time; verified as it is read, and again as it was written."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamtrain.errors import SnapshotError, UserMistake
from streamtrain.kafka.snapshot_reader import SnapshotTopic
from streamtrain.moving.snapshot_file import Origin, SnapshotFile, head, place_of
from streamtrain.topics.chunks import Located
from streamtrain.topics.manifest import encode
from streamtrain.topics.topic import sha256

Heard = Callable[[int], Any]


def export(
    topic: SnapshotTopic, located: Located, cluster: str, path: Path, force: bool = False, on_bytes: Heard = lambda _: 0
) -> int:
    """Writes the snapshot and gives the file's bytes; there is nothing under that name before all is there.

    `on_bytes` hears of what has been read. UserMistake where the file is there already, unless `force`, or cannot be
    written; SnapshotError where the topic's snapshot is not whole.
    """
    _refuse(path, force)
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        size = _write(topic, located, cluster, part, on_bytes)
        with SnapshotFile(part) as file:
            file.check()
        _name(part, path, force)
    except OSError as error:
        raise UserMistake(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
    return size


def _write(topic: SnapshotTopic, located: Located, cluster: str, path: Path, on_bytes: Heard) -> int:
    manifest, value = located.manifest, encode(located.manifest)
    if sha256(value) != located.digest:
        raise SnapshotError(
            f"{topic.name}@{located.offset}: expected a manifest's bytes as a trainer writes them, got others; nothing "
            "was exported; 'streamtrain verify' says more"
        )
    begin = head(Origin(cluster, topic.name, located.offset, time.time_ns() // 1_000_000), manifest, value)
    with path.open("xb") as file:
        file.write(begin)

        def put(index: int, chunk: bytes) -> None:
            file.seek(len(begin) + place_of(manifest, index))
            file.write(chunk)
            on_bytes(len(chunk))

        topic.hand_on(located, put)
        file.flush()
        os.fsync(file.fileno())
        return file.seek(0, os.SEEK_END)


def _refuse(path: Path, force: bool) -> None:
    if path.exists() and not force:
        raise UserMistake(f"{path}: expected no such file yet, found one; name another, or write over it with --force")


def _name(part: Path, path: Path, force: bool) -> None:
    """In one step, and over nothing that has come meanwhile."""
    if force:
        part.replace(path)
        return
    try:
        path.hardlink_to(part)
    except FileExistsError:
        _refuse(path, force)
    except OSError:  # a file system without links
        _refuse(path, force)
        part.rename(path)
