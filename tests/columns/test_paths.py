"""Columns that stand inside of others, or in the message around a record: where a path leads, what is missing there,
what is wrong with one; every format and kind against the slow reading; Debezium's change events."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgpack
import numpy as np
import pytest
from example_format import row_formats, with_schema
from long_tables import in_full_all
from looped import over
from slots import RowSlot, decode_rows

from streamtrain import _native
from streamtrain.columns.forms import Names, is_columns
from streamtrain.columns.names import expand_both
from streamtrain.columns.paths import nested, place, steps
from streamtrain.columns.rows import record_rows
from streamtrain.columns.schema import Schema
from streamtrain.job import Job
from tests.columns.conftest import NESTED, every_format
from tests.columns.reference import Around
from tests.docs.test_pages import ROOT, blocks
from tests.oracles.records import encode_rows, oracle

LATE = {"role": "label"}
FORMS = ["json", "msgpack", "packed"]


@over("form", FORMS)
@over("count", [1, 3])
def test_columns_are_given_by_name(form: str, count: int) -> None:
    """A job reads what it has packed; one row is nested."""
    given_columns = {
        "x1": np.arange(count, dtype=np.float32), "x2": [2.0] * count, "id": ["k"] * count, "x3": [3.0] * count,
        "carrier": ["AA"] * count, "origin": ["JFK"] * count, "late": [1] * count,
        "user": [9] * count, "note": ["n"] * count,
    }  # fmt: skip
    encoder = _native.RecordEncoder(form, NESTED.native_columns(), lambda value, column: None)
    encoder.read_columns(given_columns, count)
    record = encoder.encode(0, count)
    row = {"user": {"x1": 0.0, "a.b": {"carrier": "AA"}}, "x1": 2.0, "meta": {"id": "k"},
           "list": [None, {"x3": 3.0}, None, "JFK"], "late": 1}  # fmt: skip
    if form != "packed":
        found = (json.loads if form == "json" else msgpack.unpackb)(record)
        assert found == {**row, "note": "n"} if count == 1 else found.keys() == given_columns.keys() - {"user"}
    ours, tally = decode_rows(form, NESTED, record)
    assert tally.trained == count and ours["numbers"].tolist() == [[x, 2, 3] for x in range(count)]
    del given_columns["user"]
    theirs, _ = decode_rows(form, NESTED, oracle(form).encode(NESTED, given_columns))
    for block, values in ours.items():
        np.testing.assert_array_equal(values, theirs[block])
    if form == "packed":  # it holds hashes of texts, which no other record could be made of
        return
    again = record_rows(NESTED, form, record).rows
    assert again[0].items() >= row.items()
    for block, values in decode_rows(form, NESTED, encode_rows(form, NESTED, again))[0].items():
        np.testing.assert_array_equal(values, ours[block])


def test_of_a_map_given_twice_the_last_counts_as_a_whole(same: Any) -> None:
    for again in ({}, None):
        row = [("user", {"x1": 1}), ("user", again), ("x1", 1), ("late", 1)]
        record = b"\x84" + b"".join(msgpack.packb(part) for pair in row for part in pair)
        assert [path for _, path, _ in same(NESTED, "msgpack", record).dead] == ["$.user.x1"]


def test_a_key_with_a_dot_is_not_a_path() -> None:
    both = Schema.from_columns({"user.age": {}, "age": {"path": "user.age"}, "late": LATE}, "binary_cross_entropy")
    blocks, tally = decode_rows("json", both, b'{"user.age": 1, "user": {"age": 2}, "late": 0}')
    assert blocks["numbers"].tolist() == [[1, 2]] and tally.trained == 1


@over("depth", [253, 254, 255, 256])
def test_nesting_is_counted_from_the_row(same: Any, depth: int) -> None:
    for text in ('{"user":{"x1":1,"more":%s},"x1":1,"late":1}', '{"user":{"x1":%s},"x1":1,"late":1}',
                 '{"list":[0,0,%s,"JFK"],"user":{"x1":1},"x1":1,"late":1}'):  # fmt: skip
        same(NESTED, "json", (text % ("[" * depth + "]" * depth)).encode())


def test_a_broken_record_leaves_no_depth_behind() -> None:
    slot = RowSlot(NESTED, 4, "json")
    good = b'{"user":{"x1":1,"more":%s},"x1":1,"late":1}' % (b"[" * 255 + b"]" * 255)
    for record, trained in ((good, 1), (b'{"user":{"x1":', 0), (b'{"list":[0,', 0), (good, 1)):
        assert sum(tally.trained for _, tally in slot.record(record)) == trained


def test_what_a_path_may_be() -> None:
    assert steps("user.age") == ("user", "age") and steps("a") == ("a",)
    assert steps("items[0].price") == ("items", 0, "price") and steps("a[1][2]") == ("a", 1, 2)
    assert steps('["a.b"].c["d\\"e"]') == ("a.b", "c", 'd"e') and steps('[""]') == ("",)
    assert place(steps('["a.b"].c[3]')) == '["a.b"].c[3]' and place(steps("user.age")) == ".user.age"
    for wrong in ("", ".", "a.", ".a", "a..b", "[0]", "[0].a", "a[", "a[-1]", "a[x]", "a[1", 'a["b]', "a]", 'a"b"',
                  "a[65536]", ".".join("a" * 33), '["\\ud800"]'):  # fmt: skip
        with pytest.raises(ValueError, match="expected"):
            steps(wrong)


def test_the_native_half_refuses_paths_that_cross() -> None:
    layout = _native.SlotLayout.make(1, 1, [("numbers", "f32", 2)])
    number = {"kind": "number", "missing": "dead_letter", "blocks": ["numbers"], "options": {"parse": ""}}
    for one, other in ((["u"], ["u", "x"]), (["u", "x"], ["u"]), (["u", "x"], ["u", 0]), (["u"], ["u"])):
        columns = [{"name": name, "path": path, "place": "", **number} for name, path in (("a", one), ("b", other))]
        with pytest.raises(ValueError, match=r"b: its (cells stand|path has)"):
            _native.DecodePlan(columns, [], layout, {})


def test_braces_go_in_step() -> None:
    assert expand_both("x{1..2}{a,b}", "v[{0..1}].{c,d}") == [
        ("x1a", "v[0].c"), ("x1b", "v[0].d"), ("x2a", "v[1].c"), ("x2b", "v[1].d"),
    ]  # fmt: skip
    schema = Schema.from_columns({"x{0..2}": {"path": "v[{0..2}]"}, "late": LATE}, "binary_cross_entropy")
    assert schema.paths == {"x0": ("v", 0), "x1": ("v", 1), "x2": ("v", 2)}
    assert Schema.from_dict(schema.to_dict()) == schema
    for record in (b'{"v":[1,2,3,4],"late":1}', b'{"v":[1,2,3],"late":1}', b'{"late":1,"v":[1.5e0,2,3.0]}'):
        assert decode_rows("json", schema, record)[1].trained == 1
    short = decode_rows("json", schema, b'{"v":[1,2],"late":1}')[1]
    assert [each.path for each in short.dead_rows] == ["$.v[2]"]


@over("single", [True, False])
def test_elements_side_by_side_are_columns_side_by_side(single: bool, same: Any) -> None:
    columns = {"x{0..3}": {"path": "v[{0..3}]"}, "y": {"path": "v[5]", "missing": 7}, "late": LATE}
    schema = Schema.from_columns({**columns, "z": {"path": "v[4]", "missing": 8}}, "binary_cross_entropy")
    plain: list[Any] = [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5]
    trained = 0
    for at, cell in ((None, 0), *((i, cell) for i in range(7) for cell in (None, "a", 3, [1], {"b": 2}, 1e39, -0.0))):
        values = plain if at is None else [*plain[:at], cell, *plain[at + 1 :]]
        for count in range(8):
            row = {"v": values[:count], "late": 1}
            trained += same(schema, "msgpack", msgpack.packb(row, use_single_float=single and cell != 1e39)).trained
            same(schema, "json", json.dumps(row).encode())
    assert trained > 20


def test_a_dict_is_columns_by_its_first_known_key() -> None:
    names = Names.of(NESTED)
    assert names.heads == {"user", "x1", "list"}
    for row, expected in (
        ({"x1": [1, 2], "late": [0, 1]}, True), ({"note": 1, "late": [0, 1]}, True), ({"late": 1, "x1": [1]}, False),
        ({"user": {}, "late": [0, 1]}, False), ({"list": [1, 2], "late": [0, 1]}, False), ({"note": [1]}, False),
    ):  # fmt: skip
        assert is_columns(row, names) == expected
        for form, given_record in (("json", json.dumps(row).encode()), ("msgpack", msgpack.packb(row))):
            _, tally = decode_rows(form, NESTED, given_record)
            assert tally.dead + tally.filtered == (2 if expected else 1), (form, row)
        encoder = _native.RecordEncoder("json", NESTED.native_columns(), lambda value, column: None)
        try:
            assert (encoder.encode_row(row) is None) == expected
        except ValueError:
            assert not expected


def test_nothing_of_a_job_without_paths_has_changed() -> None:
    """Checks the digest of a job's columns, which is in the manifests and logs of running jobs."""
    flat = Schema.from_columns({"x{1..2}": {"missing": 0}, "late": LATE}, "binary_cross_entropy")
    text = (
        '{"columns":[{"missing":0,"name":"x1"},{"missing":0,"name":"x2"},{"name":"late","role":"label"}],'
        '"loss":"binary_cross_entropy","requests":false}'
    )
    assert flat.digest() == hashlib.sha256(text.encode()).hexdigest()
    assert nested({"x1": 1}, flat.paths) == {"x1": 1}


