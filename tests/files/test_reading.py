"""Rows of files: every form gives the same cells, what is written is read again, and is what a model is given."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from stateful_examples import cells, together

import streamtrain
from streamtrain import Job, _native
from streamtrain.clients.scorer import Scorer
from streamtrain.columns.row_plan import Lists, RowPlan, Rows
from streamtrain.columns.served import Served, Shape
from streamtrain.compute.model import aligned
from streamtrain.compute.stateful_inputs import width
from streamtrain.errors import RecordError, UserMistake
from streamtrain.files import source
from streamtrain.files.blocks import Size
from streamtrain.files.column_selection import ColumnSelection
from streamtrain.files.forms import file_form, form_names, form_of, suffixes
from streamtrain.files.reading import read_blocks, read_rows
from streamtrain.files.seen_rows import SeenRows
from streamtrain.files.writing import Stopped, write_rows

COLUMNS: dict[str, Any] = {
    "x": {"missing": -1},
    "n": {"missing": 0},
    "word": {"kind": "category", "buckets": 64, "missing": ""},
    "code": {"kind": "category", "buckets": 64},
    "at": {"role": "event_time", "missing": 0},
    "late": {"role": "label"},
}
TABLES = {"columns": COLUMNS, "model": {"loss": "binary_cross_entropy"}}
ROWS = [
    {"x": 1.5, "n": 7, "word": "a", "code": "007", "at": "2026-11-22T02:10:00Z", "late": True, "other": "z"},
    {"x": None, "n": -3, "word": 'say "b,\nc"', "code": "1", "at": "2026-11-22 02:10:00+01:00", "late": False},
    {"x": 1e-7, "n": 0, "word": None, "code": "é", "at": None, "late": True, "other": None},
    {"x": 123456.75, "n": 2**40, "word": "x" * 300, "code": "\u2028", "at": "2026-11-23", "late": False},
] * 3


def texts(rows: list[dict[str, Any]], end: str = "\n") -> str:
    """Returns the rows as CSV."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, ["x", "n", "word", "other", "code", "at", "late"], lineterminator=end)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def tabled() -> pyarrow.Table:
    return pyarrow.Table.from_pylist([{name: row.get(name) for name in (*COLUMNS, "other")} for row in ROWS])


def written(folder: Path) -> dict[str, Path]:
    """The rows as files, by what they are."""
    names = ("rows.csv", "rows.jsonl", "rows.parquet", "rows.arrow", "rows.arrows")
    table, lines, columns, file_, stream = paths = [folder / name for name in names]
    table.write_text(texts(ROWS), newline="")
    lines.write_text("\n\n".join(json.dumps(row) for row in ROWS))
    pyarrow.parquet.write_table(tabled(), columns, row_group_size=5)
    with pyarrow.ipc.new_file(file_, tabled().schema) as file:
        file.write_table(tabled(), max_chunksize=5)
    with pyarrow.ipc.new_stream(stream, tabled().schema) as file:
        file.write_table(tabled(), max_chunksize=7)
    return dict(zip(names, paths, strict=True))


def decoded(
    job: Job, paths: list[str], size: Size | None = None, form: str | None = None, errors: Any = "raise"
) -> Rows:
    """Returns the rows that the model would get from files."""
    plan = job.plan()
    blocks = read_blocks(paths, ColumnSelection(job.schema), size or Size(4_096), form)
    return plan.joined(plan.batches((record for block in blocks for record in plan.records(block)), bare=True), errors)


def same(one: Rows, other: Rows) -> None:
    assert one.count == other.count and list(one) == list(other)
    assert all(np.array_equal(np.asarray(one[name]), np.asarray(other[name])) for name in one)


@pytest.fixture
def job() -> Job:
    return Job.from_tables(TABLES)


