"""Checks that manifests agree on the files they have read, and match the files that were given."""

from __future__ import annotations

from collections.abc import Iterator

from streamtrain.checks.given_files import GivenFiles
from streamtrain.checks.verify.report import Check
from streamtrain.checks.verify.snapshots import Snapshots
from streamtrain.record_sources.source_changes import FileEntry, identity_of, is_files, list_files, named_files
from streamtrain.topics.manifest import Manifest


def check_files(snapshots: Snapshots, given: GivenFiles | None) -> Check | None:
    """None of a job that has read none."""
    manifests = [each.manifest for each in snapshots.manifests if is_files(each.manifest.positions.topic_id)]
    if not manifests:
        return None
    check = Check("files", "each has its digest and its rows, and is read to its end before the next one")
    texts: set[str] = set()
    for manifest in manifests:
        for text in (*_digests(manifest), *_places(manifest), *_rows(manifest, given)):
            if text not in texts:
                check.problems.append(f"snapshot {manifest.version}: {text}")
                texts.add(text)
    newest = manifests[-1]
    check.span = f"{len(list_files(newest.gaps, newest.positions.topic_id))} files, {len(manifests)} manifests"
    return check


def _digests(manifest: Manifest) -> Iterator[str]:
    for identity, files in named_files(manifest.gaps):
        if identity_of(files) != identity:
            names = ", ".join(file.title for file in files[:4])
            yield f"its files have the digests {names}, of which {identity} is not made"


def _places(manifest: Manifest) -> Iterator[str]:
    """In what order they were read."""
    files = list_files(manifest.gaps, manifest.positions.topic_id)
    places = [at.offset + (at.row > 0) for at in manifest.positions.partitions]
    if len(files) != len(places):
        yield f"its gaps tell of {len(files)} files, its positions of {len(places)}"
    for number, (file, at) in enumerate(zip(files, places, strict=False)):
        if at > file.rows:
            yield f"{file.name}: is read up to row {at}, and has {file.rows}"
        elif at < file.rows and any(places[number + 1 :]):
            yield f"{file.name}: is left at row {at} of {file.rows}, and the next one is read"


def _rows(manifest: Manifest, given: GivenFiles | None) -> Iterator[str]:
    files: list[FileEntry] = [] if given is None else list_files(manifest.gaps, manifest.positions.topic_id)
    for file in files:
        rows = None if given is None else given.rows(file.digest)
        if rows is not None and rows != file.rows:
            yield f"{file.title}: is told to have {file.rows} rows, it has {rows}"
