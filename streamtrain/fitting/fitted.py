"""What a `fit` has ended with: the snapshot, which predicts, and how training went."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from streamtrain.clients.scorer import Errors, Scorer
from streamtrain.clients.snapshot import Snapshot, snapshot_of
from streamtrain.columns.rejected import RejectedRows
from streamtrain.columns.served import Served
from streamtrain.compute.module import Module
from streamtrain.compute.torch import TorchModule
from streamtrain.errors import SnapshotError, UserMistake
from streamtrain.fitting.history import History
from streamtrain.topics import manifest
from streamtrain.topics.chunks import Stored
from streamtrain.topics.topic import sha256

_MANIFEST = "manifest.msgpack"


@dataclass(frozen=True)
class Fitted(Snapshot):
    """A snapshot of a fit. Any thread may call, several at the same time.

    `history`: a row for each publication up to this one. `stopped`: why training ended before its rows did, as a
    callback said; "" where it did not. `rejected`: the rows that could not be used, in their order, each with its place
    (a row's number from 0, a line of a file) and its reason: the first 10,000; `rejected.rows` counts all of them.
    """

    scorer: Scorer = field(repr=False, compare=False)
    history: History = field(repr=False, compare=False)
    payload: bytes = field(repr=False, compare=False)  # the model as safetensors
    stopped: str = ""
    rejected: RejectedRows = field(default_factory=RejectedRows, repr=False, compare=False)

    def predict(self, rows: Any, errors: Errors | None = None) -> Any:
        """As LiveModel.predict, but that of many rows each has an answer of its own: a row that cannot be predicted has
        a RecordError in its place, and raises it only with errors="raise". One dict alone raises it."""
        return self.scorer.predict(rows, errors)

    def save(self, folder: str | Path) -> None:
        """Writes manifest and model (safetensors, named by its digest) into `folder`, in the place of those that may be
        there: at any moment, whatever dies, load() finds these or those. OSError where that cannot be."""
        place, model = Path(folder), _model_name(self.manifest)
        place.mkdir(parents=True, exist_ok=True)
        for name, content in ((model, self.payload), (_MANIFEST, manifest.encode(self.manifest))):
            written = place / f"{name}.new"
            with written.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(written, place / name)
        for other in place.glob(_model_name()):
            if other.name != model:
                other.unlink(missing_ok=True)

    @classmethod
    def load(cls, folder: str | Path, *, module: Any = None) -> Fitted:
        """Reads what save() has written; `module` as for LiveModel. Its history is empty, and `rejected`.

        UserMistake where the files cannot be read, SnapshotError where they are none, or not of each other.
        """
        try:
            told = (Path(folder) / _MANIFEST).read_bytes()
            found = manifest.decode(told)
            model = (Path(folder) / _model_name(found)).read_bytes()
        except OSError as error:
            raise UserMistake(f"{error.filename}: cannot be read as a saved model: {error.strerror}") from error
        if sha256(model) != found.model.digest:
            raise SnapshotError(
                f"{folder}: expected in {_model_name(found)} the model that {_MANIFEST} names, got another: the "
                "digests differ; save it again"
            )
        network = None if module is None else TorchModule.of(module)
        return fitted_of(Stored(found, sha256(told), 0, model, None), network, History())


def _model_name(told: manifest.Manifest | None = None) -> str:
    """Of the file that holds this model; a pattern of all such files."""
    return f"model-{'*' if told is None else told.model.digest.hex()[:16]}.safetensors"


def fitted_of(
    stored: Stored, network: Module | None, history: History, stopped: str = "", rejected: RejectedRows | None = None
) -> Fitted:
    """SnapshotError as `snapshot_of`."""
    snapshot = snapshot_of(stored)
    scorer = Scorer(Served.of(stored.manifest, stored.digest, stored.model, network=network))
    held = {each.name: getattr(snapshot, each.name) for each in fields(snapshot)}
    left_out = RejectedRows() if rejected is None else rejected
    return Fitted(**held, scorer=scorer, history=history, payload=stored.model, stopped=stopped, rejected=left_out)
