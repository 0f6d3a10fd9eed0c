"""Columns that stand inside of others: where a path leads, what is missing there, what is wrong with one."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from long_tables import in_full_all
from looped import over
from slots import RowSlot, decode_rows

from streamtrain import _native
from streamtrain.columns.formats import encode_rows, record_format
from streamtrain.columns.forms import Names, is_columns
from streamtrain.columns.names import expand_both
from streamtrain.columns.paths import cell_at, nested, place, steps
from streamtrain.columns.rows import record_rows
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from tests.columns.conftest import NESTED, spoiled
from tests.columns.test_formats import texts

LATE = {"role": "label"}
FORMS = ["json", "msgpack", "packed"]
KEYS = ["user", "x1", "x2", "x3", "a.b", "carrier", "origin", "list", "late", "meta", "id", "age"]


cells = st.one_of(
    st.integers(-3, 3), st.integers(-(2**70), 2**70), st.floats(allow_nan=False), texts, st.booleans(), st.none()
)


values = st.recursive(
    cells,
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)),
    max_leaves=12,
)
numbers = st.floats(-9, 9, width=32)


@st.composite
def likely_rows(draw: Any) -> dict[str, Any]:
    """Rows that mostly train, their keys in any order."""
    user = {"x1": draw(numbers), "a.b": {"carrier": draw(st.sampled_from(["AA", 7]))}, **draw(others)}
    items = [draw(cells), {"x3": draw(numbers)}, draw(values), draw(st.sampled_from(["JFK", None, 3]))]
    row = {"user": user, "x1": draw(numbers), "late": draw(st.sampled_from([0, 1, True])),
           "list": items[: draw(st.integers(0, 4))], **draw(others)}  # fmt: skip
    return dict(draw(st.permutations(list(row.items()))))


others = st.dictionaries(st.sampled_from(KEYS), values, max_size=1)


@in_full_all()
@over("form", FORMS)
def test_examples_cut_and_mutated(form: str, same: Any, take: Any) -> None:
    trained = 0
    for record in record_format(form).EXAMPLES:
        for capacity in (1, 3, 64):
            trained += same(NESTED, form, record, capacity).trained
        for worse in spoiled(record, take, 100):
            same(NESTED, form, worse)
    assert trained > 0


@given(row=likely_rows(), form=st.sampled_from(["json", "msgpack"]))
def test_a_row_is_written_where_it_is_read(row: dict[str, Any], form: str) -> None:
    """What is written of a row has the same cells at the same places, and other plain fields beside them."""
    encoder = _native.RecordEncoder(form, NESTED.native_columns(), lambda value, column: None)
    try:
        record = encoder.encode_row(row)
        as_given = encode_rows(form, NESTED, [row])
    except (ValueError, OverflowError):  # what no record holds
        return
    if record is None:  # its first known key holds an array
        return
    found = (json.loads if form == "json" else msgpack.unpackb)(record)
    for name, _ in NESTED.columns:
        path = NESTED.paths.get(name, (name,))
        assert cell_at(found, path) == pytest.approx(cell_at(row, path), nan_ok=True)
    ours, theirs = (decode_rows(form, NESTED, each)[0] for each in (record, as_given))
    for block, values in theirs.items():
        np.testing.assert_array_equal(ours[block], values)


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
    theirs, _ = decode_rows(form, NESTED, record_format(form).encode(NESTED, given_columns))
    for block, values in ours.items():
        np.testing.assert_array_equal(values, theirs[block])
    if form == "packed":  # it holds hashes of texts, which no other record could be made of
        return
    again = record_rows(NESTED, form, record).rows
    assert again[0].items() >= row.items()
    for block, values in decode_rows(form, NESTED, encode_rows(form, NESTED, again))[0].items():
        np.testing.assert_array_equal(values, ours[block])


@over(
    ("text", "path", "reason"),
    [
        ('{"user":{"x1":"n/a"},"x1":1,"late":1}', "$.user.x1", 'expected number, got "n/a"'),
        ('{"user":7,"x1":1,"late":1}', "$.user.x1", "expected number, got nothing (missing)"),
        ('{"user":{"x1":1},"user":{},"x1":1,"late":1}', "$.user.x1", "expected number, got nothing (missing)"),
        ('{"user":{"x1":1},"user":null,"x1":1,"late":1}', "$.user.x1", "expected number, got nothing (missing)"),
        ('{"user.x1":1,"x1":1,"late":1}', "$.user.x1", "expected number, got nothing (missing)"),
        ('{"user":{"x1":1,"a.b":{"carrier":1.5}},"x1":1,"late":1}', '$.user["a.b"].carrier',
         "expected text, integer or boolean, got 1.5"),
        ('[{"user":{"x1":1},"x1":2,"list":[0,{"x3":[]}],"late":1}]', "$[0].list[1].x3",
         "expected number, got an array"),
        ('{"x1":["a"],"x2":[1],"late":[1]}', "$.x1[0]", 'expected number, got "a"'),
        ('{"user":{"x1":1,"x2":"\x01"},"x1":1,"late":1}', "$", "expected JSON text, got a control character in text"),
        ('{"user":{"x1":1,},"x1":1,"late":1}', "$", "expected a key, got '}' at byte 16"),
    ],
)  # fmt: skip
def test_a_dead_letter_names_the_place(text: str, path: str, reason: str) -> None:
    tally = decode_rows("json", NESTED, text.encode())[1]
    assert [(dead.path, dead.reason) for dead in tally.dead_rows] == [(path, reason)]


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
        assert sum(told.trained for _, told in slot.record(record)) == trained


def test_what_a_path_may_be() -> None:
    assert steps("user.age") == ("user", "age") and steps("a") == ("a",)
    assert steps("items[0].price") == ("items", 0, "price") and steps("a[1][2]") == ("a", 1, 2)
    assert steps('["a.b"].c["d\\"e"]') == ("a.b", "c", 'd"e') and steps('[""]') == ("",)
    assert place(steps('["a.b"].c[3]')) == '["a.b"].c[3]' and place(steps("user.age")) == ".user.age"
    for wrong in ("", ".", "a.", ".a", "a..b", "[0]", "[0].a", "a[", "a[-1]", "a[x]", "a[1", 'a["b]', "a]", 'a"b"',
                  "a[65536]", ".".join("a" * 33), '["\\ud800"]'):  # fmt: skip
        with pytest.raises(ValueError, match="expected"):
            steps(wrong)


@over(
    ("columns", "said"),
    [
        ({"a": {"path": "u.x"}, "b": {"path": "u.x"}}, "columns.b: path: expected cells of its own, got $.u.x"),
        ({"u": {}, "b": {"path": "u.x"}}, "columns.b: path: expected cells of its own, got $.u.x, where those of u"),
        ({"b": {"path": "u.x"}, "u": {}}, "columns.u: path: expected cells of its own, got $.u, where those of b"),
        ({"a": {"path": "u.x"}, "b": {"path": "u[0]"}}, "got $.u[0] beside a's"),
        ({"v": {"path": "v[0]"}}, "columns.v: expected another name"),
        ({"a": {"path": "u."}}, "columns.a: path: expected keys and indexes such as user.age"),
        ({"x{1..3}": {"path": "v[{0..1}]"}}, "columns.x{1..3}: path: expected braces for as many as the name's, 3"),
        ({"x{1..2}": {"path": "v"}}, "got 1"),
        ({"x": {"path": "v{"}}, "path: expected braces in pairs"),
    ],
)  # fmt: skip
def test_mistakes_are_named(columns: dict[str, Any], said: str) -> None:
    with pytest.raises(UserMistake) as raised:
        Schema.from_columns({**columns, "late": LATE}, "binary_cross_entropy")
    assert said in str(raised.value)


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
    made = Schema.from_columns({"x{0..2}": {"path": "v[{0..2}]"}, "late": LATE}, "binary_cross_entropy")
    assert made.paths == {"x0": ("v", 0), "x1": ("v", 1), "x2": ("v", 2)}
    assert Schema.from_dict(made.to_dict()) == made
    for record in (b'{"v":[1,2,3,4],"late":1}', b'{"v":[1,2,3],"late":1}', b'{"late":1,"v":[1.5e0,2,3.0]}'):
        assert decode_rows("json", made, record)[1].trained == 1
    short = decode_rows("json", made, b'{"v":[1,2],"late":1}')[1]
    assert [each.path for each in short.dead_rows] == ["$.v[2]"]


@over("single", [True, False])
def test_elements_side_by_side_are_columns_side_by_side(single: bool, same: Any) -> None:
    columns = {"x{0..3}": {"path": "v[{0..3}]"}, "y": {"path": "v[5]", "missing": 7}, "late": LATE}
    made = Schema.from_columns({**columns, "z": {"path": "v[4]", "missing": 8}}, "binary_cross_entropy")
    plain: list[Any] = [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5]
    trained = 0
    for at, cell in ((None, 0), *((i, cell) for i in range(7) for cell in (None, "a", 3, [1], {"b": 2}, 1e39, -0.0))):
        values = plain if at is None else [*plain[:at], cell, *plain[at + 1 :]]
        for count in range(8):
            row = {"v": values[:count], "late": 1}
            trained += same(made, "msgpack", msgpack.packb(row, use_single_float=single and cell != 1e39)).trained
            same(made, "json", json.dumps(row).encode())
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
    """Its columns' digest is in the manifests and logs of jobs that run."""
    flat = Schema.from_columns({"x{1..2}": {"missing": 0}, "late": LATE}, "binary_cross_entropy")
    text = (
        '{"columns":[{"missing":0,"name":"x1"},{"missing":0,"name":"x2"},{"name":"late","role":"label"}],'
        '"loss":"binary_cross_entropy","requests":false}'
    )
    assert flat.digest() == hashlib.sha256(text.encode()).hexdigest()
    assert nested({"x1": 1}, flat.paths) == {"x1": 1}
