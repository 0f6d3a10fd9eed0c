"""The gaps of a manifest that record changes of the record source, where no row is skipped.

A change is {"reason", "topic_id": [old, new], "from": positions, "to": positions}, with "files" if the new source is
files. A lineage that begins with files is a change from "". Files added after those are {"reason", "files",
"from": count, "to": count}.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from streamtrain.topics.manifest import Position, Positions

MEMORY = "memory"  # the identity of rows that a program holds


class FileEntry(NamedTuple):
    """A file that a lineage has begun to read, or will: its name and digest when it came first, and its rows."""

    name: str
    digest: str
    rows: int

    @property
    def title(self) -> str:
        """Returns the name that dead letters give to the source of its rows."""
        return f"{self.name}@{self.digest}"


def is_file(title: str) -> bool:
    """Returns True if the record source that a dead letter names is a file: no topic has such a name."""
    return "@" in title


def identity_of(files: Sequence[FileEntry]) -> str:
    """Returns the identity of a list of files, which depends on their contents only."""
    return "files:" + sha256("".join(file.digest for file in files).encode()).hexdigest()


def move(reason: str, seen: Positions | None, now: Positions, files: Sequence[FileEntry] = ()) -> dict[str, Any]:
    """The entry of a move; `seen` None: a lineage begins."""
    entry: dict[str, Any] = {
        "reason": reason,
        "topic_id": ["" if seen is None else seen.topic_id, now.topic_id],
        "from": [] if seen is None else [list(at) for at in seen.partitions],
        "to": [list(at) for at in now.partitions],
    }
    return {**entry, "files": [list(file) for file in files]} if files else entry


def more(files: Sequence[FileEntry], before: int) -> dict[str, Any]:
    """The entry of files that come behind so many."""
    listed = [list(file) for file in files]
    return {"reason": "more files", "files": listed, "from": before, "to": before + len(files)}


def list_files(gaps: Sequence[Mapping[str, Any]], identity: str) -> list[FileEntry]:
    """The files of an identity in order, as far as these gaps tell."""
    return [file for now, file in _each_file(gaps) if now == identity]


def named_files(gaps: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[FileEntry]]]:
    """Each identity that these gaps move to, with the files that it is made of."""
    for gap in gaps:
        match gap:
            case {"topic_id": [_, str(now)], "files": list(_)}:
                yield now, list_files([gap], now)


def every_file(gaps: Sequence[Mapping[str, Any]]) -> list[FileEntry]:
    """All files that these gaps tell of."""
    return [file for _, file in _each_file(gaps)]


def _each_file(gaps: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, FileEntry]]:
    now = ""
    for gap in gaps:
        match gap:
            case {"topic_id": [_, str(now)]}:
                pass
        files = gap.get("files")
        for file in files if isinstance(files, list) else ():
            match file:
                case [str(name), str(digest), int(rows)]:
                    yield now, FileEntry(name, digest, rows)


def first_unfinished(gaps: Sequence[Mapping[str, Any]], seen: Positions) -> tuple[FileEntry, int] | None:
    """The first file that is not read to its end, and the row it is read up to."""
    for file, at in zip(list_files(gaps, seen.topic_id), seen.partitions, strict=False):
        if at.offset < file.rows:
            return file, at.offset + at.row
    return None


def left_topic(gaps: Sequence[Mapping[str, Any]]) -> Positions | None:
    """Returns the positions where the lineage last changed from a topic to files; None if it never did."""
    for gap in reversed(gaps):
        match gap:
            case {"topic_id": [str(was), _], "from": list(at), "files": list(_)} if was and not list_files(gaps, was):
                return Positions(was, tuple(Position(*place) for place in at))
    return None
