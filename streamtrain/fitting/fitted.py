"""What a `fit` has ended with: the snapshot, which predicts, and how training went."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from streamtrain.clients.scorer import Errors, Scorer
from streamtrain.clients.snapshots import Snapshot, snapshot_of
from streamtrain.columns.served import Served
from streamtrain.compute.module import Module
from streamtrain.compute.torch import TorchModule
from streamtrain.errors import SnapshotError, UserMistake
from streamtrain.fitting.history import History
from streamtrain.kafka.chunks import Stored
from streamtrain.topics import manifest
from streamtrain.topics.topic import sha256

_MANIFEST, _MODEL = "manifest.msgpack", "model.safetensors"


@dataclass(frozen=True)
class Fitted(Snapshot):
    """A snapshot of a fit. Any thread may call, several at the same time.

    `history`: a row for each publication up to this one. `stopped`: why training ended before its rows did, as a
    callback said; "" where it did not.
    """

    scorer: Scorer = field(repr=False, compare=False)
    history: History = field(repr=False, compare=False)
    payload: bytes = field(repr=False, compare=False)  # the model as safetensors
    stopped: str = ""

    def predict(self, rows: Any, errors: Errors = "raise") -> Any:
        """As LiveModel.predict."""
        return self.scorer.predict(rows, errors)

    def save(self, folder: str | Path) -> None:
        """Writes manifest and model (safetensors) into `folder`, in the place of those that may be there. OSError where
        that cannot be."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        for name, content in ((_MODEL, self.payload), (_MANIFEST, manifest.encode(self.manifest))):
            written = place / f"{name}.new"
            written.write_bytes(content)
            os.replace(written, place / name)

    @classmethod
    def load(cls, folder: str | Path, *, module: Any = None) -> Fitted:
        """What save() has written; `module` as for LiveModel. Its history is empty.

        UserMistake where the files cannot be read, SnapshotError where they are none, or not of each other.
        """
        try:
            told, model = ((Path(folder) / name).read_bytes() for name in (_MANIFEST, _MODEL))
        except OSError as error:
            raise UserMistake(f"{error.filename}: cannot be read as a saved model: {error.strerror}") from error
        found = manifest.decode(told)
        if sha256(model) != found.model.digest:
            raise SnapshotError(
                f"{folder}: expected in {_MODEL} the model that {_MANIFEST} names, got another: the digests differ; "
                "save it again"
            )
        network = None if module is None else TorchModule.of(module)
        return fitted_of(Stored(found, sha256(told), 0, model, None), network, History())


def fitted_of(stored: Stored, network: Module | None, history: History, stopped: str = "") -> Fitted:
    """SnapshotError as `snapshot_of`."""
    snapshot = snapshot_of(stored)
    scorer = Scorer(Served.of(stored.manifest, stored.digest, stored.model, network=network))
    held = {each.name: getattr(snapshot, each.name) for each in fields(snapshot)}
    return Fitted(**held, scorer=scorer, history=history, payload=stored.model, stopped=stopped)
