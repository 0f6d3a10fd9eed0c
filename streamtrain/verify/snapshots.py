"""Guarantees 3 to 5 on the snapshots the topic holds: whole, in a chain, finite."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from streamtrain.compute.snapshot import decode
from streamtrain.errors import SnapshotError
from streamtrain.kafka.chunks import Located
from streamtrain.kafka.snapshots import SnapshotTopic
from streamtrain.topics.rounds import RoundLog
from streamtrain.verify.report import Check


def check_whole(topic: SnapshotTopic, manifests: list[Located]) -> Check:
    """Every chunk there with its digest, versions rising, every number finite."""
    check = Check("snapshots", "whole, digests match, versions never go down, every number finite")
    check.span = (
        f"{len(manifests)} snapshots, versions {manifests[0].manifest.version} to {manifests[-1].manifest.version}"
    )
    for located in manifests:
        version = located.manifest.version
        try:
            stored = topic.load(located, trainer=True)
        except SnapshotError as error:
            check.problems.append(str(error))
            continue
        for name, array in {**decode(stored.model), **decode(stored.trainer or b"")}.items():
            check.expect(bool(np.isfinite(array).all()), f"snapshot {version}: {name} holds a NaN or infinity")
    by_offset = sorted(manifests, key=lambda located: located.offset)
    for before, after in pairwise(by_offset):
        check.expect(
            before.manifest.version < after.manifest.version,
            f"version {after.manifest.version} at offset {after.offset} comes after {before.manifest.version}",
        )
    return check


def check_lineage(manifests: list[Located], logs: list[RoundLog]) -> Check:
    """Each snapshot names its parent; runs never go back."""
    check = Check("lineage", "every snapshot names its parent and its run; a replaced run publishes nothing more")
    digests = {log.version: log.digest for log in logs}
    held = {located.manifest.version: located for located in manifests}
    for located in manifests:
        manifest = located.manifest
        log_digest = digests.get(manifest.version)
        check.expect(
            log_digest in (None, located.digest), f"snapshot {manifest.version}: the round log names another digest"
        )
        parent = manifest.parent
        begins = manifest.untrained and manifest.round < 0  # a fresh start passes over what is damaged
        if parent is None:
            check.expect(begins, f"snapshot {manifest.version} names no parent")
            continue
        follows = parent.version == manifest.version - 1 or begins or manifest.restored is not None
        check.expect(follows, f"snapshot {manifest.version} names {parent.version} as its parent")
        known = held.get(parent.version)
        same = known is None or (known.digest, known.offset) == (parent.digest, parent.offset)
        check.expect(same, f"snapshot {manifest.version}: its parent {parent.version} has another digest or offset")
        check.expect(
            digests.get(parent.version) in (None, parent.digest), f"snapshot {manifest.version}: unknown parent digest"
        )
    _check_runs(check, logs)
    check.span = f"{len(manifests)} snapshots, {len(logs)} round logs"
    return check


def _check_runs(check: Check, logs: list[RoundLog]) -> None:
    for before, after in pairwise(logs):
        check.expect(
            after.run.number > before.run.number or after.run == before.run,
            f"snapshot {after.version} is of run {after.run.number}, "
            f"{before.version} before it of run {before.run.number}",
        )
        check.expect(
            after.version > before.version, f"round log of snapshot {after.version} follows that of {before.version}"
        )
