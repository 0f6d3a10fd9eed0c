"""Several labels in a row, of which some, or all, may be missing: the same in every format, by rows and by blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from example_format import plain_formats
from long_tables import in_full_all, some
from looped import over
from slots import decode_rows

from streamtrain.columns.labels import block_of
from streamtrain.columns.schema import Schema
from streamtrain.compute import losses
from streamtrain.compute.losses import LabelKind
from streamtrain.errors import UserMistake
from tests.columns import reference
from tests.columns.conftest import assert_program_rows
from tests.oracles.records import encode_records

SKIP: dict[str, Any] = {"role": "label", "missing": "skip_head"}
LABELS: dict[str, dict[str, Any]] = {
    "late": SKIP, "delay": {**SKIP, "standardize": True}, "mode": {**SKIP, "classes": ["walk", "sit"]},
    "fate": {**SKIP, "classes": ["won", "lost"]}, "stops": SKIP,
}  # fmt: skip
OF_KIND = {losses.label_kind(name): name for name in losses.names()}
KINDS: dict[str, LabelKind] = {"late": "binary", "delay": "number", "mode": "class", "fate": "binary", "stops": "count"}
LOSSES = {label: OF_KIND[kind] for label, kind in KINDS.items()}
COLUMNS: dict[str, Any] = {"x": {}, "w": {"role": "weight", "missing": 1}, "when": {"role": "event_time", "missing": 3}}
FORMATS = plain_formats(Schema.from_columns({"x": {}, "y": {"role": "label"}}, "binary_cross_entropy"))
SCHEMA = Schema.from_columns({**COLUMNS, **LABELS}, "", head_losses=LOSSES)
# other labels that never let a row go, or are made of what else is there, or stand around the record
OTHERS: dict[str, Schema] = {
    "all": SCHEMA,
    "one stands in": Schema.from_columns({**COLUMNS, **LABELS, "late": {"role": "label", "missing": 1}}, "",
                                         head_losses=LOSSES),
    "one skips": Schema.from_columns({**COLUMNS, **LABELS, "delay": {"role": "label", "missing": "skip"}}, "",
                                     head_losses=LOSSES),
    "some made": Schema.from_columns(
        {**COLUMNS, "a": {"role": "input"}, "mode": LABELS["mode"]}, "",
        {"late": {"expr": "a > 1", **SKIP}, "log_x": {"log1p": "x", "missing": "skip"}}, head_losses={
            "mode": LOSSES["mode"], "late": LOSSES["late"]}),
    "all made": Schema.from_columns(
        {**COLUMNS, "a": {"role": "input"}, "b": {"role": "input"}}, "",
        {"late": {"expr": "a > 1", **SKIP}, "delay": {"expr": "b", **SKIP}},
        head_losses={"late": LOSSES["late"], "delay": LOSSES["delay"]}),
    "some around": Schema.from_columns({**COLUMNS, "late": {**SKIP, "from": "headers.late", "parse": "decimal"},
                                        "delay": SKIP}, "", head_losses={"late": "focal", "delay": "huber"}),
    "all around": Schema.from_columns({**COLUMNS, "late": {**SKIP, "from": "headers.late", "parse": "decimal"}}, "",
                                      head_losses={"late": "focal"}),
}  # fmt: skip


def rows(count: int, seed: int, missing: float) -> list[dict[str, Any]]:
    """`missing`: the share of labels that are."""
    random = np.random.default_rng(seed)
    kinds = {"late": [0, 1], "delay": [1.5, -2.0], "mode": ["walk", "sit"], "fate": ["lost", "won"], "stops": [0, 3.0],
             "a": [0.0, 5.0], "b": [1.0, 2.0]}  # fmt: skip
    result = [{"x": float(at), "w": 1.0 + at % 3, "when": at} for at in range(count)]
    for row in result:
        for name, cells in kinds.items():
            row[name] = None if random.random() < missing else cells[random.integers(2)]
    return result


@in_full_all()
@over("which", OTHERS)
@over("format_name", FORMATS)
def test_both_decoders_leave_out_the_rows_without_any_label(
    format_name: str, which: str, same: Callable[..., reference.Reference], take: Callable[..., Any]
) -> None:
    schema = OTHERS[which]
    names = {name for name, _ in schema.columns}
    trained = filtered = 0
    count = 60 if take is some else 300
    for seed, missing in enumerate((0.0, 0.1, 0.6, 0.97, 1.0)):
        given = [{name: cell for name, cell in row.items() if name in names} for row in rows(count, seed, missing)]
        for around in (reference.Around(), reference.Around(headers=(("late", b"1"),))):
            for record in encode_records(format_name, schema, given):
                found = same(schema, format_name, record, 1024, around)
                assert same(schema, format_name, record, 7, around).rows == found.rows
                trained += found.trained
                filtered += len(found.filtered)
    assert trained > count
    assert (filtered > 0) == (which != "one stands in")


@over("format_name", FORMATS)
def test_a_label_that_is_missing_is_no_number_and_no_class(format_name: str) -> None:
    given = [{"x": 1.0, "late": 1, "delay": None, "mode": None, "fate": None, "stops": 2},
             {"x": 2.0, "late": None, "delay": 3.0, "mode": "sit", "fate": "lost", "stops": None},
             {"x": 3.0, "late": None, "delay": None, "mode": None, "fate": None, "stops": None}] * 20  # fmt: skip
    for record in encode_records(format_name, SCHEMA, given):
        blocks, tally = decode_rows(format_name, SCHEMA, record)
        assert (tally.trained, tally.filtered, tally.dead) == (40, 20, 0)
        found = {name: blocks[block_of(name)][:2, 0] for name in LABELS}
        assert found["mode"].tolist() == [-1, 1] and found["mode"].dtype == np.int32
        floats = {"late": [1, np.nan], "delay": [np.nan, 3], "fate": [np.nan, 1], "stops": [2, np.nan]}
        for name, cells in floats.items():
            np.testing.assert_array_equal(found[name], cells)


def test_a_programs_rows_are_the_same() -> None:
    given = [{name: cell for name, cell in row.items() if name in dict(SCHEMA.columns)} for row in rows(40, 3, 0.6)]
    (record,) = encode_records("json", SCHEMA, given)
    columns = {name: [row[name] for row in given] for name in given[0]}
    assert assert_program_rows(SCHEMA, record, given, columns).filtered


def test_requests_have_no_label() -> None:
    schema = SCHEMA.for_requests()
    (record,) = encode_records("json", SCHEMA, [{"x": 1.0, "late": "n/a"}, {"x": 2.0}])
    assert decode_rows("json", schema, record)[1].trained == 2
    assert {block.name for block in schema.block_specs()} == {block.name for block in SCHEMA.block_specs()}


def test_a_schema_of_heads_is_written_and_read_again() -> None:
    again = Schema.from_dict(SCHEMA.to_dict())
    assert again == SCHEMA and again.digest() == SCHEMA.digest()
    assert again.engine_inputs() == SCHEMA.engine_inputs()
    assert [(each["name"], each["classes"]) for each in again.engine_inputs()["labels"]] == [
        ("late", 2), ("delay", 0), ("mode", 2), ("fate", 2), ("stops", 0),
    ]  # fmt: skip


@over(
    ("columns", "losses", "problem"),
    [
        ({"late": {"role": "label"}, "delay": {"role": "label"}}, {},
         "columns.delay: only one column can be the label, and late is; of several each has a head, "
         "[model.heads.delay]"),
        ({"late": {"role": "label"}, "delay": {"role": "label"}}, {"late": "focal"},
         "columns.delay: expected a head for each label, [model.heads.delay], got none"),
        ({"late": {"role": "label"}}, {"late": "focal", "delays": "huber"},
         'heads.delays: expected a column of that name with role = "label", got none'),
        ({"late": SKIP}, {}, 'columns.late: missing: "skip_head" is for a label that has a head, [model.heads.late]'),
        ({"late": {"role": "label"}, "y": {"missing": "skip_head"}}, {},
         'columns.y: missing: "skip_head" is for one of several labels (role = "label")'),
        ({"late": {"role": "label", "classes": ["a", "b", "c"]}, "delay": {"role": "label"}},
         {"late": "focal", "delay": "huber"},
         "columns.late: classes: expected 2 for loss 'focal', got 3; more are for softmax_cross_entropy"),
        ({"late": {"role": "label"}, "mode": {"role": "label"}}, {"late": "huber", "mode": "softmax_cross_entropy"},
         "columns.mode: classes: expected their names, or how many, for loss 'softmax_cross_entropy', got none"),
    ],
)  # fmt: skip
def test_labels_and_heads_that_do_not_fit_are_refused(columns: Any, losses: Any, problem: str) -> None:
    with pytest.raises(UserMistake) as error:
        Schema.from_columns({"x": {}, **columns}, "binary_cross_entropy", head_losses=losses)
    assert problem in str(error.value).splitlines()


def test_what_reads_the_label_needs_one_alone() -> None:
    table = {"of": {"target_mean": "zone"}}
    columns = {"zone": {"kind": "category", "buckets": 5}, "late": {"role": "label"}}
    Schema.from_columns(columns, "huber", table)
    with pytest.raises(UserMistake, match=r"transforms\.of: expected a label that is a number, .* got several labels"):
        Schema.from_columns(columns, "", table, head_losses={"late": "huber"})