HEADERS = (("tenant", b"acme"), ("when", b"2026-11-22T02:10:00Z"), ("other", b"x"))
AROUND = [
    Around(),
    Around(3, 2**40, 1_800_000_000_123, "zürich".encode(), HEADERS),
    Around(1, 7, 5, b"", (("tenant", b"first"), ("tenant", b""), ("when", None))),
    Around(1, 7, 5, None, (("tenant", b""), ("tenant", b"last"))),
    Around(0, 0, 0, b"\xff", HEADERS),
    Around(0, 0, -1, b"k", (("when", b"no time"),)),
]
KINDS: dict[str, dict[str, Any]] = {
    "number": {},
    "decimal": {"parse": "decimal"},
    "category": {"kind": "category", "buckets": 1000},
    "time": {"role": "event_time", "unit": "ms"},
    "moment": {"role": "event_time", "parse": "iso8601"},
    "weight": {"role": "weight", "parse": "decimal"},
    "class": {"role": "label", "classes": ["acme", "bee", "1.5"]},
    "index": {"role": "label", "classes": 3},
    "label": {"role": "label", "parse": "decimal"},
}
SOURCES = ["key", "headers.tenant", "timestamp", "partition", "offset"]
TEXTS: list[bytes | None] = [None, b"", b"acme", b"1.5", b"-1", b"1", b"nan", b"2026-11-22T02:10:00Z", b"\xc3"]


