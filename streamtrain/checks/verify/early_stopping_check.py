"""Early stopping, counted again: where it stands at a publication follows from the one before and its own scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from streamtrain.build import build_digest
from streamtrain.checks.verify.logs import Logs
from streamtrain.checks.verify.snapshot_check import Snapshots
from streamtrain.checks.verify.terms import setting
from streamtrain.checks.verify.verify_report import Check
from streamtrain.columns.served import schema_and_model
from streamtrain.compute.early_stopping import NAME
from streamtrain.compute.metrics import names
from streamtrain.compute.quality import HELD_OUT
from streamtrain.errors import StreamtrainError
from streamtrain.job import Job
from streamtrain.job.early_stop import EarlyStop
from streamtrain.topics.manifest import Manifest, Run
from streamtrain.topics.publication_logs import RoundLogs


class _Publication(NamedTuple):
    """The data of a publication. `rows` is None if the manifests that contain it are gone."""

    lineage: str
    run: Run
    metrics: Mapping[str, Any]
    created_ms: int
    rows: int | None

    @classmethod
    def of(cls, manifest: Manifest) -> _Publication:
        return cls(manifest.lineage, manifest.run, manifest.metrics, manifest.created_ms, manifest.rows_seen)


def check_early_stopping(snapshots: Snapshots, logs: Logs) -> Check | None:
    """None where no job said anything of it, and nothing is told."""
    check = Check("early stopping", "where it stands follows from the snapshot before and the new scores")
    manifests = {located.manifest.version: located.manifest for located in snapshots.manifests}
    first_of_run = {manifest.run: manifest for manifest in reversed(manifests.values())}
    by_version = sorted(logs.publications, key=lambda log: log.version)
    last_of_run = {log.run: log.version for log in by_version}
    publications: dict[int, _Publication] = {}
    counted = 0
    stops: dict[Run, _Stops | str] = {}
    for log in by_version:
        before = publications.get(log.version - 1)
        if before is None and log.version - 1 in manifests:
            before = _Publication.of(manifests[log.version - 1])
        if before is not None and before.lineage != log.lineage:
            before = None
        now = publications[log.version] = _publication(log, manifests.get(log.version), before)
        begun = first_of_run.get(log.run)
        if NAME not in now.metrics and (begun is None or setting(begun.job_settings, "train", NAME) is None):
            continue
        counted += 1
        where = f"snapshot {log.version}"
        if begun is None or before is None or now.rows is None:
            check.not_checkable.append(f"{where}: the snapshots that it follows from are gone")
            continue
        if log.run not in stops:
            stops[log.run] = _stops_of(begun)
        if isinstance(stop := stops[log.run], str):
            check.not_checkable.append(f"{where}: {stop}")
            continue
        is_last = last_of_run[log.run] == log.version
        check.problems += [f"{where}: {text}" for text in stop.problems(before.metrics, now, log.version, is_last)]
    check.span = f"{counted} publications"
    return check if counted else None


def _publication(log: RoundLogs, manifest: Manifest | None, before: _Publication | None) -> _Publication:
    if manifest is not None:
        return _Publication.of(manifest)
    rows = None if before is None or before.rows is None else before.rows + log.rows_trained
    return _Publication(log.lineage, log.run, log.metrics, log.created_ms, rows)


class _Stops:
    """The early stopping checks for a run's settings, whose decisions use these figures."""

    def __init__(self, job: Job, figures: list[str]) -> None:
        self._settings, self._figures = job.train.early_stopping, figures

    def problems(self, before: Mapping[str, Any], now: _Publication, version: int, is_last: bool) -> list[str]:
        """`is_last`: its run has published nothing after it; a pass ends with the run."""
        found = now.metrics.get(NAME)
        if self._settings is None:
            return ["says where early stopping stands, its settings have none"]
        if not isinstance(found, dict):
            return ["does not say where early stopping stands"]
        held_out = found.get(HELD_OUT)
        if (held_out is None) != (self._settings.held_out is None):
            return [f"early stopping goes by {held_out!r:.80}, its settings say {self._settings.held_out!r:.80}"]
        try:
            stop = EarlyStop(self._settings, self._figures, held_out)
            passes = found["epochs"] - (stop.stopping(before) or {"epochs": 0})["epochs"]
            again = stop.after(before, now.metrics, version, now.rows or 0, now.created_ms, passes)
            judges = held_out is not None and stop.is_due(now.metrics, passes)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            return [f"early stopping stands at {found!r:.80}, which cannot be: {error!r:.80}"]
        can_be = passes in ((0, 1) if is_last else (0,))
        wrong = [] if can_be else [f"early stopping counts {passes} passes more, which the run did not end with it"]
        if (HELD_OUT in now.metrics) != judges:
            has = "no figures" if judges else "figures, though not judged by them,"
            wrong.append(f"has {has} of rows held out")
        return wrong + [
            f"early stopping has {name} {found.get(name)!r:.80}, counted again it is {again.get(name)!r:.80}"
            for name in sorted({*again, *found}) if again.get(name) != found.get(name)
        ]


def _stops_of(manifest: Manifest) -> _Stops | str:
    """Or why it cannot be known."""
    if manifest.build != build_digest():
        return f"early stopping as build {manifest.build} counts"
    try:
        _, model = schema_and_model(manifest)
        blocks = model.layout.published(manifest.workers).blocks
        return _Stops(Job.from_effective(manifest.job_settings), names({each.name: each.shape for each in blocks}))
    except (StreamtrainError, ValueError) as error:
        return f"its settings are no job's: {str(error).splitlines()[0]}"
