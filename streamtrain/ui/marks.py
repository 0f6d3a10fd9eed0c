"""The marks on a job's time line: runs and how they ended, deaths, rejected batches, gaps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from streamtrain.topics.control import Control
from streamtrain.topics.manifest import Manifest
from streamtrain.topics.publication_logs import RoundLogs

FAULTS = ("worker died", "batch rejected", "run ended", "gap")  # which are drawn as something to look at


@dataclass(frozen=True)
class Mark:
    """At a time (Unix, ms), and the rows learned by then, -1 where that is not known."""

    at_ms: int
    rows: int
    kind: str
    text: str

    @property
    def is_fault(self) -> bool:
        return self.kind in FAULTS


def of_log(log: RoundLogs, before: RoundLogs | None, rows: int) -> Iterator[Mark]:
    """Yields the marks of a publication. `before` is the publication before it."""
    if before is not None and before.lineage != log.lineage:
        yield Mark(log.created_ms, rows, "fresh start", f"version {log.version} begins a lineage of its own")
    same_run = before is not None and before.run == log.run
    deaths = log.worker_deaths - (before.worker_deaths if before is not None and same_run else 0)
    if deaths > 0:
        many = "a worker" if deaths == 1 else f"{deaths} workers"
        yield Mark(log.created_ms, rows, "worker died", f"{many} died before version {log.version}; another went on")
    rejected = int(np.count_nonzero(log.slots["rejected"]))
    if rejected:
        many = "a batch was" if rejected == 1 else f"{rejected} batches were"
        yield Mark(log.created_ms, rows, "batch rejected", f"{many} not finite before version {log.version}")


def of_control(control: Control) -> Iterator[Mark]:
    """The runs, and the ends of those that did not just stop."""
    for number, entry in sorted(control.runs.items()):
        where = f"run {number} on {entry.host}, process {entry.process}"
        yield Mark(entry.started_ms, -1, "run began", where)
        end = control.ends.get(number)
        if end is not None and end.run == entry.run:
            kind = "run stopped" if end.exit_code == 0 else "run ended"
            yield Mark(end.ended_ms, -1, kind, f"run {number}, exit code {end.exit_code}: {end.reason}")


def of_manifest(manifest: Manifest) -> Iterator[Mark]:
    """Yields marks for a snapshot that does not simply continue the one before: restored, imported, gaps."""
    rows = manifest.rows_seen
    if manifest.restored is not None:
        text = f"version {manifest.version} goes on from the parameters of version {manifest.restored.version}"
        yield Mark(manifest.created_ms, rows, "restored", text)
    if manifest.is_import:
        of = manifest.imported[-1]
        text = f"version {manifest.version} is version {of.version} of job {of.job}, from cluster {of.cluster}"
        yield Mark(manifest.created_ms, rows, "imported", text)
    for gap in manifest.gaps:
        text = ", ".join(f"{name} {value}" for name, value in gap.items() if isinstance(value, int | str))
        yield Mark(manifest.created_ms, rows, "gap", f"records that were gone before they were read: {text}")
