"""The result of a `fit`: the snapshot, which predicts, and how training went."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from streamtrain.clients.scorer import Errors, Scorer
from streamtrain.clients.snapshot_arrays import Snapshot, snapshot_of
from streamtrain.columns.rejected import RejectedRows
from streamtrain.columns.served import Served
from streamtrain.compute.torch import TorchModule
from streamtrain.fitting.fit_history import History
from streamtrain.moving.snapshot_file import SAVED, Origin, SnapshotFile, head
from streamtrain.record_sources.source_changes import MEMORY
from streamtrain.topics import manifest
from streamtrain.topics.chunks import Stored
from streamtrain.topics.topic import sha256

_T = TypeVar("_T", bound="Fitted")


@dataclass(frozen=True)
class Fitted(Snapshot):
    """A snapshot of a fit. Any thread may call, several at the same time. It can be pickled and copied: what is loaded
    predicts the same bits, in another process too.

    `history`: a row for each publication up to this one. `stopped`: why training ended before its rows did, as a
    callback said; "" where it did not. `rejected`: the rows that could not be used, in their order, each with its place
    (a row's number from 0, a line of a file) and its reason: the first 10,000; `rejected.rows` counts all of them.
    """

    scorer: Scorer = field(repr=False, compare=False)
    history: History = field(repr=False, compare=False)
    payload: bytes = field(repr=False, compare=False)  # parameters and statistics as safetensors
    trainer: bytes = field(repr=False, compare=False)  # optimizer state and scores as safetensors
    network: TorchModule | None = field(repr=False, compare=False)
    origin: Origin = field(repr=False, compare=False)
    stopped: str = ""
    rejected: RejectedRows = field(default_factory=RejectedRows, repr=False, compare=False)

    def predict(self, rows: Any, errors: Errors | None = None) -> Any:
        """Predicts as LiveModel.predict, but each of many rows has its own answer. A row that cannot be predicted has
        a RecordError in its place, and raises it only with errors="raise". One dict alone raises it."""
        return self.scorer.predict(rows, errors)

    def save(self, folder: str | Path) -> None:
        """Writes the whole snapshot into `folder` as model.snapshot, in the place of one that may be there: whatever
        dies at any moment, load() finds the one or the other. It is a file as `streamtrain snapshots export` writes it.
        OSError where it cannot be written."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        written = place / f"{SAVED}.new"
        with written.open("wb") as file:
            for part in (head(self.origin, self.manifest, manifest.encode(self.manifest)), self.payload, self.trainer):
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(written, place / SAVED)

    @classmethod
    def load(cls, path: str | Path, *, module: Any = None) -> Fitted:
        """Reads what save() has written into a folder, or a file of `streamtrain snapshots export`; `module` as for
        LiveModel. Its history and `rejected` are empty.

        UserMistake where the file cannot be read, SnapshotError where it is none, or is damaged.
        """
        with SnapshotFile(Path(path)) as file:
            stored, origin = file.stored(), file.origin
        network = None if module is None else TorchModule.of(module)
        return fitted_of(Fitted, stored, network, History(), origin=origin)

    def __reduce__(self) -> Any:
        """Pickles the bytes that it was made of; unpickling computes the rest again."""
        given = {each.name for each in fields(Snapshot)} | {"scorer", "network", "payload", "trainer"}
        rest = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in given}
        network = None if self.network is None else self.network.to_dict()
        return _unpickled, (type(self), manifest.encode(self.manifest), self.payload, self.trainer, network, rest)


def _unpickled(kind: type[_T], value: bytes, model: bytes, trainer: bytes, network: Any, rest: dict[str, Any]) -> _T:
    found = manifest.decode(value)
    module = None if network is None else TorchModule.from_dict(network)
    return fitted_of(kind, Stored(found, sha256(value), 0, model, trainer), module, **rest)


def fitted_of(
    kind: type[_T],
    stored: Stored,
    network: TorchModule | None,
    history: History,
    origin: Origin | None = None,
    **more: Any,
) -> _T:
    """A Fitted of a snapshot with its trainer state. `origin`: None: it was trained in this program's memory. `more`:
    the other fields of `kind`. SnapshotError as `snapshot_of`."""
    assert stored.trainer is not None
    snapshot = snapshot_of(stored)
    scorer = Scorer(Served.of(stored.manifest, stored.digest, stored.model, network=network))
    return kind(
        **{each.name: getattr(snapshot, each.name) for each in fields(snapshot)},
        scorer=scorer, history=history, payload=stored.model, trainer=stored.trainer, network=network,
        origin=origin or Origin(MEMORY, MEMORY, stored.offset, stored.manifest.created_ms), **more,
    )  # fmt: skip