@pytest.mark.parametrize("piece", [1, 7, 64, 1 << 20])
def test_every_form_gives_the_same_cells(job: Job, tmp_path: Path, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_PIECE_BYTES", piece)
    given = [{**row, "at": ms} for row, ms in zip(ROWS, [1795313400000, 1795309800000, None, 1795392000000] * 3,
                                                    strict=True)]  # fmt: skip
    expected = job.plan().transform(given)
    assert expected.count == len(ROWS) and np.isin([1.5, -1], expected["x"]).all()
    for path in written(tmp_path).values():
        same(decoded(job, [str(path)]), expected)
        same(decoded(job, [str(path)], Size(5, 3)), expected)
    half = decoded(job, [str(path) for path in written(tmp_path).values()], Size(5, limit=4 * len(ROWS) + 2))
    assert half.count == 4 * len(ROWS) + 2
    for limit in (1, 7, 11):
        assert decoded(job, [str(tmp_path / "rows.csv")], Size(6, 3, limit)).count == limit


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", "\r"])
def test_csv_by_native_code_is_what_it_is_row_by_row(job: Job, tmp_path: Path, end: str) -> None:
    plain = [{**row, "word": "b"} for row in ROWS]
    odd = [{"x": cell, "n": " 5", "word": cell, "code": "c", "at": at, "late": "TRUE"}
           for cell in ("+4", "-0", ".5", "1e3", "1E400", "0x10", "1_0", "inf", "nAn", "",
                        *_native.MISSING_WORDS, " NA ", " ")
           for at in ("1790000000000", " 2026-01-01", "x", "-5", "NULL")]  # fmt: skip
    path = tmp_path / "rows.csv"
    path.write_text(("\ufeff" + texts([*plain, *odd], end)).removesuffix(end), newline="")
    native = decoded(job, [str(path)], errors="leave_out")
    keyed = Job.from_tables({**TABLES, "columns": {**COLUMNS, "id": {"role": "key"}}})
    assert ColumnSelection(keyed.schema).by_rows and not ColumnSelection(job.schema).by_rows
    slow = decoded(keyed, [str(path)], errors="leave_out")
    same(native, slow)
    missing = _native.MISSING_WORDS
    assert np.asarray(native["x"]).tolist().count(-1) == 3 + 4 * (3 + len(missing))  # of ROWS; where `at` is a time
    assert [each[:2] for each in native.left_out] == [each[:2] for each in slow.left_out] and native.left_out


def test_standard_input(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in (texts(ROWS), "\n".join(json.dumps(row) for row in ROWS)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert decoded(job, ["-"]).count == len(ROWS)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert decoded(job, ["-"]).count == 0
    with pytest.raises(UserMistake, match=r"standard input: expected one of .*csv.*, got parquet"):
        decoded(job, ["-"], form="parquet")


def test_mistakes_name_the_file_and_the_row(job: Job, tmp_path: Path) -> None:
    files = {
        "a.csv": ('x,late\n1,0\n"2\n",1\n3,1,4\n', r"a.csv:5: expected 2 cells, got 3"),
        "b.csv": ('x,late\n1,0\n\n"2,1\n', r"b.csv:4: expected the closing quote of a cell, got the file's end"),
        "c.csv": ("x,word,late\n1,ä,0\n2,\udcff,1\n", r"c.csv:3 at \$.word: expected .*, got text that is not UTF-8"),
        "d.csv": ("a,b\n1,2\n", r"d.csv: expected some of the job's columns x, .*; got a, b"),
        "e.jsonl": ('{"late": 1}\n\n{"late": 1', r"e.jsonl:3: expected a JSON object, got"),
        "f.jsonl": ('{"late": 1}\n{"x": [1], "late": 1}\n', r"f.jsonl:2 at \$.x: expected number, got list"),
        "j.json": ('[{"late": 1}]\n{"late": 1}', r"j.json: expected nothing behind the end of the array, got '{"),
        "k.json": ('[{"late": ' + "[" * 10**5, r"k.json: element 1 of the array: expected .* no deeper within each"),
        "g.parquet": ("x", r"g.parquet: not a Parquet file"),
        "h.arrow": ("ARROW1", r"h.arrow: not an Arrow file"),
    }
    for name, (text, expected) in files.items():
        (tmp_path / name).write_bytes(text.encode(errors="surrogateescape"))
        with pytest.raises(UserMistake, match=expected):
            decoded(job, [str(tmp_path / name)])
    table = pyarrow.table({"x": [[1.0], [2.0]], "late": [0, 1]})
    pyarrow.parquet.write_table(table, tmp_path / "i.parquet")
    with pytest.raises(UserMistake, match=r"i.parquet row 0 at \$.x: expected number, got"):
        decoded(job, [str(tmp_path / "i.parquet")])


def test_without_pyarrow_the_extra_is_named(job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = written(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert decoded(job, [str(paths["rows.csv"])]).count == len(ROWS)
    for name in ("rows.parquet", "rows.arrow"):
        with pytest.raises(UserMistake, match=r"needs pyarrow: pip install 'streamtrain\[data\]'"):
            decoded(job, [str(paths[name])])


def test_rows_as_they_are(tmp_path: Path) -> None:
    assert {name for name in form_names() if hasattr(file_form(name), "rows")} == set(form_names())
    for path in written(tmp_path).values():
        found = list(read_rows(str(path)))
        assert len(found) == len(ROWS) and found[1]["word"] == ROWS[1]["word"] and found[2]["word"] is None


OUT_COLUMNS: dict[str, Any] = {
    "x": {}, "v": {"kind": "vector", "size": 3}, "c": {"kind": "category", "buckets": 2**28}, "y": {"role": "label"},
}  # fmt: skip
LISTS = {"l": {"kind": "category", "buckets": 9, "list": True}}
OUT_ROWS = [{"x": i / 3, "v": [i, 0.1, -i], "c": f"w{i % 5}", "y": i % 2, "l": ["a"] * (i % 3)} for i in range(9_000)]


def plan_of(columns: dict[str, Any]) -> RowPlan:
    return Job.from_tables({"columns": columns, "model": {"loss": "binary_cross_entropy"}}).plan()


def batches(plan: RowPlan, rows: list[dict[str, Any]]) -> Iterator[Rows]:
    return plan.batches(plan.records(rows), bare=True, copy=False)


@pytest.mark.parametrize("end", suffixes("Writer"))
def test_what_is_written_is_read_again(tmp_path: Path, end: str) -> None:
    plan, path = plan_of(OUT_COLUMNS), tmp_path / f"rows{end}"
    expected = plan.transform(OUT_ROWS)
    for rows in (OUT_ROWS, OUT_ROWS[:1], []):
        assert write_rows(str(path), plan.parts, batches(plan, rows)) == len(rows)
        found = list(read_rows(str(path)))
        assert len(found) == len(rows)
        for name, column in expected.items():
            whole = np.asarray(column)[: len(rows)]
            got = np.array([row[name] for row in found], whole.dtype).reshape(whole.shape)
            assert np.array_equal(got, whole), name
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("end", suffixes("Writer"))
def test_lists(tmp_path: Path, end: str) -> None:
    plan, path = plan_of({**OUT_COLUMNS, **LISTS}), tmp_path / f"rows{end}"
    if not file_form(form_of(str(path), "Writer")).Writer.LISTS:
        with pytest.raises(UserMistake, match=r"cells may be lists, such as \.parquet, for l"):
            write_rows(str(path), plan.parts, batches(plan, OUT_ROWS))
        assert list(tmp_path.iterdir()) == []
        return
    write_rows(str(path), plan.parts, batches(plan, OUT_ROWS))
    lists = plan.transform(OUT_ROWS)["l"]
    assert isinstance(lists, Lists)
    found = [row["l"] for row in read_rows(str(path))]
    assert [len(each) for each in found] == np.diff(lists.offsets).tolist()
    assert [value for each in found for value in each] == lists.values.tolist()


@pytest.mark.parametrize("end", suffixes("Writer"))
def test_a_file_is_there_whole_or_as_it_was(tmp_path: Path, end: str) -> None:
    plan, path = plan_of(OUT_COLUMNS), tmp_path / f"rows{end}"

    def stopped() -> Iterator[Rows]:
        for number, batch in enumerate(batches(plan, OUT_ROWS)):
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
        write_rows(str(tmp_path / "no" / f"rows{end}"), plan.parts, batches(plan, OUT_ROWS))


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
        at = self.input.width - sum(map(width, self.input.stateful))
        yield from (("v", element, at - 3 + element) for element in range(3))
        for stateful in self.input.stateful:
            yield stateful.name, 0, at
            at += width(stateful)


def seen_rows(served: Served, tables: dict[str, Any], rows: Any, batch_rows: int = 128) -> tuple[SeenRows, Rows]:
    job = Job.from_tables(tables)
    plan = job.plan()
    plan = type(plan)(job.schema, plan.bare, plan.bare, batch_rows)
    seen = SeenRows(served, job.schema, plan)
    found = [seen(each).kept() for each in plan.batches(plan.records(rows), bare=True, copy=False)]
    columns = {part.name: np.concatenate([np.asarray(each[part.name]) for each in found]) for part in seen.parts}
    return seen, Rows(columns, sum(each.count for each in found), [], 0)


def test_it_is_what_the_model_is_given(
    fitted: streamtrain.Fitted, tables: dict[str, Any], rows: list[dict[str, Any]]
) -> None:
    one = OneInput(fitted)
    seen, found = seen_rows(one.served(), tables, rows)
    request_rows = [{name: cell for name, cell in row.items() if name != "y"} for row in rows]
    assert {part.name for part in seen.parts} == {*tables["columns"], *tables["transforms"]} - {
        name for name, column in tables["columns"].items() if column.get("role") in ("input", "event_time")
    }
    counts = {}
    for name, element, column in one.columns():
        got = np.asarray(found[name]).reshape(found.count, -1)[:, element]
        expected = np.array(one.answers(column, request_rows), np.float32)
        assert got.dtype == next(part.dtype for part in seen.parts if part.name == name)
        assert np.array_equal(got.astype(np.float32), expected), (name, got[:5], expected[:5])
        counts[name, element] = len(set(expected.tolist()))
    assert found.count == len(one.answers(0, request_rows)) > COUNT * 0.8
    assert all(distinct > 1 for distinct in counts.values()), counts
    as_they_are = Job.from_tables(tables).plan().transform(rows, errors="leave_out")
    assert all(np.array_equal(found[name], np.asarray(as_they_are[name], found[name].dtype)) for name in ("b", "y"))


def test_a_snapshot_of_other_transforms_is_refused(fitted: streamtrain.Fitted, tables: dict[str, Any]) -> None:
    other = {**tables, "transforms": dict(list(tables["transforms"].items())[:-1])}
    with pytest.raises(UserMistake, match="expected one of the job's columns and transforms, got one of others"):
        seen_rows(OneInput(fitted).served(), other, [])
