"""The model of a job as the engine takes it, and how large it gets: the engine itself is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from streamtrain.columns import formats
from streamtrain.columns.column import Column
from streamtrain.columns.schema import Schema
from streamtrain.compute import losses, optimizers, schedules
from streamtrain.compute.model_spec import input_shape
from streamtrain.compute.module_spec import inputs_of
from streamtrain.job.file import JobFile


def schema_of(file: JobFile) -> Schema:
    """Compiles the file's columns and transforms. Raises UserMistake with every problem."""
    of_records: dict[str, Any] = {"max_decoded_bytes": file.records.max_decoded_bytes}
    with suppress(ValueError):   # of the format's settings, which is said at their line
        of_records |= formats.of_columns(file.records.named)
    columns = {name: _with(column, of_records) for name, column in file.columns.items()}
    heads = {name: head.loss.name for name, head in file.model.heads.items()}
    records = file.records
    return Schema.from_columns(
        columns, file.model.loss.name, file.transforms, records.where, heads, records.missing_words
    )


def _with(column: Column, of_records: Mapping[str, Any]) -> Column:
    """With what is said of all records, where it is of a kind that takes it and does not say its own."""
    taken = column.entry.options.model_fields.keys() - column.model_fields_set
    completed: Column = column.model_copy(update={name: value for name, value in of_records.items() if name in taken})
    return completed


def engine_spec(file: JobFile, schema: Schema) -> dict[str, Any]:
    """Returns what compute.model.Model is built from. `schema`: that of the file."""
    name = file.optimizer.name
    torch = {} if file.model.torch is None else {"torch": file.model.torch}
    schedule = schedules.kept(file.optimizer.schedule.name, file.optimizer.schedule.model_extra or {})
    return {
        **torch,
        **({} if schedule is None else {"schedule": schedule}),
        **({} if file.model.graph is None else {"graph": graph_of(file.model.graph, schema)}),
        "input": schema.engine_inputs(),
        "layers": file.model.layers,
        **_minimised(file, schema),
        "optimizer": optimizers.normal(name, file.optimizer.model_extra or {}),
        "average_optimizer_state": file.train.average_optimizer_state,
        "averaging": file.train.averaging.spec,
    }


def _minimised(file: JobFile, schema: Schema) -> dict[str, Any]:
    """The loss, or the heads in the order of their labels."""
    heads = []
    for name, column in schema.labels:
        head = file.model.heads.get(name)
        given = file.model.loss if head is None else head.loss
        loss = losses.in_order(given.name, given.model_extra or {}, schema.labelled.classes(name, column))
        if head is None:
            return {"loss": loss}
        of = {} if head.of is None else {"of": head.of}
        heads.append({"name": name, "loss": loss, "weight": head.weight, **of})
    return {"heads": heads}


def graph_of(tables: Sequence[Mapping[str, Any]], schema: Schema) -> dict[str, Any]:
    """The computation graph as the engine takes it: with the columns that its vertices may read by name."""
    inputs = inputs_of(input_shape({"input": schema.engine_inputs()}), schema.numbers, 1)
    columns = [[name, part.start, part.stop] for name, part in inputs.columns.items() if part.stop > part.start]
    return {"columns": columns, "vertices": [dict(table) for table in tables]}
