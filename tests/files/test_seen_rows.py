"""What `vectorize --snapshot` writes: to the bit what the snapshot's model is given when it predicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from stateful_examples import cells, together

import streamtrain
from streamtrain import Job
from streamtrain.clients.scorer import Scorer
from streamtrain.columns.row_plan import Rows
from streamtrain.columns.served import Served, Shape
from streamtrain.compute.held import width
from streamtrain.compute.model import aligned
from streamtrain.errors import RecordError, UserMistake
from streamtrain.files.seen_rows import SeenRows

COUNT = 700
FIXED: dict[str, Any] = {"a": {"standardize": True, "missing": 1}, "b": {}, "v": {"kind": "vector", "size": 3,
                         "standardize": True}}  # fmt: skip


@pytest.fixture(scope="module")
def tables() -> dict[str, Any]:
    columns, tables = together()
    columns = {**FIXED, **columns, "y": {"role": "label"}}
    train = {"workers": 2, "batch_rows": 32, "averaging_frequency": 2}
    return {"columns": columns, "transforms": tables, "model": {"loss": "mean_squared_error"}, "train": train}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """Some of them cannot be used; more than a batch of a plan holds, and of a scorer."""
    random = np.random.default_rng(3)
    numbers = random.normal(5, 3, (COUNT, 5)).tolist()
    return [{**row, "a": None if not at % 9 else n[0], "b": "no" if at == 77 else n[1], "v": n[2:], "y": sum(n)}
            for at, (row, n) in enumerate(zip(cells(together()[0], COUNT), numbers, strict=True))]  # fmt: skip


@pytest.fixture(scope="module")
def fitted(tables: dict[str, Any], rows: list[dict[str, Any]]) -> streamtrain.Fitted:
    return streamtrain.fit(tables, [row for row in rows if row["b"] != "no"])


class OneInput:
    """A fitted model, but for that its answer is one element of its input matrix; of an index the index."""

    def __init__(self, fitted: streamtrain.Fitted) -> None:
        self.fitted, self.shape = fitted, Shape(fitted.manifest)
        self.input = self.shape.model.parsed.input

    def served(self, column: int = 0) -> Served:
        state = aligned(self.shape.model.state_bytes)
        views = self.shape.model.views(state)
        for name, array in {**self.fitted.parameters, **self.fitted.statistics}.items():
            views[name][...] = array
            if name.endswith(".embedding"):
                views[name][...] = np.arange(len(array))[:, None]
        views["output.weight"][...] = views["output.bias"][...] = 0
        views["output.weight"][column] = 1
        return Served(self.fitted.manifest, bytes(32), self.shape, state)

    def answers(self, column: int, rows: Any) -> list[float]:
        answers = Scorer(self.served(column)).predict(rows, errors="return")
        return [each["prediction"] for each in answers if not isinstance(each, RecordError)]

    def columns(self) -> Iterator[tuple[str, int, int]]:
        """Name, element and column of the input matrix, of all but the tables."""
        yield from (("a", 0, 0), ("b", 0, 1))
        at = self.input.width - sum(map(width, self.input.held))
        yield from (("v", element, at - 3 + element) for element in range(3))
        for held in self.input.held:
            yield held.name, 0, at
            at += width(held)


def seen_rows(served: Served, tables: dict[str, Any], rows: Any, batch_rows: int = 128) -> tuple[SeenRows, Rows]:
    job = Job.from_tables(tables)
    plan = job.plan()
    plan = type(plan)(job.schema, plan.bare, plan.bare, batch_rows)
    seen = SeenRows(served, job.schema, plan)
    found = [seen(each).kept() for each in plan.batches(plan.encoded(rows), bare=True, copy=False)]
    columns = {part.name: np.concatenate([np.asarray(each[part.name]) for each in found]) for part in seen.parts}
    return seen, Rows(columns, sum(each.count for each in found), [], 0)


def test_it_is_what_the_model_is_given(
    fitted: streamtrain.Fitted, tables: dict[str, Any], rows: list[dict[str, Any]]
) -> None:
    one = OneInput(fitted)
    seen, found = seen_rows(one.served(), tables, rows)
    asked = [{name: cell for name, cell in row.items() if name != "y"} for row in rows]
    assert {part.name for part in seen.parts} == {*tables["columns"], *tables["transforms"]} - {
        name for name, column in tables["columns"].items() if column.get("role") in ("input", "event_time")
    }
    told = {}
    for name, element, column in one.columns():
        got = np.asarray(found[name]).reshape(found.count, -1)[:, element]
        expected = np.array(one.answers(column, asked), np.float32)
        assert got.dtype == next(part.dtype for part in seen.parts if part.name == name)
        assert np.array_equal(got.astype(np.float32), expected), (name, got[:5], expected[:5])
        told[name, element] = len(set(expected.tolist()))
    assert found.count == len(one.answers(0, asked)) > COUNT * 0.8
    assert all(distinct > 1 for distinct in told.values()), told
    as_they_are = Job.from_tables(tables).plan().transform(rows, errors="leave_out")
    assert all(np.array_equal(found[name], as_they_are[name]) for name in ("b", "y"))


def test_a_snapshot_of_other_transforms_is_refused(fitted: streamtrain.Fitted, tables: dict[str, Any]) -> None:
    other = {**tables, "transforms": dict(list(tables["transforms"].items())[:-1])}
    with pytest.raises(UserMistake, match="expected one of the job's columns and transforms, got one of others"):
        seen_rows(OneInput(fitted).served(), other, [])
