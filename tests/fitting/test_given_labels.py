"""Labels in arrays are checked before anything runs."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain import ParallelWrapper, UserMistake, fit

CLASSES = {"role": "label", "classes": 3}
JOB: dict[str, Any] = {"columns": {"x": {}, "y": CLASSES}, "model": {"loss": "softmax_cross_entropy"}}
BINARY: dict[str, Any] = {"columns": {"x": {}, "y": {"role": "label"}}}


class Begins:
    def on_begin(self, job: Any) -> None:
        raise AssertionError("it has begun")


def labels(*values: float, dtype: str = "f8") -> dict[str, Any]:
    return {"x": np.zeros(len(values)), "y": np.array(values, dtype)}


@over(
    ("job", "rows", "message"),
    [
        (JOB, labels(0, 2, 3, -1), "rows: y: expected a class from 0 to 2, got 3.0 in row 2, as in 2 of 4 rows; mend"),
        (JOB, labels(4), "tell the job how many there are (classes = …)"),
        (JOB, labels(0, 2, -1, dtype="i8"), "got -1 in row 2"),
        (JOB, labels(0, 1.5), "got 1.5 in row 1"),
        (JOB, labels(0, np.inf), "got inf in row 1"),
        (BINARY, labels(0, 1, 2, dtype="u1"), "expected a class from 0 to 1, got 2 in row 2"),
        (JOB, labels(), "expected at least one row, got none"),
    ],
)
@over("frame", [False, True])
def test_a_class_that_there_is_not_is_refused_before_anything_runs(
    job: Any, rows: dict[str, Any], message: str, frame: bool
) -> None:
    pandas = pytest.importorskip("pandas")
    given = pandas.DataFrame(rows) if frame else rows
    for train in (partial(fit, job), ParallelWrapper(job, workers=1).fit):
        with pytest.raises(UserMistake) as found:
            train(given, callbacks=[Begins()])
        assert message in str(found.value)


def test_missing_labels_and_names_are_left_to_the_column() -> None:
    skipped = {"columns": {"x": {}, "y": {**CLASSES, "missing": "skip"}}, "model": JOB["model"]}
    assert fit(skipped, labels(0, np.nan, 2)).manifest.rows_seen == 2
    named = {"columns": {"x": {}, "y": {"role": "label", "classes": ["7", "8"]}}, "model": JOB["model"]}
    assert fit(named, labels(7, 8, dtype="i8")).manifest.rows_seen == 2
    assert fit(BINARY, {"x": np.zeros(2), "y": np.array([True, False])}).manifest.rows_seen == 2


def test_rows_that_are_left_out_may_have_any_label() -> None:
    filtered = {**BINARY, "records": {"where": "x <= 0.5"}}
    assert fit(filtered, {"x": np.array([0.0, 1, 0]), "y": np.array([1, 7, 0])}).manifest.rows_seen == 2
    skipped = {"columns": {"x": {"missing": "skip"}, "y": {"role": "label"}}}
    assert fit(skipped, {"x": np.array([0.0, np.nan, 0]), "y": np.array([1, 7, 0])}).manifest.rows_seen == 2
