"""The model of a job as the engine takes it, and how large it gets: the engine itself is asked."""

from __future__ import annotations

from typing import Any

from streamtrain.columns.column import Column
from streamtrain.columns.schema import Schema
from streamtrain.compute import optimizers
from streamtrain.compute.model import Model
from streamtrain.compute.options import read
from streamtrain.job.file import JobFile


def schema_of(file: JobFile) -> Schema:
    """Its columns and transforms, compiled. UserMistake with every problem."""
    columns = {name: _bounded(column, file.records.max_decoded_bytes) for name, column in file.columns.items()}
    return Schema.from_columns(columns, file.model.loss, file.transforms, file.records.where)


def _bounded(column: Column, decoded_bytes: int) -> Column:
    """With the bound of all records, where it is of a kind that has one and does not say its own."""
    bound = "max_decoded_bytes"
    takes = bound in column.entry.options.model_fields and bound not in column.model_fields_set
    return column.model_copy(update={bound: decoded_bytes}) if takes else column


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
