"""Rows with a cell that no record can hold: each is left out alone, with its place and reason, whatever holds it; the
others keep their bits."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import accumulate, cycle
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from example_format import plain_formats, row_formats, with_schema

import streamtrain
from streamtrain import Job
from streamtrain.columns.record_encoding import Record, Records, rows_of
from streamtrain.columns.rejected import Rejected, Rejecting
from streamtrain.columns.row_plan import RowPlan
from streamtrain.columns.rows import row_counter
from streamtrain.compute.model_spec import MAX_ENTRIES
from streamtrain.errors import RecordError, UserMistake
from streamtrain.files.file_records import FileRecords
from streamtrain.files.placed import placed_records
from streamtrain.files.reading import count_rows
from tests.fitting.example import same_bits

ROWS, BAD = 1500, [0, 1, 2, 700, 1023, 1024, 1499]  # side by side, at the ends of packs, first and last
PLACES = [f"row {row}" for row in BAD]
TABLES: dict[str, Any] = {
    "columns": {"a": {"missing": 0}, "c": {"kind": "category", "buckets": 64, "missing": ""}, "y": {"role": "label"}},
    "model": {"loss": "binary_cross_entropy"},
    "train": {"workers": 1, "round_interval": "off"},
}
JOB = Job.from_tables(TABLES)
SPARSE = Job.from_tables(
    {**TABLES, "columns": {"features": {"kind": "sparse", "buckets": 64}, "label": {"role": "label"}},
     "records": {"format": "libsvm"}}
)  # fmt: skip
GOOD = [{"a": round(math.sin(row), 3), "c": f"ü{row % 7}", "y": row % 2} for row in range(ROWS)]
KEPT = [row for number, row in enumerate(GOOD) if number not in BAD]
SCHEMA = {"a": "number", "c": "text", "y": "number"}
WITH_SCHEMA = [each for each in (with_schema(name, SCHEMA) for name in row_formats()) if not isinstance(each, str)]
FORMATS: list[Any] = [*plain_formats(JOB.schema), *WITH_SCHEMA]
CELLS: dict[str, tuple[str, Any]] = {
    "infinity": ("a", math.inf), "minus infinity": ("a", -math.inf), "list": ("a", [1.0]), "object": ("a", {"v": 1}),
    "surrogate": ("c", "\ud800"), "list of a category": ("c", ["u"]), "list label": ("y", []),
}  # fmt: skip
OBJECTS = {"bytes": ("a", b"x"), "Python's object": ("a", object()), "complex": ("a", 1j), "huge": ("a", 10**400)}
PARTS = {
    "1e400": b'{"a": 1e400, "c": "u", "y": 1}', "no UTF-8": b'{"a": 1, "c": "\xff", "y": 1}', "no object": b"7",
    "cut": b'{"a": 1, "c', "deep": b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "digits": b"1" * 5000,
}  # fmt: skip
CSV = {"no UTF-8": b"1,\xff,1", "behind a quote": b'1,"u"v,1'}


def with_bad(cell: tuple[str, Any]) -> list[dict[str, Any]]:
    return [{**row, cell[0]: cell[1]} if number in BAD else row for number, row in enumerate(GOOD)]


def columns(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: [row[name] for row in rows] for name in ("a", "c", "y")}


def of_programs() -> Iterator[tuple[str, Any]]:
    """Yields the rows in each container that a program may pass, after the container's name."""
    pandas = pytest.importorskip("pandas")
    for name, cell in {**CELLS, **OBJECTS}.items():
        rows = with_bad(cell)
        yield from ((f"dicts, {name}", rows), (f"iterator, {name}", iter(rows)), (f"arrays, {name}", columns(rows)))
        yield f"pandas, {name}", pandas.DataFrame(columns(rows), dtype=object)
    yield "dicts, no row", [None if number in BAD else row for number, row in enumerate(GOOD)]
    numbers = columns(with_bad(CELLS["infinity"]))
    numbers["a"] = np.array(numbers["a"])
    yield from (("array of numbers", numbers), ("arrow", pyarrow.table(numbers)))
    parts = (slice(at, at + 999) for at in range(0, ROWS, 999))
    yield "frames", ({name: cells[part] for name, cells in numbers.items()} for part in parts)


