"""A cell means the same in every format, and in a program's rows and columns: signed zeros, booleans, whole numbers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from example_format import example_format, untyped_formats
from looped import over
from slots import RowSlot, decode_rows

from streamtrain.columns.record_encoding import Records
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from tests.oracles.records import encode_rows, parse

CELLS = [0, 0.0, -0.0, 1, 1.0, -1, -1.0, -1e-60, True, False, "0", "-0", "-0.0", "-0e0", "true", "false", "1"]
KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "number": ({}, "numbers"),
    "text number": ({"parse": "decimal"}, "numbers"),
    "weight": ({"role": "weight"}, "weight"),
    "category": ({"kind": "category", "buckets": 1000}, "categories"),
    "event time": ({"role": "event_time"}, "numbers"),
    "label 0 or 1": ({"role": "label"}, "label"),
    "label number": ({"role": "label", "loss": "mean_squared_error"}, "label"),
    "label count": ({"role": "label", "loss": "poisson"}, "label"),
    "label index": ({"role": "label", "classes": 3, "loss": "softmax_cross_entropy"}, "label"),
    "label names": ({"role": "label", "classes": ["walk", "true", "1"], "loss": "softmax_cross_entropy"}, "label"),
    "label true first": ({"role": "label", "classes": ["true", "false"]}, "label"),
    "label other names": ({"role": "label", "classes": ["walk", "sit"]}, "label"),
}
Fate = tuple[bytes, int] | str  # the cell's block and the newest event time, or that the row is dead


def schema_of(kind: str) -> tuple[Schema, str]:
    given, block = KINDS[kind]
    loss = given.get("loss", "binary_cross_entropy")
    column = {name: value for name, value in given.items() if name != "loss"}
    others: dict[str, Any] = {"x1": {}} | ({"late": {"role": "label"}} if column.get("role") != "label" else {})
    return Schema.from_columns({"x": column, **others}, loss), block


def fate(schema: Schema, block: str, form: str, record: bytes) -> Fate:
    blocks, tally = decode_rows(form, schema, record)
    assert tally.trained + tally.dead == 1
    return (blocks[block].tobytes(), tally.newest_event_time_ms) if tally.trained else "dead"


def of_dict(schema: Schema, block: str, row: dict[str, Any]) -> Fate:
    slot = RowSlot(schema, 1)
    ((count, tally),) = slot.batches(row)
    return (slot.views[block].tobytes(), tally.newest_event_time_ms) if count else "dead"


def written(schema: Schema, form: str, rows: Any) -> bytes | None:
    try:
        ((record,),) = Records(schema, example_format(form), "rows", 9, 1 << 20).blocks(rows, None, False)
    except UserMistake:
        return None
    return record.value


@over("kind", KINDS)
@over("cell", CELLS, ids=repr)
def test_a_cell_means_the_same_everywhere(kind: str, cell: Any) -> None:
    schema, block = schema_of(kind)
    row = {"x": cell, "x1": 1.5, "late": 1}
    expected = fate(schema, block, "json", json.dumps(row).encode())
    assert of_dict(schema, block, row) == expected
    array = [cell] if isinstance(cell, str) else np.array([cell])
    for form in untyped_formats():
        try:
            record = encode_rows(example_format(form), schema, [row])
        except UserMistake:  # it cannot write what others answer
            assert expected == "dead"
        else:
            if isinstance(cell, str) and parse(example_format(form), record).written:
                continue  # all is text there, and a text is what it says
            assert fate(schema, block, form, record) == expected, form
        for rows in (row, [row], {"x": array, "x1": [1.5], "late": [1]}):
            value = written(schema, form, rows)
            found = "dead" if value is None else fate(schema, block, form, value)
            assert found == expected, (form, rows)


@over(("text", "sign"), [("-0", 0), ("0", 0), ("-0.0", 1), ("-0e1", 1), ("-0.00000000000000000", 1), ("-1e-400", 1)])
@over("parse", [None, "decimal"])
@over("behind", [",", " ,", "}"])
def test_a_whole_number_has_no_negative_zero(text: str, sign: int, parse: str | None, behind: str) -> None:
    """Checks numbers seen at a glance and others; in arrays, as labels and weights, as text."""
    columns = {"x": {"parse": parse}, "late": {"role": "label"}, "w": {"role": "weight", "missing": 1}}
    schema = Schema.from_columns(columns, "mean_squared_error")
    cell = f'"{text}"' if parse else text
    ends = "}" if behind == "}" else f'{behind}"z":0}}'
    for name, block, record in (
        ("x", "numbers", f'{{"late":1,"x":{cell}{ends}'), ("x", "numbers", f'{{"late":[1],"x":[{cell}]}}'),
        ("x", "numbers", f"[{cell},1,1]"), ("late", "label", f'{{"x":1,"late":{text}{ends}'),
        ("w", "weight", f'{{"x":1,"late":1,"w":{text}{ends}'),
    ):  # fmt: skip
        blocks, tally = decode_rows("json", schema, record.encode())
        assert tally.trained == 1, (name, tally)
        assert np.signbit(blocks[block][0, 0]) == bool(sign), record
