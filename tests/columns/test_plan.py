"""Python rows in every form a program holds them in: the same values, checks and reasons as through a record, arrays by
column, message metadata that goes into the message; only the job's columns can be a mistake."""

from __future__ import annotations

import json
from collections import ChainMap
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pandas as pd
import pytest
from example_format import plain_formats
from looped import over
from slots import RowSlot

from streamtrain import RecordError, RecordWriter
from streamtrain.clients.dead_letters import Part, Rows, dead_rows
from streamtrain.clients.topic_reader import read_messages
from streamtrain.columns.formats import format_names, record_format
from streamtrain.columns.forms import Columns, Names, read
from streamtrain.columns.record_encoding import Own, Record, Records
from streamtrain.columns.row_plan import BATCH_ROWS, Lists
from streamtrain.columns.rows import record_rows
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from streamtrain.job import Job
from streamtrain.topics.dead_letters import DeadLetter, DeadRange
from tests.e2e.harness import LiveJob, rows


def test_one_row(schemas: dict[str, Schema]) -> None:
    filler = RowSlot(schemas["simple"].for_requests(), 8)
    assert filler.slot.ctypes.data % 64 == 0
    assert filler.fill_row({"x1": 1.5, "x2": np.float32(2), "carrier": "AA"}) is None
    assert filler.views["numbers"][0].tolist() == [1.5, 2.0] and filler.views["weight"][0] == 1
    dead = filler.fill_row({"x1": "n/a", "x2": 2})
    assert dead is not None and str(dead) == '$.x1: expected number, got "n/a"'
    dead = filler.fill_row({"x1": 1, "x2": object()})
    assert dead is not None and str(dead) == "$.x2: expected number, got object"


@over(
    "value",
    [
        1,
        1.0,
        True,
        np.float64(1),
        np.float32(1),
        np.float16(1),
        np.int8(1),
        np.uint64(1),
        np.bool_(True),
        np.array(1.0),
    ],
)
def test_scalars_of_all_kinds(schemas: dict[str, Schema], value: Any) -> None:
    filler = RowSlot(schemas["simple"], 1)
    assert filler.fill_row({"x1": value, "x2": 0, "late": value}) is None
    assert filler.views["numbers"][0, 0] == 1 and filler.views["label"][0, 0] == 1


@over("value", ["x", [1], {}, b"1", 1j, object(), float("nan"), 10**400, np.float32("inf"), "\ud800"])
def test_values_no_number_column_takes(schemas: dict[str, Schema], value: Any) -> None:
    filler = RowSlot(schemas["simple"], 1)
    dead = filler.fill_row({"x1": value, "x2": 0, "late": 1})
    assert dead is not None and dead.path == "$.x1"


def test_lists_in_column_order(schemas: dict[str, Schema]) -> None:
    requests = schemas["simple"].for_requests()
    filler = RowSlot(requests, 8)
    for row in ([1, 2, "AA"], (1, 2, "AA", None), [1.0, 2.0, "AA", 1]):
        [(count, tally)] = list(filler.batches(row))
        assert (count, tally.trained) == (1, 1)
    [(_, tally)] = list(filler.batches([[1, 2, "AA"], [1, 2]]))
    assert (tally.trained, tally.dead) == (1, 1) and tally.dead_rows[0].path == "$[1]"


def test_columns_and_frames(schemas: dict[str, Schema]) -> None:
    simple = schemas["simple"]
    columns = {"x1": np.arange(100), "x2": np.arange(100.0), "carrier": ["AA", "B6"] * 50, "late": np.ones(100, bool)}
    frames: list[Any] = [columns]
    pandas = pytest.importorskip("pandas", reason="pandas comes with the extra demo")
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow comes with the extra data")
    frames += [pandas.DataFrame(columns), pyarrow.table(columns)]
    filler = RowSlot(simple, 64)
    for frame in frames:
        batches = [
            (count, tally.trained, filler.views["numbers"][0, 0].item()) for count, tally in filler.batches(frame)
        ]
        assert batches == [(64, 64, 0.0), (36, 36, 64.0)]
    holes = pandas.DataFrame({"x1": [1.0, None], "x2": [1, 2], "carrier": [None, "AA"], "late": [1, 0]})
    [(_, tally)] = list(filler.batches(holes))
    assert tally.trained == 1 and tally.dead_rows[0].reason == "expected number, got nothing (missing)"


