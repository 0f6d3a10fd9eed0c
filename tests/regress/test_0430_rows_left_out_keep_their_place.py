"""A scorer of Python rows whose columns leave rows out (missing = "skip") answers each row in its place.

It counted the rows that cannot be decoded, not those left out: the answers behind stood in the places of other rows.
"""

from __future__ import annotations

from typing import Any

import pytest
from given_outputs import echo_plan

from streamtrain import _native
from streamtrain.columns.plan import native_plan
from streamtrain.columns.schema import Schema

COLUMNS = {"a": {"missing": "skip"}, "b": {}, "y": {"role": "label", "missing": 0}}
ROWS: list[Any] = [{"a": at, "b": at} for at in range(9)]
ROWS[2] = ROWS[3] = {"b": 2}  # left out
ROWS[5] = {"a": 5, "b": "x"}  # dead
ROWS[8] = {"b": 8}


@pytest.mark.parametrize("as_columns", [False, True])
def test_rows_left_out(as_columns: bool) -> None:
    schema = Schema.from_columns(COLUMNS, "mean_squared_error")
    plan, layout = echo_plan(schema)
    scorer = _native.RowScorer(plan, native_plan(schema, layout), [("", plan.width, [])], 1 << 30)
    if as_columns:
        answers, failed = scorer.score_columns({name: [row.get(name) for row in ROWS] for name in ("a", "b")})
    else:
        answers, failed = scorer.score_rows(ROWS)
    answered = [at for at, row in enumerate(ROWS) if "a" in row and at != 5]
    assert [at for at, answer in enumerate(answers) if answer is not None] == answered
    for at in answered:
        assert list(answers[at]["probabilities"].values()) == [at, at]
    assert [(row, path) for row, path, _ in failed] == [(2, "$[2].a"), (3, "$[3].a"), (5, "$[5].b"), (8, "$[8].a")]
    assert "leaves such rows out" in failed[0][2] and 'got "x"' in failed[2][2]
