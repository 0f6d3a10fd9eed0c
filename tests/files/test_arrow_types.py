"""Parquet and Arrow files with every type, with pandas and without it: times by their unit, other cells as numbers or
texts, or a mistake that names file, row and column."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import streamtrain
from streamtrain import Job
from streamtrain.cli.first_job.columns import Sample, decide
from streamtrain.errors import UserMistake
from streamtrain.files.blocks import Size
from streamtrain.files.column_selection import ColumnSelection
from streamtrain.files.reading import read_blocks, read_rows

PER_S = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
NOW_S, YEAR_10000_S = 1_700_000_000, 253_402_300_800
LABEL = {"role": "label"}
AT = {"role": "event_time", "missing": 0}
NUMBER = {"missing": -1}
WORD = {"kind": "category", "buckets": 1 << 20, "missing": ""}


@pytest.fixture(params=["pandas", "no pandas"], autouse=True)
def _pandas(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "no pandas":
        monkeypatch.setitem(sys.modules, "pandas", None)


def written(path: Path, cells: Any, **options: Any) -> str:
    table = pa.table({"t": cells, "y": pa.array([row % 2 for row in range(len(cells))])})
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path, row_group_size=3, **options)
    else:
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table, max_chunksize=3)
    return str(path)


def read(path: str, column: dict[str, Any], keyed: bool = False) -> list[Any]:
    """The cells that the model is given of a file; `keyed`: it is read row by row."""
    columns = {"t": column, "a": {"missing": 0}, "y": LABEL} | ({"k": {"role": "key"}} if keyed else {})
    job = Job.from_tables({"columns": columns, "model": {"loss": "binary_cross_entropy"}})
    plan = job.plan()
    records = [
        record for block in read_blocks([path], ColumnSelection(job.schema), Size(4)) for record in plan.records(block)
    ]
    if column is AT:  # which stands beside the model's rows
        cells = [json.loads(record)["t"] for record in records]
        return [each or 0 for cell in cells for each in (cell if isinstance(cell, list) else [cell])]
    found = plan.joined(plan.batches(records, bare=True), "raise")
    return list(np.asarray(found["t"]).tolist())


def numbers() -> Iterator[tuple[pa.Array, list[Any]]]:
    """Columns that a number can be read of, and the numbers."""
    whole = [1, None, -7, 100, 0]
    expected = [1.0, -1.0, -7.0, 100.0, 0.0]
    for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float16(), pa.float32(), pa.float64()):
        yield pa.array(whole, kind), expected
        yield pa.array(whole, kind).fill_null(-1), expected
        yield pa.array(whole, kind).dictionary_encode(), expected
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        yield pa.array([None if cell is None else str(cell) for cell in whole], kind), expected
    for scale in (0, 2, 5):
        for kind in (pa.decimal32(8, scale), pa.decimal64(15, scale), pa.decimal256(50, scale)):
            yield pa.array([None if cell is None else Decimal(cell) for cell in whole], kind), expected
    yield pa.array([None] * 5, pa.null()), [-1.0] * 5
    yield pa.array([True, False, None, True, False]), [1.0, 0.0, -1.0, 1.0, 0.0]
    for unit, per_s in PER_S.items():
        spans = [None if cell is None else int(cell * per_s) for cell in (1, 90.0, None, 3.0, 86_399.0)]
        yield pa.array(spans, pa.duration(unit)), [1.0, 90.0, -1.0, 3.0, 86_399.0]
        yield pa.array([-per_s if cell is None else cell for cell in spans], pa.duration(unit)), [1, 90, -1, 3, 86_399]
        kind = pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
        yield pa.array(spans, kind), [1.0, 90.0, -1.0, 3.0, 86_399.0]
    yield pa.array([1_000_001, 500, None, 0, 1], pa.duration("ns")), [1_000_001e-9, 500e-9, -1.0, 0.0, 1e-9]
    yield pa.array([1_000_001, 500, None, 0, 1], pa.time64("ns")), [1_000_001e-9, 500e-9, -1.0, 0.0, 1e-9]


def times() -> Iterator[tuple[pa.Array, list[int]]]:
    """Columns of times, and the milliseconds."""
    for unit, per_s in PER_S.items():
        for zone in (None, "UTC", "Europe/Berlin", "+02:00"):
            seconds = [NOW_S, None, -1, NOW_S + 1, 0]
            for cells in (seconds, [cell or 0 for cell in seconds]):
                counts = [None if cell is None else cell * per_s + (per_s > 10**3) for cell in cells]
                yield pa.array(counts, pa.timestamp(unit, zone)), [1000 * (cell or 0) for cell in cells]
        if unit != "ns":
            yield pa.array([YEAR_10000_S * per_s, None], pa.timestamp(unit)), [1000 * YEAR_10000_S, 0]
            yield pa.array([YEAR_10000_S * per_s, -YEAR_10000_S * per_s], pa.timestamp(unit, "UTC")), [
                1000 * YEAR_10000_S, -1000 * YEAR_10000_S
            ]  # fmt: skip
    yield pa.array([19_000, None, -1], pa.date32()), [19_000 * 86_400_000, 0, -86_400_000]
    yield pa.array([86_400_000, None, 0], pa.date64()), [86_400_000, 0, 0]
    yield pa.array([10_000_000, 0], pa.date32()), [10_000_000 * 86_400_000, 0]


@pytest.mark.parametrize("end", ["parquet", "arrow"])
@pytest.mark.parametrize("keyed", [False, True])
def test_numbers_and_times_by_their_unit(tmp_path: Path, end: str, keyed: bool) -> None:
    failed = []
    for column, table in ((NUMBER, numbers()), (AT, times())):
        for number, (cells, expected) in enumerate(table):
            try:
                found = read(written(tmp_path / f"{number}.{end}", cells), column, keyed)
            except Exception as error:
                found = [repr(error)]
            if found != [np.float32(cell) if column is NUMBER else cell for cell in expected]:
                failed.append(f"{cells.type} {cells.null_count}: expected {expected}, got {found}")
    assert not failed, "\n".join(failed)


def others() -> Iterator[tuple[Any, dict[str, Any], str]]:
    """Columns of a type that their job's column cannot take, and what the mistake says."""
    span, clock, moment = (pa.array([5], kind("ns")) for kind in (pa.duration, pa.time64, pa.timestamp))
    yield span, AT, r"0 at \$.t: expected .*time"
    yield clock, AT, r"0 at \$.t: expected .*time"
    yield moment, NUMBER, r"0 at \$.t: expected number"
    yield moment, WORD, r"0 at \$.t: expected"
    yield span, WORD, r"0 at \$.t: expected"
    yield pa.array([{"a": 1}]), NUMBER, r"0 at \$.t: expected number"
    yield pa.array([[1]]), NUMBER, r"0 at \$.t: expected number"
    yield pa.array([[1, 2]], pa.list_(pa.int8(), 2)), NUMBER, r"0 at \$.t: expected number"
    yield pa.array([b"\x01"]), NUMBER, r"0 at \$.t: expected number"
    yield pa.array([(1, 2, 3)], pa.month_day_nano_interval()), NUMBER, r"0 at \$.t: expected number"


