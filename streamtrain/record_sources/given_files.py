"""Files given to a check: the records of those that a job has read, read again, each known by its digest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamtrain.columns.record_encoding import Record
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from streamtrain.files.found import FoundFile
from streamtrain.files.placed import placed_records
from streamtrain.kafka.clients import Message
from streamtrain.record_sources.source_changes import FileEntry
from streamtrain.schemas import without_frame

_MAX_FILES_IN_ERROR = 4  # files in an error's text


@dataclass
class FilePartition:
    """A file as verify's `Partition`, in the columns and the format that its rows were decoded by.

    What is read behind what was read before goes on there: a file is gone through once.
    """

    path: str
    number: int
    end: int  # rows
    schema: Schema
    format: Mapping[str, Any]
    low: int = 0
    _records: Iterator[tuple[int, Record]] = field(default_factory=lambda: iter(()))
    _next_row: tuple[int, Record] | None = None  # the next of them

    def read(self, begin: int, end: int) -> Iterator[Message]:
        if self._next_row is None or self._next_row[0] > begin:
            self._records = placed_records(self.path, self.schema, self.format, begin)
            self._next_row = next(self._records, None)
        while self._next_row is not None and self._next_row[0] < end:
            row, record = self._next_row
            if row >= begin:
                yield Message(self.number, row, -1, None, record.value, [], 0, "")
            self._next_row = next(self._records, None)


class GivenFiles:
    """`found`: what was given, in any order."""

    def __init__(self, found: Sequence[FoundFile]) -> None:
        self._found = list(found)
        self._by_digest = {file.digest: file for file in found}

    def partitions(self, files: Sequence[FileEntry], schema: Schema, format: Mapping[str, Any]) -> list[FilePartition]:
        """The files that a lineage tells of. UserMistake where one of them was not given, or is another by now."""
        if not all(file.digest in self._by_digest for file in files):
            raise self.missing(files)
        found = (self._by_digest[file.digest].path for file in files)
        return [
            FilePartition(path, number, file.rows, schema, without_frame(format))
            for number, (path, file) in enumerate(zip(found, files, strict=True))
        ]

    def has_some(self, files: Sequence[FileEntry]) -> bool:
        return any(file.digest in self._by_digest for file in files)

    def rows(self, digest: str) -> int | None:
        """Returns the number of rows of the file with this digest; None if it was not given."""
        found = self._by_digest.get(digest)
        return None if found is None else found.rows

    def missing(self, files: Sequence[FileEntry]) -> UserMistake:
        """Returns the error that names the first of these files that was not given."""
        file = next((each for each in files if each.digest not in self._by_digest), FileEntry("none", "", 0))
        same = [each for each in self._found if each.name == file.name]
        got = "; ".join(f"{each.path} with {each.digest}" for each in (same or self._found)[:_MAX_FILES_IN_ERROR])
        return UserMistake(
            f"--files: {file.name}: expected the file with the digest {file.digest}, got {got}; bring that file back, "
            "or leave --files out"
        )
