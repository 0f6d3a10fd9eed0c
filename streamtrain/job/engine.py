"""The model of a job as the engine takes it, and how large it gets: the engine itself is asked."""

from __future__ import annotations

from typing import Any

from streamtrain.columns.schema import Schema
from streamtrain.compute import optimizers
from streamtrain.compute.model import Model
from streamtrain.compute.options import read
from streamtrain.job.file import JobFile


def schema_of(file: JobFile) -> Schema:
    """Its columns and transforms, compiled. UserMistake with every problem."""
    return Schema.from_columns(file.columns, file.model.loss, file.transforms, file.records.where)


def engine_spec(file: JobFile) -> dict[str, Any]:
    """What compute.model.Model is built from."""
    name = file.optimizer.name
    return {
        "input": schema_of(file).engine_inputs(),
        "layers": file.model.layers,
        "loss": file.model.loss,
        "optimizer": {"name": name, **read(file.optimizer.model_extra or {}, optimizers.options(name))},
        "average_optimizer_state": file.train.average_optimizer_state,
    }


def state_bytes(file: JobFile) -> int:
    """Size of a snapshot but for headers, other statistics and scores, some 100 kB: parameters, the state of the
    optimizer and of transforms.

    Raises UserMistake where the engine cannot build such a model.
    """
    model = Model(engine_spec(file))
    return model.learned_bytes + model.held_bytes