@every_format
@over("around", AROUND, ids=range(len(AROUND)))
def test_examples_in_messages(same: Any, schemas: Any, format_name: str, around: Around) -> None:
    results = [
        same(schemas["around"], format_name, record, capacity, around)
        for record in oracle(format_name).EXAMPLES
        for capacity in (1, 3, 64)
    ]
    good = around.key != b"\xff" and (b"no time" not in dict(around.headers).values())
    assert any(each.trained for each in results) == good


def schema_of(kind: str, source: str, missing: Any) -> Schema | None:
    stand_in = {"value": {"class": "acme", "category": "acme"}.get(kind, 1)}.get(missing, missing)
    loss = {"class": "softmax_cross_entropy", "index": "softmax_cross_entropy"}.get(kind, "mean_squared_error")
    late = {} if KINDS[kind].get("role") == "label" else {"y": LATE}
    try:
        return Schema.from_columns({"x": {}, "a": {**KINDS[kind], "from": source, "missing": stand_in}, **late}, loss)
    except Exception as error:
        assert "is text; say how" in str(error)
        return None


@in_full_all()
@over("missing", ["dead_letter", "skip", "value"])
@over("kind", KINDS)
def test_every_kind_from_every_part_by_row_and_by_block(same: Any, kind: str, missing: str, take: Any) -> None:
    for source in SOURCES:
        schema = schema_of(kind, source, missing)
        if schema is None:
            continue
        few = encode_rows("json", schema, [{"x": 1.5, "y": 1, "a": 5}] * 3)
        many = oracle("packed").encode(schema, {"x": [1.5] * 200, "y": [1] * 200, "a": [5] * 200})
        by_text = source in ("key", "headers.tenant")
        cases = [(text, 7) for text in TEXTS] if by_text else [(b"acme", at) for at in (-1, 0, 1, 2, 77)]
        for text, number in take(cases):
            around = Around(max(number, 0), max(number, 0), number, text, (("tenant", b"acme"), ("tenant", text)))
            same(schema, "json", few, 64, around)
            same(schema, "packed", many, 170, around)


INSIDE = Schema.from_columns(
    {"x": {}, "t": {"kind": "category", "buckets": 50, "from": "headers.t"}, "late": LATE}, "binary_cross_entropy"
)


