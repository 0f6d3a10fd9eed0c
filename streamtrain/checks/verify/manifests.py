"""The check that manifests agree with their job, with each other and with runs (guarantee 4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from streamtrain.build import build_digest
from streamtrain.checks.verify.logs import Logs
from streamtrain.checks.verify.snapshot_check import Snapshots, passes_over
from streamtrain.checks.verify.terms import setting
from streamtrain.checks.verify.verify_report import Check
from streamtrain.compute.early_stopping import NAME, best_version
from streamtrain.errors import StreamtrainError
from streamtrain.job import Job
from streamtrain.job.job import settings_digest
from streamtrain.topics.chunks import Located
from streamtrain.topics.control import Control
from streamtrain.topics.manifest import Kept, Manifest, Run
from streamtrain.topics.shelves import kept_after, shelved


def check_manifests(job: str, snapshots: Snapshots, logs: Logs, control: Control) -> Check:
    check = Check("manifests", "every mention of a snapshot, of its job's settings and of a run agrees")
    for problem in _mentions(snapshots, logs, control):
        check.problems.append(problem)
    by_version = {located.manifest.version: located for located in snapshots.manifests}
    settings: dict[Run, Manifest] = {}
    by_digest: dict[str, _SchemaAndModel | str] = {}
    for located in snapshots.manifests:
        manifest = located.manifest
        where = f"snapshot {manifest.version}"
        check.problems += [f"{where}: {text}" for text in _within(job, manifest)]
        check.problems += [f"{where}: {text}" for text in _relations(snapshots, located, by_version)]
        first = settings.setdefault(manifest.run, manifest)
        same = first.job_settings == manifest.job_settings
        check.expect(same, f"{where}: other settings than snapshot {first.version} of its run")
        if manifest.build != build_digest():
            check.not_checkable.append(f"{where}: model and columns as build {manifest.build} makes them of settings")
        else:
            check.problems += [f"{where}: {text}" for text in _check_settings(manifest, by_digest)]
    check.span = f"{len(snapshots.manifests)} manifests, {len(settings)} runs"
    return check


def _mentions(snapshots: Snapshots, logs: Logs, control: Control) -> Iterator[str]:
    """Digest and offset of a snapshot are the same wherever it is named."""
    digests: dict[int, tuple[bytes, str]] = {}
    offsets: dict[int, tuple[int, str]] = {}
    for where, version, digest, offset in _named(snapshots, logs, control):
        if digests.setdefault(version, (digest, where))[0] != digest:
            yield f"{where}: snapshot {version} has another digest than {digests[version][1]} says"
        if offset is not None and offsets.setdefault(version, (offset, where))[0] != offset:
            yield f"{where}: snapshot {version} lies at another offset than {offsets[version][1]} says"


def _named(
    snapshots: Snapshots, logs: Logs, control: Control
) -> Iterator[tuple[str, int, bytes, int | None]]:
    for located in snapshots.manifests:
        yield "the snapshots topic", located.manifest.version, located.digest, located.offset
    for log in logs.all:
        yield "the round log", log.version, log.digest, None
    for located in snapshots.manifests:
        where, manifest = f"snapshot {located.manifest.version}", located.manifest
        if manifest.parent is not None:
            yield f"{where}'s parent", manifest.parent.version, manifest.parent.digest, manifest.parent.offset
        if manifest.restored is not None:
            yield f"{where}'s restored", manifest.restored.version, manifest.restored.digest, None
        for entry in manifest.kept:
            yield f"{where}'s kept", entry.version, entry.digest, entry.offset
    if control.newest is not None:
        yield "control", control.newest.version, control.newest.digest, None


def _within(job: str, manifest: Manifest) -> Iterator[str]:
    """One manifest's fields against each other."""
    if settings_digest(manifest.job_settings) != manifest.config_digest:
        yield "its settings have another digest than it says"
    if manifest.job_settings.get("name") != job:
        yield f"its settings are of job {manifest.job_settings.get('name')!r}"
    if setting(manifest.job_settings, "train", "workers") != manifest.workers:
        yield f"{manifest.workers} workers, its settings say {setting(manifest.job_settings, 'train', 'workers')}"
    is_best = manifest.best == manifest.version
    for what, flag, place in (("archived", manifest.archived, "a/"), ("best", is_best, "b/")):
        if flag != manifest.shelf.startswith(place) or (flag and manifest.round < 0):
            yield f"{what} {flag}, under shelf {manifest.shelf}"
    standing = manifest.metrics.get(NAME, {})
    if not isinstance(standing, dict):
        yield f"early stopping stands at {standing!r:.80}, expected a map"
    elif manifest.best != best_version(manifest.metrics):
        yield f"the best is snapshot {manifest.best}, early stopping says {best_version(manifest.metrics)!r:.80}"


