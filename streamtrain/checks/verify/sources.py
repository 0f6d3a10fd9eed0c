"""The records that round logs speak of: the topic there is now, or files that were given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamtrain.checks.given_files import GivenFiles
from streamtrain.checks.verify.snapshots import Snapshots
from streamtrain.checks.verify.topics import Topic
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from streamtrain.record_sources.source_changes import FileEntry, is_files, list_files
from streamtrain.topics.terms import Terms, columns_digest


class Sources:
    """By the identity that a round's terms name. UserMistake where files were given that no snapshot has read."""

    def __init__(self, topic: Topic | None, files: GivenFiles | None, snapshots: Snapshots) -> None:
        self._topic, self._files = topic, files
        manifests = [each.manifest for each in snapshots.manifests]
        identities = {each.positions.topic_id: each for each in manifests if is_files(each.positions.topic_id)}
        self._files_by_identity = {identity: list_files(each.gaps, identity) for identity, each in identities.items()}
        self._schemas = {columns_digest(each.schema): each.schema for each in manifests}
        if files is not None and not self._files_by_identity:
            raise UserMistake("--files: expected a job that was trained from files, no snapshot that is held was")
        if files is not None and not any(map(files.has_some, self._files_by_identity.values())):
            raise files.missing(next(iter(self._files_by_identity.values())))
        self._topics: dict[tuple[str, bytes, str], Topic | None] = {}

    def of(self, terms: Terms) -> Topic | None:
        """None where they are not there any more, or were not given."""
        if not is_files(terms.topic_id):
            there = self._topic is not None and self._topic.topic_id == terms.topic_id
            return self._topic if there else None
        key = terms.topic_id, terms.columns_digest, repr(sorted(terms.format.items()))
        if key not in self._topics:
            self._topics[key] = self._of_files(terms)
        return self._topics[key]

    def _of_files(self, terms: Terms) -> Topic | None:
        schema: Mapping[str, Any] | None = self._schemas.get(terms.columns_digest)
        files = self._files_by_identity.get(terms.topic_id, [])
        if self._files is None or schema is None or not self._files.has_some(files):
            return None
        partitions = self._files.partitions(files, Schema.from_dict(dict(schema)), terms.format)
        return Topic("files", terms.topic_id, partitions)

    def name_of(self, terms: Terms, partition: int) -> str | None:
        """Returns the name that dead letters use for the source of their records; None if it is unknown."""
        if not is_files(terms.topic_id):
            topic = self.of(terms)
            return None if topic is None else topic.name
        files: list[FileEntry] = self._files_by_identity.get(terms.topic_id, [])
        return files[partition].title if 0 <= partition < len(files) else None