def test_rows_that_are_none(schemas: dict[str, Schema]) -> None:
    filler = RowSlot(schemas["simple"], 4)
    with pytest.raises(UserMistake, match="expected a dict"):
        list(filler.batches(5))
    assert [count for count, _ in filler.batches([])] == [0]
    with pytest.raises(UserMistake, match="one length"):
        list(filler.batches({"x1": [1, 2], "x2": [1]}))
    with pytest.raises(UserMistake, match=", ".join(format_names())):
        record_format("arvo-x")
    with pytest.raises(UserMistake, match="did you mean 'msgpack'"):
        record_format("msgpak")


NAMES = Names(("x", "name"))
COLUMNS = {"x": [1.5, None, 3.0], "name": ["a", None, "c"]}


def plain(columns: Columns) -> dict[str, Any]:
    """NaN as None, as the encoders have it."""
    listed = {name: list(cells) for name, cells in columns.named.items()}
    return {name: [None if cell is None or cell != cell else cell for cell in cells] for name, cells in listed.items()}


@over(
    "rows",
    [
        COLUMNS,
        {"x": np.array([1.5, np.nan, 3.0]), "name": np.array(["a", None, "c"], dtype=object)},
        {"x": (1.5, float("nan"), 3.0), "name": ["a", None, "c"]},
        {"x": np.ma.masked_invalid([1.5, np.nan, 3.0]), "name": pd.Series(["a", None, "c"])},
        {"note": "ignored", "x": [1.5, None, 3.0], "more": [1], "name": ["a", None, "c"]},
        ChainMap({"x": [1.5, None, 3.0]}, {"name": ["a", None, "c"]}),
        pd.DataFrame(COLUMNS),
    ],
)
def test_columns(rows: Any) -> None:
    for others in (False, True):
        found = read(rows, NAMES, others)
        assert isinstance(found, Columns) and found.rows == 3 and plain(found) == COLUMNS


def test_arrow() -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow comes with the extra data")
    found = read(arrow.table({**COLUMNS, "n": [1, 2, 3]}), NAMES, others=True)
    assert isinstance(found, Columns) and plain(found) == {**COLUMNS, "n": [1, 2, 3]}


def test_other_columns_go_along_where_they_are_plain() -> None:
    times = np.array(["2026-01-01"] * 3, "M8[s]")
    others = {"n": np.arange(3), "half": np.zeros(3, "f2"), "wide": np.zeros((3, 2)), "t": times, "one": [1], "s": "a"}
    for given in ({**COLUMNS, **others}, pd.DataFrame({**COLUMNS, "n": range(3), "t": times})):
        found = read(given, NAMES, others=True)
        assert isinstance(found, Columns) and {"x", "name", "n"} <= found.named.keys() <= {"x", "name", "n", "half"}


def test_rows() -> None:
    rows = [{"x": 1.5}, {"name": "c", "x": np.float64(3)}]
    assert read(rows, NAMES) is rows and read(tuple(rows), NAMES) == rows == read(iter(rows), NAMES)
    assert read([ChainMap(rows[0]), rows[1]], NAMES) == rows
    for row in ({"x": 1.5, "tags": ["a"]}, {"tags": ["a", "b"], "x": 1.5}, {"tags": ["a"]}, {}):
        assert read(row, NAMES) == row
    assert read([], NAMES) == []


def test_a_part_is_a_view() -> None:
    columns = Columns({"x": np.arange(10), "name": list("abcdefghij")}, 10)
    part = columns.part(7, 12)
    assert part.rows == 3 and part.named["name"] == ["h", "i", "j"]
    assert np.shares_memory(part.named["x"], columns.named["x"])
    assert columns.part(0, 10) is columns


class Elsewhere:
    """An array that is elsewhere, as a tensor on a device."""

    def __len__(self) -> int:
        return 2

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("copy it to the host first")


