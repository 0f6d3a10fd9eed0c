"""The start of a fit: fresh, or where another snapshot ended."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamtrain.clients.snapshot_arrays import Snapshot
from streamtrain.compute import snapshot as payload
from streamtrain.compute.model import Model
from streamtrain.compute.state import Layout
from streamtrain.errors import SnapshotError, UserMistake
from streamtrain.fitting.fitted import Fitted
from streamtrain.job import Job
from streamtrain.moving.snapshot_file import Origin, SnapshotFile
from streamtrain.record_sources.source_changes import MEMORY
from streamtrain.run.beginning import State, fill_fresh
from streamtrain.run.lineage import Lineage, first_lineage, imported_lineage, misfits
from streamtrain.topics.chunks import Stored
from streamtrain.topics.manifest import Imported, Position, Positions

_ROWS = Positions(MEMORY, (Position(0),))


@dataclass(frozen=True)
class Start:
    """A snapshot to go on from. `cluster`: where it lies, as its file says; `trainer` is None in a followed one."""

    stored: Stored
    cluster: str

    @classmethod
    def of(cls, given: Any, job: Job) -> Start | None:
        """Returns the start from fit's `start`; None without one. Raises UserMistake if it is no snapshot, or if it is
        of another job's columns, model or optimizer."""
        if given is None:
            return None
        found = cls._read(given)
        manifest = found.stored.manifest
        if differences := misfits(job, manifest):
            raise UserMistake(
                f"fit: start: snapshot {manifest.version} of {manifest.job} does not fit the job {job.name}: "
                f"{'; '.join(differences)}; take the columns, model and optimizer that it was trained with"
            )
        return found

    @classmethod
    def _read(cls, given: Any) -> Start:
        if isinstance(given, str | Path):
            with SnapshotFile(Path(given)) as file:
                return cls(file.stored(), file.origin.cluster)
        if isinstance(given, Fitted):
            model, trainer, origin = given.payload, given.trainer, given.origin
        elif isinstance(given, Snapshot):
            model, trainer = payload.encode({**given.parameters, **given.statistics}), None
            origin = Origin("unknown", "", 0, 0)  # a snapshot that is followed does not say where it lies
        else:
            raise UserMistake(
                "fit: start: expected a Fitted, a Snapshot, or the path of what Fitted.save or `streamtrain snapshots "
                f"export` has written, got {type(given).__name__}"
            )
        return cls(Stored(given.manifest, bytes.fromhex(given.digest), 0, model, trainer), origin.cluster)


def begun(job: Job, model: Model, layout: Layout, state: State, start: Start | None) -> Lineage:
    """A new lineage at the first of a program's rows, whose first state is put into `state`."""
    seed = job.train.seed if start is None else start.stored.manifest.seed
    if start is None or start.stored.trainer is None:
        fill_fresh(model, seed, job.train.workers, state)
    if start is None:
        return first_lineage(job, _ROWS)
    stored = start.stored
    manifest = stored.manifest
    try:
        payload.load(layout, state, stored.model, stored.trainer)
    except SnapshotError as error:
        raise UserMistake(f"fit: start: snapshot {manifest.version} of {manifest.job}: {error}") from None
    of = Imported(manifest.job, manifest.version, stored.digest, manifest.lineage, start.cluster, "beginning")
    return imported_lineage(manifest, of, _ROWS, ())
