"""Small differences of large numbers come through decoding, standardising, transforms and records; only then they are
float32."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from example_format import row_formats, with_schema
from slots import decode_rows

import streamtrain
from streamtrain.columns.formats import Format
from streamtrain.columns.row_plan import RowPlan
from streamtrain.columns.schema import Schema
from streamtrain.compute import stateful
from streamtrain.compute.model import Model
from streamtrain.compute.moments import named
from streamtrain.compute.seen import Seen
from tests.oracles.records import encode_records, oracle

FROM, COUNT = 1e9, 100
X = FROM + np.arange(COUNT)
Y: dict[str, Any] = {"role": "label"}
LOSS = "mean_squared_error"
WIDE = {"x": {"standardize": True}, "raw": {}, "y": Y}


def cells(schema: Schema, format: Format, records: list[bytes]) -> Any:
    return RowPlan(schema, format, format, COUNT).decode(records)


def test_large_numbers_are_standardized_as_doubles() -> None:
    """float32 knows 1e9 and 1e9 + 64, and nothing between."""
    schema = Schema.from_columns(WIDE, LOSS)
    model = Model({"input": schema.engine_inputs(), "loss": LOSS, "optimizer": {"name": "adam"}})
    state = model.initial_state(1)
    moments = named(model.views(state)["standardize.numbers"])
    moments["count"][0], moments["mean"][0], moments["squares"][0] = COUNT, X.mean(), ((X - X.mean()) ** 2).sum()
    plan = RowPlan(schema, "json", "json", 2 * COUNT)
    plan.decode([json.dumps(dict.fromkeys(WIDE, x)).encode() for x in X.tolist()])
    seen = Seen(model, plan.layout, state).numbers(plan.slot)[:COUNT]
    np.testing.assert_allclose(seen[:, 0], (X - X.mean()) / X.std(), rtol=1e-5)
    assert (seen[:, 1] == X.astype(np.float32)).all()


def test_a_fit_learns_from_small_differences_of_large_numbers() -> None:
    x = np.random.default_rng(0).integers(0, 100, 4_000)
    tables = {
        "columns": {"x": {"standardize": True}, "y": Y}, "model": {"loss": "binary_cross_entropy"},
        "optimizer": {"name": "adam", "learning_rate": 0.05}, "train": {"batch_rows": 64, "round_interval": "off"},
    }  # fmt: skip
    found = streamtrain.fit(tables, {"x": FROM + x, "y": (x > 49).astype(float)})
    assert found.manifest.metrics["total"]["auc"] > 0.99


@pytest.mark.parametrize("name", [name for name in stateful.names() if stateful.get(name).reads == "float"])
def test_transforms_with_state_read_doubles(name: str) -> None:
    columns = {"x": {"role": "input"}, "at": {"role": "event_time"}, "y": Y}
    settings = {"half_life": "1s"} if "half_life" in stateful.options(name) else {}
    schema = Schema.from_columns(columns, LOSS, {"made": {name: "x", **settings}})
    found = {block.name: block.dtype for block in schema.block_specs()}
    assert found["held.numbers"] == "f64"
    records = [json.dumps({"x": float(x), "at": 1, "y": 0}).encode() for x in X]
    assert cells(schema, "json", records)["made"].tolist() == X.tolist()


FIELDS = dict.fromkeys(("x", "first", "y"), "number")


@pytest.mark.parametrize("name", row_formats())
@pytest.mark.parametrize("column", [{}, {"standardize": True}])
def test_transforms_read_what_records_hold(name: str, column: Any) -> None:
    """A producer rounds no number that is standardised or transformed, and a decoder hands it on as it came."""
    columns = {"x": column, "first": {"role": "input"}, "y": Y}
    schema = Schema.from_columns(columns, LOSS, {"away": {"difference": ["x", "first"]}})
    format = with_schema(name, FIELDS)
    rows = [{"x": x, "first": FROM, "y": 0.0} for x in X.tolist()]
    found = cells(schema, format, encode_records(format, schema, rows))
    assert found["away"].tolist() == list(range(COUNT))
    assert found["x"].dtype == (np.float64 if column else np.float32)
    assert (found["x"] == X.astype(found["x"].dtype)).all()


@pytest.mark.parametrize("name", row_formats())
@pytest.mark.parametrize("column", [{}, {"standardize": True}])
def test_numbers_are_too_large_in_every_format(name: str, column: Any) -> None:
    """Side by side they have ways of their own."""
    schema = Schema.from_columns({"x": column, "first": column, "y": Y}, LOSS)
    format = with_schema(name, FIELDS)
    rows = [{"x": x, "first": -x, "y": 0.0} for x in (9e17, 1e19, 5.0)]
    tallies = [decode_rows(format, schema, record)[1] for record in encode_records(format, schema, rows)]
    assert sum(tally.trained for tally in tallies) == 2
    assert ["1e18" in dead.reason for tally in tallies for dead in tally.dead_rows] == [True]


def test_what_stands_in_for_a_cell_is_a_double_too() -> None:
    """Checks columns of float32 as well, which are transposed together."""
    columns = {"x": {"standardize": True, "missing": FROM + 7}, "y": Y}
    schema = Schema.from_columns(columns, LOSS)
    x = np.ma.MaskedArray(np.zeros(COUNT, np.float32), np.arange(COUNT) % 2)
    record = oracle("packed").encode(schema, {"x": x, "y": np.zeros(COUNT, np.float32)})
    assert cells(schema, "packed", [record])["x"].tolist() == [0.0, FROM + 7] * (COUNT // 2)
    assert cells(schema, "json", [b'{"y": 0}'])["x"].tolist() == [FROM + 7]