@over("name", row_formats())
def test_what_is_around_a_record_is_not_looked_for_in_it(name: str) -> None:
    """RecordWriter's encoder does not write it there either."""
    schema = INSIDE
    format = with_schema(name, {"x": "number", "t": "text", "late": "number"})
    ((_, tally),) = RowSlot(schema, 4, format).record(encode_rows(format, schema, [{"x": 1, "late": 1, "t": "inside"}]))
    assert tally.dead_rows[0][2:4] == ("headers.t", "expected text, integer or boolean, got nothing (missing)")


def test_floats_of_an_array_row_pass_over_them(same: Any, schemas: Any) -> None:
    record = msgpack.packb([[1.5, 2.5, "AA", 1.0], [3.5, 4.5, None, 0.0]], use_single_float=True)
    assert same(schemas["around"], "msgpack", record, 4, AROUND[1]).trained == 2


def test_requests_take_arrays_without_them(same: Any, schemas: Any) -> None:
    schema = schemas["around"].for_requests()
    for record in (b'[1.5, 2, "AA"]', b'[1.5, 2, "AA", 1]', b"[1.5, 2]", b'{"x1": 1, "x2": 2}'):
        for around in AROUND:
            same(schema, "json", record, 4, around)


def test_rows_of_a_program_have_them_as_fields() -> None:
    schema = Schema.from_columns({"x": {}, "at": {"from": "offset"}, "late": LATE}, "binary_cross_entropy")
    slot = RowSlot(schema, 4, "json")
    assert slot.fill_row({"x": 1, "at": 5, "late": 1}) is None
    assert slot.views["numbers"][0].tolist() == [1, 5]
    bare = RowSlot(schema.without_message(), 4, "json")
    ((rows, _),) = bare.record(json.dumps({"x": 1, "at": 6, "late": 1}).encode())
    assert rows == 1
    assert bare.views["numbers"][0].tolist() == [1, 6]
    assert schema.without_message().for_requests().decoded_names == {"x", "at"} and not bare.schema.reads_around


def test_columns_without_it_have_the_digest_they_had() -> None:
    given = {"x": {}, "late": LATE}
    assert "from" not in json.dumps(Schema.from_columns(given, "binary_cross_entropy").to_dict())
    other = Schema.from_columns({**given, "at": {"from": "offset"}}, "binary_cross_entropy")
    assert Schema.from_dict(other.to_dict()).digest() == other.digest()
    assert Schema.from_dict(other.to_dict()).reads_around


ROW = {"id": 7, "distance": 2.5, "zone": "centre", "tip": 1}


def schema(root: str) -> Schema:
    """Returns the schema of the page, for events inside of `payload` or for events as they are."""
    (text,) = [text for kind, text in blocks(ROOT / "docs" / "produce.md") if kind == "toml" and "payload." in text]
    return Job.parse(text.replace("payload.", root), name="trips.toml").schema


def event(op: str, before: Any, after: Any) -> dict[str, Any]:
    source = {"connector": "postgresql", "table": "trips", "lsn": 33}
    around = {"source": source, "op": op, "ts_ms": 1_700_000_000_000, "transaction": None}
    return {"before": before, "after": after, **around}


@over("root", ["", "payload."])
@over("is_text", [True, False])
def test_rows_train_and_deletes_are_filtered(root: str, is_text: bool) -> None:
    events = [
        event("r", None, ROW), event("c", None, ROW), event("u", {**ROW, "distance": 1.5}, {**ROW, "tip": 0}),
        event("d", ROW, None), event("u", ROW, {**ROW, "tip": None}), event("t", None, None),
    ]  # fmt: skip
    wrapped = [{"schema": {"type": "struct", "fields": []}, "payload": each} if root else each for each in events]
    records = [json.dumps(each).encode() if is_text else msgpack.packb(each) for each in wrapped]
    form = "json" if is_text else "msgpack"
    results = [decode_rows(form, schema(root), record) for record in records]
    fates = [(tally.trained, tally.filtered, tally.dead) for _, tally in results]
    assert fates == [(1, 0, 0)] * 3 + [(0, 1, 0), (0, 0, 1), (0, 1, 0)]
    assert [blocks["numbers"].tolist() for blocks, _ in results[:3]] == [[[2.5, 2.5]], [[2.5, 2.5]], [[2.5, 1.5]]]
    assert [blocks["label"].tolist() for blocks, _ in results[:3]] == [[[1]], [[1]], [[0]]]
    assert {tally.newest_event_time_ms for _, tally in results[:3]} == {1_700_000_000_000}
    (dead,) = results[4][1].dead_rows
    assert dead.path == f"$.{root}after.tip"