def of_files(folder: Path) -> Iterator[tuple[Path, Job, int | None]]:
    """A file, its job and the number of the line of its first row, where its rows have lines."""

    def written(name: str, bad: bytes, lines: list[bytes], head: bytes, between: bytes, end: bytes) -> Path:
        path = folder / name
        path.write_bytes(head + between.join(bad if row in BAD else line for row, line in enumerate(lines)) + end)
        return path

    lines = [json.dumps(row, ensure_ascii=False).encode() for row in GOOD]
    cells = {name: json.dumps({**GOOD[0], cell[0]: cell[1]}).encode() for name, cell in CELLS.items()}
    for name, bad in {**cells, **PARTS}.items():
        yield written(f"{name}.jsonl", bad, lines, b"", b"\n", b""), JOB, 1
        if name not in ("cut", "deep"):  # an array cannot be read on behind those
            yield written(f"{name}.json", bad, lines, b"[", b",\n", b"]"), JOB, 1
    for name, bad in CSV.items():
        texts = [",".join(map(str, row.values())).encode() for row in GOOD]
        yield written(f"{name}.csv", bad, texts, b"a,c,y\n", b"\n", b"\n"), JOB, 2
    pairs = [f"{row['y']} 3:{row['a']}".encode() for row in GOOD]
    yield written("pairs.svmlight", b"1 3:u", pairs, b"", b"\n", b"\n"), SPARSE, 1
    pyarrow.parquet.write_table(pyarrow.table(columns(with_bad(CELLS["infinity"]))), folder / "rows.parquet")
    yield folder / "rows.parquet", JOB, None
    kinds = {"a": "double", "c": "string", "y": "long"}
    fields = [{"name": name, "type": kind} for name, kind in kinds.items()]
    with (folder / "rows.avro").open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "Row", "fields": fields}, with_bad(("c", "\x01\x01")))
    raw = (folder / "rows.avro").read_bytes()
    (folder / "rows.avro").write_bytes(raw.replace(b"\x01\x01", b"\xff\xff"))
    yield folder / "rows.avro", JOB, 1


def arrays(job: Job, format: Any, values: list[bytes]) -> list[Any]:
    plan = RowPlan(job.schema, format, format)
    return [np.asarray(part).tolist() for cells in plan.decode(values).values()
            for part in (cells if isinstance(cells, tuple) else [cells])]  # fmt: skip


@pytest.mark.parametrize("format", FORMATS)
def test_of_a_program_they_are_in_their_place(format: Any) -> None:
    """Catches a bad row that takes others along, is told under another number, or lies in a record of good rows."""
    expected = arrays(JOB, JOB.plan().bare, list(JOB.plan().records(KEPT)))
    for name, rows in of_programs():
        blocks = Records(JOB.schema, format, "rows", 1024, 1 << 20).blocks(rows, None, False, reject=True)
        found = [each for block in blocks for each in block]
        at = [0, *accumulate(map(rows_of, found))]
        left = [(row, each) for row, each in zip(at, found, strict=False) if isinstance(each, Rejected)]
        assert at[-1] == ROWS and [row for row, _ in left] == BAD, name
        assert [each.place for _, each in left] == PLACES and all("expected" in each.reason for _, each in left), name
        assert arrays(JOB, format, [each.value for each in found if isinstance(each, Record)]) == expected, name


def test_of_files_they_are_dead_letters_in_their_place(tmp_path: Path) -> None:
    """Catches a file that ends at a bad row, an offset that moves, and a row that trains as what it is not."""
    for (path, job, first), named in zip(of_files(tmp_path), cycle(FORMATS), strict=False):
        format = job.records.named if job is SPARSE else named
        counter = row_counter(job.schema, format)
        reported: list[Rejected] = []
        whole = list(placed_records(str(path), job.schema, format, 0, reported.append))
        assert [row for row, _ in whole] == [0, *accumulate(record.rows for _, record in whole)][:-1], path
        assert sum(record.rows for _, record in whole) == count_rows(str(path)) == ROWS, path
        tallies = {row: counter.count([record.value]) for row, record in whole}
        assert [row for row, tally in tallies.items() if tally.dead] == BAD, path
        assert sum(tally.trained for tally in tallies.values()) == len(KEPT), path
        behind = [each for each in whole if each[0] >= 1025]
        assert list(placed_records(str(path), job.schema, format, 1025)) == behind and behind[0][0] == 1025

        places = [f"{path} row {row}" if first is None else f"{path}:{row + first}" for row in BAD]
        rejecting = Rejecting(len(BAD) / ROWS)
        records = FileRecords(job, [str(path)], format=format, rejecting=rejecting)
        found = arrays(job, format, list(records))
        assert [row.place for row in rejecting.found] == [row.place for row in reported] == places, path
        assert found == arrays(job, format, [record.value for row, record in whole if row not in BAD]), path
        with pytest.raises(UserMistake, match=r"got 7 of 1,500; mend them, .* or raise max_rejected") as mistake:
            list(FileRecords(job, [str(path)], rejecting=Rejecting((len(BAD) - 1) / ROWS)))
        assert all(place in str(mistake.value) for place in places[:5])