@over(
    ("rows", "message"),
    [
        (5, "expected a dict, a list of dicts, a dict of arrays or a frame, got int"),
        ("text", "got str"),
        (b"bytes", "got bytes"),
        (np.zeros((2, 2)), "got ndarray"),
        ([1], r"rows\[0\]: expected a dict, got int"),
        ([{"x": 1}, None], r"rows\[1\]: expected a dict, got NoneType"),
        ({"x": [1], "name": 2}, "got an array in 'x', none in 'name'"),
        ({"x": [1], "name": [1, 2]}, r"columns of one length, got \{'x': 1, 'name': 2\}"),
        ({"x": np.zeros((2, 2))}, "expected one value a row"),
        ({"x": Elsewhere()}, "column 'x': expected what NumPy can read, got a Elsewhere: copy it to the host first"),
    ],
)
def test_what_is_no_rows(rows: Any, message: str) -> None:
    with pytest.raises(UserMistake, match=message):
        read(rows, NAMES)


TABLES: dict[str, Any] = {
    "columns": {
        "a": {"missing": 5},
        "b": {"kind": "vector", "size": 2},
        "raw": {"role": "input"},
        "c": {"kind": "category", "buckets": 10},
        "l": {"kind": "category", "buckets": 10, "list": True, "missing": ""},
        "w": {"kind": "sparse", "buckets": 100, "missing": 0},
        "y": {"role": "label"},
    },
    "transforms": {"double": {"expr": "raw * 2"}, "seen": {"count": "c"}},
    "records": {"where": "a > 0"},
    "model": {"loss": "mean_squared_error"},
}
ROWS = [
    {"a": 1, "b": [1, 2], "raw": 4, "c": "x", "l": ["u", "v"], "w": [[3, 1.5], [4, 2]], "y": 2},
    {"b": [3, 4], "raw": 0.5, "c": "y", "y": 3},
    {"a": -1, "b": [3, 4], "raw": 0.5, "c": "y", "y": 3},
]


def test_columns_as_the_model_has_them() -> None:
    plan = Job.from_tables(TABLES).plan()
    found = plan.decode([json.dumps(ROWS[:1]).encode(), json.dumps(ROWS[1:]).encode()])
    assert (found.count, found.filtered, found.left_out) == (2, 1, [])
    assert list(found) == ["a", "b", "c", "l", "w", "w.scale", "y", "double", "seen"]
    for name, expected in {"a": [1, 5], "b": [[1, 2], [3, 4]], "y": [2, 3], "double": [8, 1]}.items():
        assert np.array_equal(np.asarray(found[name]), np.array(expected, np.float32)), name
        assert np.asarray(found[name]).dtype == np.float32
    assert len(set(np.asarray(found["seen"]).tolist())) == 2
    words, scale = found["w"], found["w.scale"]
    assert isinstance(words, Lists) and isinstance(scale, Lists)
    assert words.offsets.tolist() == [0, 2, 2] and words.values.tolist() == [3, 4]
    assert scale.values.tolist() == [1.5, 2]
    assert np.asarray(found["c"]).dtype == np.int32 and len(set(np.asarray(found["c"]).tolist())) == 2


def test_a_frame_and_many_batches_give_the_same() -> None:
    plan = Job.from_tables(TABLES).plan()
    many = [{**row, "y": number} for number, row in enumerate(ROWS * BATCH_ROWS)]
    found = plan.transform(many)
    assert found.count == 2 * BATCH_ROWS and found.filtered == BATCH_ROWS
    bags = found["l"]
    assert isinstance(bags, Lists)
    assert bags.offsets[-1] == 2 * BATCH_ROWS == len(bags.values) and (np.diff(bags.offsets)[::2] == 2).all()
    assert np.array_equal(np.asarray(found["y"]), [row["y"] for row in many if row.get("a") != -1])
    decoded = plan.decode([json.dumps(many).encode()])
    assert all(np.array_equal(np.asarray(found[name]), np.asarray(decoded[name])) for name in ("a", "b", "c", "y"))


