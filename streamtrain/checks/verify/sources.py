"""The records that round logs speak of: the topic there is now, or files that were given. Also checks that manifests
say of them what can be."""

from __future__ import annotations

from collections.abc import Iterator

from streamtrain.checks.verify.snapshot_check import Snapshots
from streamtrain.checks.verify.verify_report import Check
from streamtrain.errors import UserMistake
from streamtrain.record_sources.given_files import GivenFiles
from streamtrain.record_sources.source_changes import list_files
from streamtrain.record_sources.source_kind import Given, SourceKind, Topic, source_of
from streamtrain.topics.manifest import Manifest
from streamtrain.topics.terms import Terms, columns_digest


class Sources:
    """By the identity that a round's terms name. UserMistake where files were given that no snapshot has read."""

    def __init__(self, topic: Topic | None, files: GivenFiles | None, snapshots: Snapshots) -> None:
        manifests = [each.manifest for each in snapshots.manifests]
        gaps = {each.positions.topic_id: each.gaps for each in manifests}
        listed = {identity: found for identity in gaps if (found := list_files(gaps[identity], identity))}
        self._given = Given(topic or Topic("", "none", ()), files, lambda identity: listed.get(identity, ()))
        self._schemas = {columns_digest(each.schema): each.schema for each in manifests}
        if files is not None and not listed:
            raise UserMistake("--files: expected a job that was trained from files, no snapshot that is held was")
        if files is not None and not any(map(files.has_some, listed.values())):
            raise files.missing(next(iter(listed.values())))
        self._topics: dict[tuple[str, bytes, str], Topic | None] = {}

    def of(self, terms: Terms) -> Topic | None:
        """None where they are not there any more, or were not given."""
        key = terms.topic_id, terms.columns_digest, repr(sorted(terms.format.items()))
        if key not in self._topics:
            schema = self._schemas.get(terms.columns_digest)
            self._topics[key] = source_of(terms.topic_id).topic(terms, schema, self._given)
        return self._topics[key]

    def name_of(self, terms: Terms, partition: int) -> str | None:
        """Returns the name that dead letters use for the source of their records; None if it is unknown."""
        return source_of(terms.topic_id).name_of(terms.topic_id, partition, self._given)


def check_sources(snapshots: Snapshots, given: GivenFiles | None) -> Iterator[Check]:
    """Yields a check of each kind of source that was read, where manifests say more of it than positions."""
    read: dict[SourceKind, list[Manifest]] = {}
    for each in snapshots.manifests:
        read.setdefault(source_of(each.manifest.positions.topic_id), []).append(each.manifest)
    for kind, manifests in read.items():
        if kind.promise:
            span = f"{len(manifests[-1].positions.partitions)} {kind.off_topic}, {len(manifests)} manifests"
            check = Check(kind.off_topic, kind.promise, span)
            texts: set[str] = set()
            for manifest in manifests:
                new = [text for text in kind.findings(manifest, given) if text not in texts]
                check.problems += [f"snapshot {manifest.version}: {text}" for text in new]
                texts.update(new)
            yield check