def test_fit_gives_them_and_counts_each_once(caplog: pytest.LogCaptureFixture) -> None:
    """Catches a share that counts what a decoder refuses, passes that count again, and silence."""
    expected = streamtrain.fit(TABLES, KEPT, epochs=2)
    assert not expected.rejected and expected.rejected.rows == 0
    fitted = streamtrain.fit(TABLES, with_bad(CELLS["list"]), epochs=2)
    assert same_bits(fitted, expected) and [place for place, _ in fitted.rejected] == PLACES
    assert fitted.rejected.rows == 7 and fitted.rejected[3].reason.startswith("$.a: expected number, got list")
    assert fitted.manifest.counts.dead == 2 * 7 and fitted.manifest.counts.trained == 2 * len(KEPT)
    said = [record.message for record in caplog.records if "streamtrain.columns" in record.name]
    assert said[0].startswith("row 0 at $.a: expected number, got list") and "7 of 1,500 rows" in said[-1]
    texts = streamtrain.fit(TABLES, with_bad(("a", "x")), epochs=2, max_rejected=0)  # records hold such a text
    assert same_bits(texts, expected) and [place for place, _ in texts.rejected] == PLACES
    assert texts.manifest.counts.dead == 2 * 7
    bad = {"a": math.inf, "y": 1}
    for share, rows in ((0, [*GOOD[:99], bad]), (0.01, cycle([bad]))):
        with pytest.raises(UserMistake, match=r"row \d+ at \$.a: expected number, got Infinity; .* raise max_rejected"):
            streamtrain.fit(TABLES, rows, max_rejected=share)
    wrong: Any
    for wrong in (-0.1, 1.5, True, "0.1", math.nan):
        with pytest.raises(UserMistake, match="max_rejected: expected a share of the rows from 0 to 1"):
            streamtrain.fit(TABLES, GOOD, max_rejected=wrong)


def test_windows_and_plans_leave_them_out_as_fit_does(tmp_path: Path) -> None:
    """Catches a bad row that ends a window's fit or a plan's call, has another number, or takes others along."""
    expected = streamtrain.fit_window(TABLES, KEPT)
    columns_of, plan = JOB.plan().transform(KEPT), JOB.plan()
    paths = {str(path): path for path, job, _ in of_files(tmp_path) if job is JOB}
    refused = {"a text": with_bad(("a", "x")), "an unknown label": with_bad(("y", 7))}
    for number, (name, rows) in enumerate({**dict(of_programs()), **refused, **paths}.items()):
        source = {"files": rows} if isinstance(rows, Path) else {"rows": rows}
        if not isinstance(rows, Path | Iterator):
            found = plan.transform(rows, errors="leave_out")
            assert [row for each in found.left_out for row in range(each.row_from, each.row_to)] == BAD, name
            assert all(each.reason.startswith("expected ") and each.path[0] == "$" for each in found.left_out), name
            assert all(np.array_equal(found[part], cells) for part, cells in columns_of.items()), name
            with pytest.raises(RecordError, match=r"^row 0 at \$"):
                plan.transform(rows)
        if number % 6 and not name.endswith(("text", "label", "parquet", "avro")):
            continue
        fitted = streamtrain.fit_window(TABLES, **source)
        assert same_bits(fitted, expected) and fitted.rejected.rows == 7, name
        assert fitted.rejected[3].place.endswith(("row 700", ":701", ":702")), name
        assert fitted.manifest.counts[:2] == (len(KEPT), 7), name
    with pytest.raises(UserMistake, match=r"row 0 at \$.a: .*; row 1 .* got 7 of 1,500; .* raise max_rejected"):
        streamtrain.fit_window(TABLES, with_bad(("a", "x")), max_rejected=0.002)