def test_what_cannot_be_used_is_reported() -> None:
    plan = Job.from_tables(TABLES).plan()
    records = [json.dumps(ROWS).encode(), b'[{"a": 1}, ', json.dumps({**ROWS[0], "b": [1]}).encode()]
    with pytest.raises(RecordError, match=r"record 1, row 0 at \$.*"):
        plan.decode(records)
    found = plan.decode(records, errors="leave_out")
    assert found.count == 2 and [each.record for each in found.left_out] == [1, 1, 2]
    with pytest.raises(UserMistake, match="leave_out"):
        plan.decode(records, errors="skip")  # type: ignore[arg-type]


def test_requests_have_no_label() -> None:
    rows = [{name: cell for name, cell in row.items() if name != "y"} for row in ROWS]
    found = Job.from_tables(TABLES).plan(requests=True).transform(rows)
    assert found.count == 3 and "y" not in found


TAGGED = Schema.from_columns({"x": {}, "y": {"role": "label"}}, "binary_cross_entropy")


@over("name", ["json", "msgpack"])
def test_an_array_in_a_column_the_job_ignores_is_a_cell(name: str) -> None:
    encode = {"json": lambda row: json.dumps(row).encode(), "msgpack": msgpack.packb}[name]
    row = {"tags": ["a", "b"], "x": 1.5, "y": 1}
    assert record_rows(TAGGED, name, encode(row)).rows == [row]
    columns = {"x": [1, 2], "tags": ["a", "b"], "y": [0, 1], "note": "both"}
    turned = [{"x": 1, "tags": "a", "y": 0}, {"x": 2, "tags": "b", "y": 1}]
    assert record_rows(TAGGED, name, encode(columns)).rows == turned


def test_what_no_decoder_reads_changes_nothing_of_what_a_row_is() -> None:
    schema = Schema.from_columns({"x": {}, "id": {"role": "key"}, "y": {"role": "label"}}, "binary_cross_entropy")
    assert record_rows(schema, "json", b'[[1, "a", 0]]').rows == [{"x": 1, "id": "a", "y": 0}]
    assert record_rows(schema, "json", b'[[1, {"a": 2}, 0]]').rows == [{"x": 1, "y": 0}]
    requests = schema.for_requests()
    assert record_rows(requests, "msgpack", msgpack.packb({"x": [1, 2], "y": [0]})).rows == [{"x": 1}, {"x": 2}]
    rows = record_rows(requests, "json", b'[[1, 2], [3, "a", 5]]').rows
    assert rows == [{"x": 1, "id": 2}, {"x": 3, "id": "a", "y": 5}]


def test_a_remainder_is_named_and_a_row_that_cannot_be_read_has_a_path() -> None:
    record = msgpack.packb([{"x": 1, "y": 0}, {"x": 2, "y": b"raw"}, {"x": 3, "y": 1}])
    found = record_rows(TAGGED, "msgpack", record[:-2])
    assert found.rows == [{"x": 1, "y": 0}, {"x": 2, "y": b"raw"}] and found.broken is not None
    (row,) = record_rows(TAGGED, "msgpack", msgpack.packb([[1, 2, 3]])).rows
    assert (row.path, row.reason) == ("$[0]", "$[0]: expected 2 values, got 3")
    assert record_rows(TAGGED, "json", b"").broken == "expected a record, got an empty value"


SCHEMA = Schema.from_columns(
    {
        "x": {},
        "user": {"kind": "category", "buckets": 9, "from": "key", "missing": "-"},
        "tenant": {"kind": "category", "buckets": 9, "from": "headers.t", "missing": "-"},
        "level": {"parse": "decimal", "from": "headers.level", "missing": 0},
        "late": {"role": "label"},
    },
    "binary_cross_entropy",
)
OWN_ROWS = [
    {"x": 1, "user": "a", "tenant": "é", "level": 1.5, "late": 0},
    {"x": 2, "user": "b", "tenant": "é", "level": 1.5, "late": 1},
    {"x": 3, "user": "a", "tenant": "é", "level": 1.5, "late": 0},
    {"x": 4, "user": "a", "tenant": None, "level": 1.5, "late": 1},
    {"x": 5, "late": 1},
]
HEADERS = (("t", "é".encode()), ("level", b"1.5"))
EXPECTED = [(Own(b"a", HEADERS), 2), (Own(b"b", HEADERS), 1), (Own(b"a", HEADERS[1:]), 1), (Own(), 1)]


