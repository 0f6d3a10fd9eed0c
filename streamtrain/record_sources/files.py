"""Files, read in place of the records topic.

Their identity is a digest of what they hold, so it is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from streamtrain import _native
from streamtrain.columns.schema import Schema
from streamtrain.errors import CheckFailed, StreamtrainError
from streamtrain.kafka.admin import Admin
from streamtrain.record_sources.given_files import GivenFiles
from streamtrain.record_sources.record_source import Gaps
from streamtrain.record_sources.source_changes import FileEntry, identity_of, list_files, named_files
from streamtrain.record_sources.source_kind import Given, Progress, RecordReader, RecordsGone, SourceKind, Topic
from streamtrain.schemas import without_frame
from streamtrain.topics.manifest import Manifest, Positions
from streamtrain.topics.terms import Terms


class _FilesReader(RecordReader):
    """A reader of files."""

    def open(self, partition: int, offset: int) -> _native.Source:
        if partition >= len(self._topic.partitions):
            raise CheckFailed(f"{self._topic.topic_id} partition {partition}: no manifest tells of so many files")
        file = self._topic.partitions[partition]
        return _native.IteratorSource((row.offset, row.value or b"") for row in file.read(offset, file.end))

    def close(self) -> None: ...

    def explained(self, failure: _native.KafkaFailure) -> StreamtrainError:
        raise AssertionError(failure)  # files are not Kafka's


class _Files(SourceKind):
    off_topic = "files"
    is_dense = True
    promise = "each has its digest and its rows, and is read to its end before the next one"
    gone = "of files that are not given; give them with --files"

    def topic(self, terms: Terms, schema: Mapping[str, Any] | None, given: Given) -> Topic | None:
        files = given.files_of(terms.topic_id)
        if given.files is None or schema is None or not given.files.has_some(files):
            return None
        return _as_topic(terms, Schema.from_dict(dict(schema)), given.files, files)

    def reader(self, terms: Terms, schema: Schema, given: Given) -> RecordReader:
        if given.files is None:
            raise RecordsGone("its rows were those of files; give them with --files")
        return _FilesReader(_as_topic(terms, schema, given.files, given.files_of(terms.topic_id)))

    def name_of(self, identity: str, partition: int, given: Given) -> str | None:
        files = given.files_of(identity)
        return files[partition].title if 0 <= partition < len(files) else None

    def progress(self, manifest: Manifest, topic_id: str | None, ends: Sequence[int]) -> Progress:
        seen = manifest.positions
        files = list_files(manifest.gaps, seen.topic_id)
        lags = [file.rows - at.offset - at.row for file, at in zip(files, seen.partitions, strict=True)]
        return [at.offset for at in seen.partitions], lags

    def decoded_as(self, schema: Schema, format: Mapping[str, Any]) -> tuple[Schema, dict[str, Any]]:
        """No message and no frame is around a row of a file."""
        return schema.without_message(), without_frame(format)

    def begins(self, identity: str, gaps: Gaps) -> bool:
        """There is one gap, the change to these files."""
        return len(gaps) == 1 and gaps[0].get("topic_id") == ["", identity] and bool(list_files(gaps, identity))

    def check_kept(self, where: str, seen: Positions, topic: str, admin: Admin) -> None:
        """A file is the same everywhere."""

    def findings(self, manifest: Manifest, files: GivenFiles | None) -> Iterator[str]:
        yield from _digests(manifest)
        yield from _places(manifest)
        yield from () if files is None else _rows(manifest, files)


def _as_topic(terms: Terms, schema: Schema, given: GivenFiles, files: Sequence[FileEntry]) -> Topic:
    return Topic("files", terms.topic_id, given.partitions(files, schema, terms.format))


def _digests(manifest: Manifest) -> Iterator[str]:
    for identity, files in named_files(manifest.gaps):
        if identity_of(files) != identity:
            names = ", ".join(file.title for file in files[:4])
            yield f"its files have the digests {names}, of which {identity} is not made"


def _places(manifest: Manifest) -> Iterator[str]:
    """Yields where the positions contradict an order of one file after the other."""
    files = list_files(manifest.gaps, manifest.positions.topic_id)
    places = [at.offset + (at.row > 0) for at in manifest.positions.partitions]
    if len(files) != len(places):
        yield f"its gaps tell of {len(files)} files, its positions of {len(places)}"
    for number, (file, at) in enumerate(zip(files, places, strict=False)):
        if at > file.rows:
            yield f"{file.name}: is read up to row {at}, and has {file.rows}"
        elif at < file.rows and any(places[number + 1 :]):
            yield f"{file.name}: is left at row {at} of {file.rows}, and the next one is read"


def _rows(manifest: Manifest, given: GivenFiles) -> Iterator[str]:
    for file in list_files(manifest.gaps, manifest.positions.topic_id):
        rows = given.rows(file.digest)
        if rows is not None and rows != file.rows:
            yield f"{file.title}: is told to have {file.rows} rows, it has {rows}"


SOURCE = _Files()
