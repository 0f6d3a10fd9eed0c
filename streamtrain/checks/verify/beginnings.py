"""A lineage's first snapshot: fresh parameters at the start of the records, or those of an older one at the newest
positions."""

from __future__ import annotations

from collections.abc import Iterator

from streamtrain.checks.verify.frontier import FirstOffsets, Frontier
from streamtrain.checks.verify.snapshot_check import Snapshots
from streamtrain.checks.verify.terms import setting
from streamtrain.columns.served import enlarged_state, schema_and_model
from streamtrain.compute.snapshot import model_payload, trainer_payload
from streamtrain.errors import StreamtrainError
from streamtrain.job import Job
from streamtrain.job.new_classes import with_new_classes
from streamtrain.record_sources.source_kind import source_of
from streamtrain.topics.chunks import Located
from streamtrain.topics.manifest import Counts, Manifest
from streamtrain.topics.topic import sha256


def check_beginning(snapshots: Snapshots, located: Located, first_offsets: FirstOffsets) -> Iterator[str]:
    """Yields what is wrong with the first snapshot of a lineage."""
    manifest = located.manifest
    where = f"snapshot {manifest.version}, the first of its lineage"
    if manifest.counts != Counts():
        yield f"{where}: has counted rows: {manifest.counts}"
    if manifest.contributions:
        yield f"{where}: is the fold of {len(manifest.contributions)} contributions"
    wrong = _restored if manifest.restored else _imported if manifest.is_import else _fresh
    yield from (f"{where}: {text}" for text in wrong(snapshots, located, first_offsets))


def came_from(manifest: Manifest) -> str:
    """Returns a text that names the snapshot whose parameters were imported."""
    of = manifest.imported[-1]
    return (
        f"snapshot {manifest.version}: its parameters are those of snapshot {of.version} of job {of.job} "
        f"(digest {of.digest.hex()[:12]}…) in cluster {of.cluster}"
    )


def _fresh(snapshots: Snapshots, located: Located, first_offsets: FirstOffsets) -> Iterator[str]:
    manifest = located.manifest
    begun = (manifest.round, manifest.rows_seen, manifest.untrained, manifest.gaps, dict(manifest.metrics))
    identity = manifest.positions.topic_id
    gaps = manifest.gaps if source_of(identity).begins(identity, manifest.gaps) else ()
    if begun != (-1, 0, True, gaps, {}):
        yield f"round, rows seen, untrained, gaps and metrics are {begun!r:.120}, expected a fresh start's"
    if manifest.seed != setting(manifest.job_settings, "train", "seed"):
        yield f"seed {manifest.seed} is not its job's"
    before = [each for each in snapshots.manifests if each.offset < located.offset]
    if manifest.parent is None and before:
        yield f"names no parent, expected snapshot {before[-1].manifest.version}"
    if manifest.imported:
        yield "is not the parameters of an imported snapshot, and says so"
    from_first = setting(manifest.job_settings, "records", "start") == "earliest"
    yield from _begun(manifest, first_offsets, from_first)


def _begun(manifest: Manifest, first_offsets: FirstOffsets, from_first: bool) -> Iterator[str]:
    """Positions where no row has been read."""
    firsts = first_offsets(manifest.positions.topic_id)
    from_first = from_first and firsts is not None
    for partition, (offset, row) in enumerate(manifest.positions.partitions):
        if row or (from_first and (partition >= len(firsts or ()) or offset > (firsts or ())[partition])):
            yield f"begins partition {partition} at {(offset, row)}, which is not where the records begin"


def _imported(snapshots: Snapshots, located: Located, first_offsets: FirstOffsets) -> Iterator[str]:
    manifest, of = located.manifest, located.manifest.imported[-1]
    if any(each.offset < located.offset for each in snapshots.manifests):
        yield "is imported into a job that had snapshots"
    if of.version != manifest.version - 1:
        yield f"comes from snapshot {of.version}, expected {manifest.version - 1}"
    if manifest.untrained != (manifest.round < 0) or (manifest.untrained and manifest.rows_seen):
        yield f"untrained {manifest.untrained}, after round {manifest.round} and {manifest.rows_seen} rows"
    if of.positions != "keep":
        yield from _begun(manifest, first_offsets, of.positions == "beginning")
        if manifest.gaps:
            yield f"has gaps, though it begins at the {of.positions} of the records"


def _restored(snapshots: Snapshots, located: Located, first_offsets: FirstOffsets) -> Iterator[str]:
    manifest = located.manifest
    by_version = {each.manifest.version: each for each in snapshots.manifests}
    assert manifest.restored is not None
    if manifest.restored.version != manifest.version - 1:
        yield f"takes the positions of snapshot {manifest.restored.version}, expected {manifest.version - 1}"
    parent = by_version.get(manifest.parent.version) if manifest.parent else None
    if manifest.parent is None:
        yield "restores no snapshot"
    if parent is not None:
        for name in ("round", "rows_seen", "seed", "untrained", "metrics", "imported"):
            theirs, ours = getattr(parent.manifest, name), getattr(manifest, name)
            if theirs != ours:
                yield f"{name} is {ours!r:.60}, in the restored snapshot {parent.manifest.version} {theirs!r:.60}"
        if parent.manifest.schema != manifest.schema:
            yield from _enlarged(snapshots, parent, manifest)
        elif parent.manifest.model.digest != manifest.model.digest:
            yield f"holds other parameters than snapshot {parent.manifest.version}, which it restores"
    newest = by_version.get(manifest.restored.version)
    if newest is not None:
        yield from _positions(newest, located, first_offsets)


def _enlarged(snapshots: Snapshots, parent: Located, manifest: Manifest) -> Iterator[str]:
    """It is the restored snapshot with new classes of its labels, and with nothing else in its state."""
    version = parent.manifest.version
    try:
        job, settings = Job.from_effective(manifest.job_settings), parent.manifest.job_settings
        if found := job.differences(with_new_classes(job, settings)):
            yield f"does not fit snapshot {version}, which it restores: {'; '.join(found)}"
        elif version in snapshots.current:
            layout = schema_and_model(manifest)[1].layout.published(manifest.workers)
            state = enlarged_state(snapshots.read(parent), layout)
            for payload, expected in (
                (model_payload(layout, state), manifest.model), (trainer_payload(layout, state), manifest.trainer)
            ):  # fmt: skip
                if sha256(payload) != expected.digest:
                    yield f"holds other numbers than snapshot {version} and its new classes"
    except (StreamtrainError, ValueError, LookupError, TypeError, AttributeError) as error:
        yield f"cannot be snapshot {version} with new classes: {str(error).splitlines()[0]}"


def _positions(newest: Located, located: Located, first_offsets: FirstOffsets) -> Iterator[str]:
    """Checks that the positions are those of the newest snapshot, after the accepted gaps."""
    manifest, frontier = located.manifest, Frontier.of(newest.manifest.positions)
    known = newest.manifest.gaps
    if manifest.gaps[: len(known)] != known:
        yield f"has other gaps than snapshot {newest.manifest.version}, whose positions it takes"
    for gap in manifest.gaps[len(known) :]:
        if not frontier.pass_gap(gap):
            yield f"has a gap that begins nowhere: {gap!r:.80}"
    yield from frontier.differences(manifest.positions, first_offsets)