def test_each_row_is_predicted_for_itself() -> None:
    """Catches an answer for all where one row cannot be predicted, and a frame that is still to be computed."""
    fitted = streamtrain.fit({**TABLES, "columns": {**TABLES["columns"], "a": {}}}, GOOD)
    request = {"a": [0.5, math.nan, "x", -0.5], "c": ["u1", "u2", "u3", "u4"]}

    class LazyFrame:
        columns = ("a", "c")

        def collect_schema(self) -> None: ...
        def collect(self) -> Any:
            return request

    rows = [dict(zip(request, row, strict=True)) for row in zip(*request.values(), strict=True)]
    for given in (request, rows, LazyFrame()):
        answers = fitted.predict(given)
        assert [isinstance(each, RecordError) for each in answers] == [False, True, True, False]
        assert answers[0] == fitted.predict(rows[0]) and answers[3] == fitted.predict(rows[3])
        with pytest.raises(RecordError, match=r"row 1 at \$.a"):
            fitted.predict(given, errors="raise")
    with pytest.raises(RecordError, match=r"row at \$.a"):
        fitted.predict(rows[1])


LIBSVM = [
    (b"1 1:1e30 # a comment\r", "$.features: expected a number from -1e18 to 1e18"),
    (b"0 2:1 3:x", '$.features: expected list of pairs of an index or a name and a number, got "3:x" at [1]'),
    (b"1 4000000000:1", "$.features: expected an index below 2147483647, got 4000000000"),
    (b"\xff 1:1", "$.label: expected text, got text that is not UTF-8"),
]
VW = [
    (b"1 no bar", "expected a '|' before the features, got none"),
    (b"1 'tag|a name:1 other:n/a", "$.features: expected list of pairs of an index or a name and a number"),
]


@pytest.mark.parametrize(("good", "form", "bad"), [("1 1:1 # é é é", "libsvm", LIBSVM), ("1 |a 1", "vw", VW)])
def test_a_bad_line_is_its_own_dead_letter_with_the_reason_of_its_decoder(
    tmp_path: Path, good: str, form: str, bad: list[tuple[bytes, str]]
) -> None:
    """Catches a reason that misleads, and a dead letter whose text would be decoded when it is resent."""
    job = Job.from_tables(
        {**TABLES, "columns": {"features": {"kind": "sparse", "buckets": 1 << 18}, "label": {"role": "label"}},
         "records": {"format": form}}
    )  # fmt: skip
    path, lines = tmp_path / f"rows.{form}", [line for line, _ in bad]
    path.write_bytes(b"\n".join([good.encode(), *lines, good.encode()]))
    reported: list[Rejected] = []
    found = list(placed_records(str(path), job.schema, job.records.named, 0, reported.append))
    assert [record.value for _, record in found[1:-1]] == lines
    assert all(row.reason.startswith(reason) for row, (_, reason) in zip(reported, bad, strict=True)), reported
    other = list(placed_records(str(path), job.schema, "json"))
    assert [record.value for _, record in other[1:-1]] == [row.reason.encode() for row in reported]


def test_a_row_larger_than_a_message_is_one_where_no_message_holds_it(tmp_path: Path) -> None:
    rows = [{**GOOD[0], "c": "u" * (1 << 20)}, *GOOD[1:]]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    found = list(placed_records(str(path), JOB.schema, "json"))
    assert sum(record.rows for _, record in found) == ROWS and len(found[0][1].value) > 1 << 20
    rejecting = Rejecting(0)
    assert len(b"".join(FileRecords(JOB, [str(path)], format="json", rejecting=rejecting))) > 1 << 20
    assert rejecting.found.rows == 0 and len(JOB.plan().transform(rows)["a"]) == ROWS
    assert streamtrain.fit(TABLES, rows).rejected.rows == 0


@pytest.mark.full
def test_a_line_of_more_features_than_a_job_may_take_is_cut(tmp_path: Path) -> None:
    table = {"kind": "sparse", "buckets": 64, "most": 2, "cut": True}
    job = Job.from_tables({**TABLES, "columns": {"features": table, "label": {"role": "label"}},
                           "records": {"format": "libsvm"}})  # fmt: skip
    path = tmp_path / "rows.svm"
    path.write_bytes(b"1 3:2 4:5" + b" 1:1" * MAX_ENTRIES)
    ((_, record),) = placed_records(str(path), job.schema, "libsvm")
    assert arrays(job, "libsvm", [record.value]) == arrays(job, "libsvm", [b"1 3:2 4:5"])