class _SchemaAndModel(NamedTuple):
    """The columns and the model that a job's settings produce."""

    schema: dict[str, Any]
    model_spec: dict[str, Any]


def _check_settings(manifest: Manifest, known: dict[str, _SchemaAndModel | str]) -> Iterator[str]:
    """Model and columns are what the settings make; `known`, by their digest: what they made before, or why nothing."""
    digest = settings_digest(manifest.job_settings)
    if digest not in known:
        known[digest] = _compile_settings(manifest.job_settings)
    expected = known[digest]
    if isinstance(expected, str):
        yield expected
        return
    if expected.schema != manifest.schema:
        yield "its columns are not those of its settings"
    if expected.model_spec != manifest.model_spec:
        yield "its model is not that of its settings"


def _compile_settings(settings: Mapping[str, Any]) -> _SchemaAndModel | str:
    try:
        job = Job.from_effective(settings)
        return _SchemaAndModel(job.schema.to_dict(), job.model_spec())
    except StreamtrainError as error:
        return f"its settings are no job's: {str(error).splitlines()[0]}"


def _relations(snapshots: Snapshots, located: Located, by_version: dict[int, Located]) -> Iterator[str]:
    """The parent, and what the topic held besides."""
    manifest = located.manifest
    parent, before = manifest.parent, by_version.get(manifest.version - 1)
    free = manifest.restored is not None or manifest.is_import or passes_over(manifest)
    if not free and (parent.version if parent else 0) != manifest.version - 1:
        yield f"names {parent.version if parent else 'no snapshot'} as its parent"
    if parent is not None and parent.offset >= located.offset:
        yield f"its parent lies behind it, at offset {parent.offset}"
    for entry in manifest.kept:
        yield from _kept(entry, by_version)
    if before is not None and not passes_over(manifest):
        keep = setting(manifest.job_settings, "publish", "keep")
        archive = setting(manifest.job_settings, "publish", "archive")
        room = archive.get("keep") if isinstance(archive, dict) else None
        follows = shelved(replace(manifest, kept=kept_after(*before)), _at_least_1(keep) or 1, _at_least_1(room))
        if (manifest.shelf, manifest.kept) != follows:
            yield "it keeps other snapshots, or lies on another shelf, than follows from the one before it"
    if located is snapshots.newest:
        there = {each.manifest.version for each in snapshots.manifests if each.manifest.version in snapshots.current}
        named = {manifest.version, *(entry.version for entry in manifest.kept)}
        if there != named:
            yield f"the topic holds snapshots {sorted(there)}, it names {sorted(named)}"


def _at_least_1(value: object) -> int | None:
    return value if type(value) is int and value >= 1 else None


def _kept(entry: Kept, by_version: dict[int, Located]) -> Iterator[str]:
    located = by_version.get(entry.version)
    if located is None:
        return
    model, trainer = len(located.manifest.model.chunks), len(located.manifest.trainer.chunks)
    entry_fields = (entry.shelf, entry.model_chunks, entry.trainer_chunks, entry.created_ms)
    if entry_fields != (located.manifest.shelf, model, trainer, located.manifest.created_ms):
        yield f"describes snapshot {entry.version}, which it keeps, otherwise than that one does"
