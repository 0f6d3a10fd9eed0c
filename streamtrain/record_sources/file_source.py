"""Files as a record source: a partition is a file, an offset the number of a row in it, the identity what they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from streamtrain._native import MAX_PARTITIONS
from streamtrain.errors import OR_FRESH, UserMistake
from streamtrain.files.found import FoundFile
from streamtrain.job import Job
from streamtrain.record_sources.record_source import Gaps, Intake
from streamtrain.record_sources.source_changes import (
    FileEntry,
    every_file,
    first_unfinished,
    identity_of,
    list_files,
    more,
    move,
)
from streamtrain.topics.manifest import Position, Positions


class FileRecordSource:
    """A `RecordSource`: one file behind the other, each row once. Files may be added behind those that were read."""

    def __init__(self, job: Job, files: Sequence[FoundFile]) -> None:
        if len(files) > MAX_PARTITIONS:
            raise UserMistake(f"--files: expected at most {MAX_PARTITIONS:,} files, got {len(files):,}; join some")
        self._job, self._files = job, list(files)
        self._entries = [FileEntry(file.name, file.digest, file.rows) for file in files]

    def name_of(self, partition: int) -> str:
        return self._entries[partition].title

    def intake(self, until_end: bool) -> Intake:
        config = {"job": self._job.effective(), "files": [asdict(file) for file in self._files]}
        return Intake("file_ingest", config, 1, sum(file.rows for file in self._files))

    def begin(self) -> tuple[Positions, Gaps]:
        starts = self._starts()
        return starts, (move("begins with files", None, starts, self._entries),)

    def _starts(self) -> Positions:
        return Positions(identity_of(self._entries), (Position(0),) * len(self._entries))

    def go_on(self, version: int, seen: Positions, known: Gaps, accept_gap: bool = False) -> tuple[Positions, Gaps]:
        """A file that the lineage has read is not read again, but where it is named again behind those."""
        before = list_files(known, seen.topic_id)
        if before and self._begin_with(before):
            added = self._entries[len(before) :]
            self._entries[: len(before)] = before  # by the names they had
            positions = Positions(seen.topic_id, (*seen.partitions, *(Position(0) for _ in added)))
            return positions, (more(added, len(before)),) if added else ()
        self._check_left(version, seen, known, accept_gap)
        read = {file.digest for file in every_file(known)}
        for file, entry in zip(self._files, self._entries, strict=True):
            if entry.digest in read:
                raise UserMistake(
                    f"{file.path}: expected a file that this lineage has not read, or all those it reads now in their "
                    f"order before the new ones; snapshot {version} has read the file with the digest {entry.digest}; "
                    f"leave it out; {OR_FRESH}"
                )
        starts = self._starts()
        return starts, (move("read on in files", seen, starts, self._entries),)

    def _begin_with(self, before: Sequence[FileEntry]) -> bool:
        return [file.digest for file in before] == [file.digest for file in self._entries[: len(before)]]

    def _check_left(self, version: int, seen: Positions, known: Gaps, accept_gap: bool) -> None:
        """UserMistake where files are left before their end, which names the first that is another or not there."""
        if first_unfinished(known, seen) is None or accept_gap:
            return
        for place, file in enumerate(list_files(known, seen.topic_id)):
            given = self._files[place] if place < len(self._files) else None
            if given is None or given.digest != file.digest:
                at = seen.partitions[place]
                got = "no file" if given is None else f"{given.path} with the digest {given.digest}"
                raise UserMistake(f"{unread(version, (file, at.offset + at.row))}, got {got} in its place; {_NEXT}")

    def check(self, version: int, seen: Positions) -> None:
        """Checks that files not yet read to their end are unchanged since they were found."""
        for file, at in zip(self._files, seen.partitions, strict=False):
            if at.offset < file.rows:
                file.check_unchanged()

    def trained(self, positions: Sequence[Position]) -> None: ...


_NEXT = (
    "give the same files in their order, new ones behind them; go on with --accept-gap, which leaves its other rows "
    f"out; {OR_FRESH}"
)


def unread(version: int, left: tuple[FileEntry, int]) -> str:
    """Describes the part of a file that snapshot `version` has not read yet, for an error."""
    file, row = left
    return (
        f"{file.name}: snapshot {version} has read it up to row {row:,} of {file.rows:,}: expected the file with the "
        f"digest {file.digest}"
    )


def check_read(version: int, seen: Positions, known: Gaps, accept_gap: bool) -> None:
    """UserMistake where what a snapshot has `seen` are files that are not read to their end."""
    left = first_unfinished(known, seen)
    if left is not None and not accept_gap:
        raise UserMistake(f"{unread(version, left)}, got no --files; {_NEXT}")


def files_from(config: Sequence[Mapping[str, Any]]) -> list[FoundFile]:
    """Returns the files in an intake's config."""
    return [FoundFile(**{**file, "stamp": tuple(file["stamp"])}) for file in config]