@pytest.mark.parametrize("keyed", [False, True])
def test_what_does_not_fit_is_named(tmp_path: Path, keyed: bool) -> None:
    for number, (cells, column, expected) in enumerate(others()):
        path = written(tmp_path / f"{number}.arrow", cells)
        with pytest.raises(UserMistake, match=f"{number}.arrow row {expected}") as found:
            read(path, column, keyed)
        print(cells.type, found.value)


def test_a_column_that_the_job_does_not_name_hinders_nothing(tmp_path: Path) -> None:
    tables = {"columns": {"a": {"missing": 0}, "y": LABEL}, "model": {"loss": "binary_cross_entropy"}}
    keyed = {**tables, "columns": {**tables["columns"], "k": {"role": "key"}}}
    selections = [ColumnSelection(Job.from_tables(given).schema) for given in (tables, keyed)]
    for number, cells in enumerate([each for each, *_ in (*numbers(), *times(), *others())]):
        path = written(tmp_path / f"{number}.arrow", cells)
        for selection in selections:
            assert sum(block.row_count for block in read_blocks([path], selection, Size(9))) == len(cells)
        table = pa.table({"t": cells, "a": [1.0] * len(cells), "y": [0] * len(cells)})
        assert number % 40 or streamtrain.fit(tables, table).manifest.rows_seen == len(cells)


