"""Files of vectorised rows: the same again when they are read, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamtrain import Job
from streamtrain.columns.row_plan import Lists, RowPlan, Rows
from streamtrain.errors import UserMistake
from streamtrain.files.forms import file_form, form_of, suffixes
from streamtrain.files.reading import read_rows
from streamtrain.files.writing import Stopped, write_rows

COLUMNS: dict[str, Any] = {
    "x": {}, "v": {"kind": "vector", "size": 3}, "c": {"kind": "category", "buckets": 2**28}, "y": {"role": "label"},
}  # fmt: skip
LISTS = {"l": {"kind": "category", "buckets": 9, "list": True}}
ROWS = [{"x": i / 3, "v": [i, 0.1, -i], "c": f"w{i % 5}", "y": i % 2, "l": ["a"] * (i % 3)} for i in range(9_000)]


def plan_of(columns: dict[str, Any]) -> RowPlan:
    return Job.from_tables({"columns": columns, "model": {"loss": "binary_cross_entropy"}}).plan()


def batches(plan: RowPlan, rows: list[dict[str, Any]]) -> Iterator[Rows]:
    return plan.batches(plan.encoded(rows), bare=True, copy=False)


@pytest.mark.parametrize("end", suffixes("Writer"))
def test_what_is_written_is_read_again(tmp_path: Path, end: str) -> None:
    plan, path = plan_of(COLUMNS), tmp_path / f"rows{end}"
    expected = plan.transform(ROWS)
    for rows in (ROWS, ROWS[:1], []):
        assert write_rows(str(path), plan.parts, batches(plan, rows)) == len(rows)
        found = list(read_rows(str(path)))
        assert len(found) == len(rows)
        for name, cells in expected.items():
            got = np.array([row[name] for row in found], np.asarray(cells).dtype).reshape(np.shape(cells[: len(rows)]))
            assert np.array_equal(got, cells[: len(rows)]), name
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("end", suffixes("Writer"))
def test_lists(tmp_path: Path, end: str) -> None:
    plan, path = plan_of({**COLUMNS, **LISTS}), tmp_path / f"rows{end}"
    if not file_form(form_of(str(path), "Writer")).Writer.LISTS:
        with pytest.raises(UserMistake, match=r"cells may be lists, such as \.parquet, for l"):
            write_rows(str(path), plan.parts, batches(plan, ROWS))
        assert list(tmp_path.iterdir()) == []
        return
    write_rows(str(path), plan.parts, batches(plan, ROWS))
    lists = plan.transform(ROWS)["l"]
    assert isinstance(lists, Lists)
    found = [row["l"] for row in read_rows(str(path))]
    assert [len(each) for each in found] == np.diff(lists.offsets).tolist()
    assert [value for each in found for value in each] == lists.values.tolist()


@pytest.mark.parametrize("end", suffixes("Writer"))
def test_a_file_is_there_whole_or_as_it_was(tmp_path: Path, end: str) -> None:
    plan, path = plan_of(COLUMNS), tmp_path / f"rows{end}"

    def stopped() -> Iterator[Rows]:
        for number, batch in enumerate(batches(plan, ROWS)):
            if number:
                raise Stopped
            yield batch

    for before in (None, b"as it was"):
        if before is not None:
            path.write_bytes(before)
        with pytest.raises(Stopped):
            write_rows(str(path), plan.parts, stopped())
        assert [each.read_bytes() for each in tmp_path.iterdir()] == ([] if before is None else [before])
    with pytest.raises(UserMistake, match="cannot be written"):
        write_rows(str(tmp_path / "no" / f"rows{end}"), plan.parts, batches(plan, ROWS))
