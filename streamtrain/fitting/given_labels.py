"""Labels that a program gives in arrays, looked at as a whole before anything runs: on Kafka a row of a class that is
none is a dead letter, here it is a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamtrain.columns.forms import Columns, Names, is_columns, read
from streamtrain.columns.kinds.kind import SKIP
from streamtrain.errors import UserMistake
from streamtrain.job import Job


def check_labels(job: Job, rows: Any) -> None:
    """UserMistake for an array or a frame without a row, or with a number where a class is to be that is none; what
    texts and objects mean the decoder says, and what is missing is left to the column."""
    schema = job.schema
    names = Names.of(schema.without_message())
    is_frame = hasattr(rows, "columns") or hasattr(rows, "column_names")
    if not is_frame and not (isinstance(rows, Mapping) and is_columns(dict(rows), names)):
        return
    given = read(rows, names)
    if not isinstance(given, Columns):
        return
    if not given.rows:
        raise UserMistake("rows: expected at least one row, got none")
    if job.records.where is not None or any(schema.missing(each) == SKIP for _, each in schema.columns):
        return  # a row with a wrong label may be one that is left out
    for name, column in schema.labels:
        classes = schema.labelled.classes(name, column)
        cells = given.named.get(name)
        if classes and isinstance(cells, np.ndarray) and cells.dtype.kind in "iuf" and not column.names:
            _check(name, cells, len(classes))


def _check(name: str, cells: np.ndarray[Any, Any], classes: int) -> None:
    wrong = ~((cells >= 0) & (cells < classes) & (cells == np.floor(cells)))
    wrong &= ~np.isnan(cells) if cells.dtype.kind == "f" else True
    if wrong.any():
        row = int(wrong.argmax())
        raise UserMistake(
            f"rows: {name}: expected a class from 0 to {classes - 1}, got {cells[row]} in row {row}, as in "
            f"{int(wrong.sum()):,} of {len(cells):,} rows; mend them, leave them out, or tell the job "
            "how many there are (classes = …)"
        )