def test_nested_cells_are_plain(tmp_path: Path) -> None:
    word = pa.dictionary(pa.int8(), pa.string())
    inner = pa.struct([("at", pa.timestamp("ns")), ("name", word), ("d", pa.time64("ns"))])
    cell = {"at": NOW_S * 10**9, "name": "a", "d": 1_000_000_001}
    at, span = np.datetime64(NOW_S * 10**9, "ns"), np.timedelta64(1_000_000_001, "ns")
    plain = {"at": at, "name": "a", "d": span}
    table = pa.table({
        "s": pa.array([cell, None], inner), "l": pa.array([[cell, None], []], pa.list_(inner)),
        "f": pa.array([[cell["at"], None], None], pa.list_(pa.timestamp("ns"), 2)),
        "m": pa.array([[("a", cell["at"])], None], pa.map_(pa.string(), pa.timestamp("ns"))),
        "v": pa.array([[1.5, 2.5], None], pa.list_(pa.float32(), 2)), "b": pa.array([b"\xff", None], pa.large_binary()),
        "e": pa.array([{}, None], pa.struct([])), "u": pa.array([uuid.UUID(int=1).bytes, None], pa.uuid()),
        "y": [0, 1],
    })  # fmt: skip
    with pa.ipc.new_file(str(tmp_path / "n.arrow"), table.schema) as file:
        file.write_table(table)
    one, two = read_rows(str(tmp_path / "n.arrow"))
    assert one == {
        "s": plain, "l": [plain, None], "f": [at, None], "m": {"a": at}, "v": [1.5, 2.5], "b": b"\xff", "e": {},
        "u": str(uuid.UUID(int=1)), "y": 0,
    }  # fmt: skip
    assert two == {**dict.fromkeys("sfmvbeu"), "l": [], "y": 1}


def test_init_sees_times_and_numbers(tmp_path: Path) -> None:
    rows = 60
    moments = [pa.array([(NOW_S + row) * per_s for row in range(rows)], pa.timestamp(unit))
               for unit, per_s in PER_S.items()]  # fmt: skip
    moments.append(pa.array([YEAR_10000_S + row for row in range(rows)], pa.timestamp("s")))
    scalars = (pa.duration("ns"), pa.time64("ns"), pa.time64("us"), pa.duration("s"), pa.float16())
    spans = [pa.array([row * row * 1001 % 997 for row in range(rows)], kind) for kind in scalars]
    spans.append(pa.array([Decimal(row * row * 7 % 97) / 4 for row in range(rows)], pa.decimal128(9, 2)))
    kinds = {"timestamp": moments, "standardize": spans}
    for expected, columns in kinds.items():
        for number, cells in enumerate(columns):
            path = written(tmp_path / f"{expected}{number}.parquet", cells)
            sample = Sample.of(path, list(read_rows(path)), ["y"], "")
            [found] = [each for each in decide(sample, {}) if each.name == "t"]
            assert expected in (found.settings + found.reason), (cells.type, found)


def test_programs_durations_are_seconds() -> None:
    job = Job.from_tables({"columns": {"t": NUMBER, "y": LABEL}, "model": {"loss": "binary_cross_entropy"}})
    spans = [np.timedelta64(1_500, unit) for unit in ("ms", "us", "ns")]
    spans += [timedelta(seconds=2.5), np.timedelta64("NaT")]
    expected = [1.5, np.float32(1.5e-3), np.float32(1.5e-6), 2.5, -1]
    for given in ([{"t": span, "y": 0} for span in spans], {"t": spans, "y": [0] * 5},
                  {"t": np.array(spans, "timedelta64[ns]"), "y": [0] * 5}):  # fmt: skip
        assert np.asarray(job.plan().transform(given)["t"]).tolist() == expected