def build_records(given: Any, format: Any = "json", **settings: Any) -> list[Record]:
    records = Records(SCHEMA, format, "rows", pack=10, most_bytes=settings.pop("most_bytes", 10_000))
    along = {"key": None, "own_keys": True, **settings}
    return [record for block in records.blocks(given, **along) for record in block]


@over("name", plain_formats(SCHEMA))
def test_rows_share_a_record_where_all_around_is_the_same(name: str) -> None:
    columns = {key: [row.get(key) for row in OWN_ROWS] for key in OWN_ROWS[0]}
    for given in (OWN_ROWS, columns, {**columns, "x": np.arange(1, 6)}):
        found = build_records(given, name)
        assert [(record.own, record.rows) for record in found] == EXPECTED
    slot = RowSlot(SCHEMA, 8, name)
    ((_, tally),) = slot.record(found[0].value)
    assert tally.trained == 2 and slot.views["numbers"][:2, 0].tolist() == [1, 3]


def test_a_key_that_is_given_is_that_of_all() -> None:
    found = build_records(OWN_ROWS, key=b"all", own_keys=False)
    assert [(record.own.key, record.rows) for record in found] == [(b"all", 3), (b"all", 1), (b"all", 1)]


def test_what_is_around_counts_in_a_message() -> None:
    row = {**OWN_ROWS[0], "tenant": "t" * 5_000}
    assert len(build_records(row)) == 1
    with pytest.raises(UserMistake, match="at most 5,000 bytes"):
        build_records(row, most_bytes=5_000)


def test_rows_are_sent_again_with_what_stood_around_them() -> None:
    text = 'name = "j"\n[kafka]\nbootstrap.servers = "b"\n[columns]\nx = {}\nlate = { role = "label" }\n'
    job = Job.parse(text + 't = { kind = "category", buckets = 9, from = "headers.t" }\n')
    letter = DeadLetter(
        "j.records", 0, 5, (DeadRange(0, 1, "$.x", "wrong"),), 1, 1, value=b'{"x": 1, "late": 1}',
        headers=(("t", b"a"),),
    )  # fmt: skip
    around = (("t", b"a"),)
    assert dead_rows(job, letter) == Rows([Part([{"x": 1, "late": 1}], None, around, letter.value)])
    assert dead_rows(job, replace(letter, headers=())).still_bad == ["headers.t"]
    named = (*around, ("__value_schema_id", b"\0\0\0\0\7"))  # of the bytes, which go as they are or not at all
    (whole,) = dead_rows(job, replace(letter, headers=named)).parts
    assert (whole.value, whole.headers) == (letter.value, named)
    many = replace(letter, value=b'[{"x": 1, "late": 1, "note": [1]}, {"x": 2, "late": 0}, [1, 2, 3]]', headers=named)
    assert dead_rows(job, many) == Rows([Part([{"x": 1, "late": 1, "note": [1]}], None, around)])
    unreadable = dead_rows(job, replace(many, rows=(DeadRange(1, 3, "$[1]", "wrong"),)))
    assert unreadable.still_bad == ["$[2]"], "nothing is left behind that could be mended"


def test_through_kafka(kafka: Any, tmp_path: Path) -> None:
    columns = 'tenant = { kind = "category", buckets = 9, from = "headers.t" }'
    job = LiveJob(kafka, tmp_path, partitions=1, more_columns=columns)
    given = [{**row, "tenant": f"{number % 3}"} for number, row in enumerate(rows(30))]
    with RecordWriter(job.job, pack=8) as writer:
        writer.write(given, headers={"trace": "x"})
        for row in given:
            writer.write(row)
    assert writer.rows_written == 60
    messages = list(read_messages(job.job, "records", until_end=True))
    found = [dict(message.headers) for message in messages]
    assert {header["t"] for header in found} == {b"0", b"1", b"2"} and sum("trace" in header for header in found) == 6
    assert job.train("--until-end")[-1]["rows"] == 60
