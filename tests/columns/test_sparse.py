"""Pairs of an index or a name and a number, and the texts that hold them: libsvm, and VW with VW's own indexes, for one
column or several, each of its namespaces; the tag is a column by its path."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_format import needs_no_option
from long_tables import in_full_all
from looped import over
from slots import RowSlot

from streamtrain import Job, _native
from streamtrain.columns.formats import Format, format_names, mistakes
from streamtrain.columns.formats.parsed import Unusable, contains_unusable
from streamtrain.columns.formats.sparse_text import features
from streamtrain.columns.kinds.bags import block_name
from streamtrain.columns.kinds.category import hash_seed
from streamtrain.columns.record_encoding import Records
from streamtrain.columns.rows import record_rows, row_counter
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from streamtrain.files.format_lines import is_records
from tests.columns.conftest import each_way, spoiled
from tests.oracles.kinds import Wrong
from tests.oracles.kinds._numbers import decimal
from tests.oracles.records import encode_rows, oracle
from tests.oracles.sparse_text import named, parse, vw_seed

DATA = Path(__file__).parents[3] / "shared/data/rcv1"
SPARSE: dict[str, Any] = {"kind": "sparse", "buckets": 64, "most": 4}
WIDE = Schema.from_columns(
    {"wide": {**SPARSE, "missing": 0}, "late": {"role": "label", "missing": 1}, "w": {"role": "weight", "missing": 1}},
    "binary_cross_entropy",
)
NAMED = Schema.from_columns(
    {"wide": {**SPARSE, "cut": True}, "late": {"role": "label", "classes": ["-1", "1"]}}, "binary_cross_entropy"
)
LINES = [name for name in format_names() if needs_no_option(name) and is_records(name)]


def entries(slot: RowSlot, rows: int) -> list[list[tuple[int, float]]]:
    index, scale = (slot.views[block_name("wide", part)][:rows] for part in ("list", "scale"))
    return [list(zip(i.tolist(), v.tolist(), strict=True)) for i, v in zip(index, scale, strict=True)]


def bucket(name: str) -> int:
    return _native.murmur3(name.encode(), hash_seed("wide")) % 64


@over(
    ("cell", "expected"),
    [
        ([[1, 2.5], [63, -1]], [(1, 2.5), (63, -1.0)]),
        ([["12", 0.5], ["a", 1], [1, True]], [(12, 0.5), (bucket("a"), 1.0), (1, 1.0)]),
        ({"12": 0.5, "name": 2}, [(12, 0.5), (bucket("name"), 2.0)]),
        ([], []),
        ({}, []),
        ([[3, 1], [3, 1]], [(3, 1.0), (3, 1.0)]),
    ],
)
def test_pairs_and_maps(cell: Any, expected: list[tuple[int, float]]) -> None:
    for way, slot, rows, _ in each_way(WIDE, {"wide": cell, "late": 1}, ["json", "msgpack"]):
        assert entries(slot, rows) == [expected], way


def same_of(form: str, same: Any, record: bytes) -> None:
    format_name: Format = {"name": form, "bits": 6} if form == "vw" else form
    for schema in (WIDE, NAMED, WIDE.for_requests()):
        for capacity in (1, 64):
            same(schema, format_name, record, capacity)


@in_full_all()
@over("form", LINES)
def test_native_and_slow_agree_cut_and_mutated(same: Any, form: str, take: Any) -> None:
    for record in oracle(form).EXAMPLES:
        same_of(form, same, record)
        for worse in spoiled(record, take, 150, b" |:'\n\t.1e-#"):
            same_of(form, same, worse)


@over("form", LINES)
def test_rows_are_written_and_read_again(form: str) -> None:
    columns = {"wide": {**SPARSE, "buckets": 1 << 18}, "late": {"role": "label"}}
    schema = Schema.from_columns(columns, "binary_cross_entropy")
    rows = [{"wide": [[3, 0.5], [99, -2.0]], "late": 1}, {"wide": [], "late": 0}, {"wide": {"7": 1e-3}, "late": 1}]
    expected = [[(3, 0.5), (99, -2.0)], [], [(7, float(np.float32(1e-3)))]]
    ((native_record,),) = Records(schema, form, "rows", 9, 1 << 20).blocks(rows, None, False)
    for record in (native_record.value, oracle(form).encode_rows(schema, rows)):
        slot = RowSlot(schema, 4, form)
        ((count, _),) = list(slot.record(record))
        assert count == 3 and entries(slot, 3) == expected
        assert slot.views["label"][:3, 0].tolist() == [1, 0, 1]
    with pytest.raises(UserMistake):
        list(Records(schema, form, "rows", 9, 1 << 20).blocks([{"wide": [["a b", 1]], "late": 1}], None, False))


@over("form", LINES)
def test_a_row_without_label_and_pairs_is_a_row(form: str) -> None:
    """Only this sees a row that is written as an empty line: it would be neither trained nor a dead letter."""
    columns = {"wide": {**SPARSE, "buckets": 1 << 18, "missing": 0}, "late": {"role": "label"}}
    schema = Schema.from_columns(columns, "mean_squared_error")
    rows = [{"wide": None, "late": label} for label in (0.5, None, float("nan"), "n/a", 2)]
    ((native_record,),) = Records(schema, form, "rows", 9, 1 << 20).blocks(rows, None, False)
    for record in (native_record.value, oracle(form).encode_rows(schema, rows)):
        tally = row_counter(schema, form).count([record])
        assert (tally.trained, tally.dead) == (2, 3), record


def vw_lines() -> list[str]:
    chance = random.Random(1)
    lines = ["1 |f 9:6.27e-02 14:0.5 words more:2", "-1 2.5 'tag|a:2 x:3 y |b z:.5 7 |c", "0 tag| p 3:1 :2 :3"]
    lines.append(" |ab 0012 +5")
    for _ in range(300):
        line = chance.choice(["1 ", "-1 ", "0.5 2 "])
        for _ in range(chance.randint(1, 3)):
            line += "|" + chance.choice(["", "f", "12", "long_name é", "x:0.5"])
            for _ in range(chance.randint(0, 5)):
                name = chance.choice(["a", "7", "0", "abc", "é日本", "x^y", "00", "12345678901", "q.r-s"])
                line += " " + name + chance.choice(["", ":1", ":0.25", ":-3e-2", ":.5", ":0"])
            line += " "
        lines.append(line)
    return lines


@pytest.mark.full
def test_indexes_are_those_of_vw() -> None:
    """Feature by feature, and the rcv1 data as `vw --invert_hash` lists it."""
    vowpal = pytest.importorskip("vowpalwabbit")
    columns = {"wide": {**SPARSE, "buckets": 1 << 18, "most": 99}, "late": {"role": "label", "missing": 0}}
    schema = Schema.from_columns(columns, "mean_squared_error")
    workspace = vowpal.Workspace("--quiet -b 18 --noconstant")
    for line in vw_lines():
        slot = RowSlot(schema, 1, "vw")
        ((rows, _),) = list(slot.record(line.encode()))
        assert rows == 1, line
        parsed = workspace.parse(line)
        example = parsed[0] if isinstance(parsed, list) else parsed
        workspace.setup_example(example)
        theirs = sorted((at // 4 & 0x3FFFF, round(value, 6)) for at, value in example.iter_features())
        assert sorted((at, round(value, 6)) for at, value in entries(slot, 1)[0]) == theirs, line
        workspace.finish_example(example)
    workspace.finish()


@pytest.mark.full
def test_rcv1_has_the_indexes_that_invert_hash_shows(tmp_path: Path) -> None:
    vowpal = pytest.importorskip("vowpalwabbit")
    if not DATA.exists():
        pytest.skip("no data set rcv1")
    schema = Schema.from_columns(
        {"wide": {**SPARSE, "buckets": 1 << 18, "most": 4096}, "late": {"role": "label", "classes": ["-1", "1"]}},
        "binary_cross_entropy",
    )
    data = (DATA / "rcv1_small.dat").read_bytes()
    slot, ours = RowSlot(schema, 1000, "vw"), set()
    for rows, tally in slot.record(data):
        assert tally.dead == 0
        ours |= {index for row in entries(slot, rows) for index, _ in row}
    inverted = tmp_path / "inverted"
    workspace = vowpal.Workspace(f"--quiet -b 18 --noconstant --invert_hash {inverted}")
    for line in data.decode().splitlines():
        workspace.learn(line)
    workspace.finish()
    index_lines = [line.split(":") for line in inverted.read_text().splitlines() if line.startswith("f^")]
    assert len(index_lines) > 9_000 and {int(index) for _, index, *_ in index_lines} <= ours


def test_what_lines_cannot_give_is_a_mistake() -> None:
    schema = Schema.from_columns({"x": {}, "wide": SPARSE, "late": {"role": "label"}}, "binary_cross_entropy")
    for form in LINES:
        assert "x" in dict(mistakes(form, schema))
    alone = Schema.from_columns({"wide": SPARSE, "late": {"role": "label"}}, "binary_cross_entropy")
    assert dict(mistakes("vw", alone))["wide"].startswith("buckets: expected 262,144 or more")
    assert not list(mistakes({"name": "vw", "bits": 6}, alone))


OF_VW: dict[str, Any] = {"kind": "sparse", "buckets": 1 << 18, "most": 99, "missing": 0}
USER, REST = {**OF_VW, "namespaces": ["u", "geo\u00e9", "7"]}, OF_VW
LATE = {"late": {"role": "label", "missing": 0}, "w": {"role": "weight", "missing": 1}}
TAG: dict[str, Any] = {"kind": "category", "buckets": 64, "missing": "", "path": "tag"}
VW_LINES = [
    b"1 2 'k1|u a:2 x:3 y |b z:.5 7 |u c\n",
    b"-1 tag|geo\xc3\xa9:2 3:1 :2 :3 |ge d |7 5\n0 | p 3:1\n1 '|:2 q |u\n",
    b"0 'a b |u x:n/a y |b z\n0 |b x:n/a |u y\n1 \xff|u a\n1 |u:bad a|b:bad c\n1 |u x:1e99 |b y:1e99\n|\n",
]


def schema_of(**columns: dict[str, Any]) -> Schema:
    return Schema.from_columns({**columns, **LATE}, "mean_squared_error")


BOTH = schema_of(user=USER, rest=REST, id=TAG)
SCHEMAS = [BOTH, schema_of(user=USER), schema_of(rest={**REST, "namespaces": [""]}, user={**USER, "most": 2}, id=TAG)]


def first_entries(slot: RowSlot, name: str) -> list[tuple[int, float]]:
    """Returns the entries of the slot's first row."""
    index, scale = (slot.views[block_name(name, part)][:1][0] for part in ("list", "scale"))
    return list(zip(index.tolist(), scale.tolist(), strict=True))


def decoded(schema: Schema, line: str) -> RowSlot:
    slot = RowSlot(schema, 1, "vw")
    ((rows, tally),) = list(slot.record(line.encode()))
    assert rows == 1, (line, tally.dead_rows)
    return slot


@in_full_all()
@over("number", range(len(SCHEMAS)))
def test_namespaces_native_and_slow_agree_cut_and_mutated(same: Any, number: int, take: Any) -> None:
    schema, trained = SCHEMAS[number], 0
    for record in VW_LINES:
        for capacity in (1, 64):
            trained += same(schema, "vw", record, capacity).trained
        for worse in spoiled(record, take, 150, b" |:'\nubg7"):
            same(schema, "vw", worse)
    assert trained > 6


def as_number(text: str) -> float | None:
    """Returns the number that a text is, None if it is none."""
    try:
        return decimal(text)
    except Wrong:
        return None


def assert_record_rows(schema: Schema, format: Format, record: bytes) -> None:
    wide, view = set(features(schema)), record_rows(schema, format, record)
    meant = parse(format, record)
    assert (view.broken is None) == (meant.broken is None)
    for ours, row in zip(view.rows, meant.rows, strict=True):
        theirs = {} if isinstance(row, Unusable) else dict(named(schema, row))
        if not theirs or any(contains_unusable(cell) for cell in theirs.values()):
            assert isinstance(ours, Unusable) and ours.reason and ours.path, record
            continue
        for name in wide:
            assert [at for at, _ in ours[name]] == [at for at, _ in theirs[name]], record
            both = ours[name], theirs[name]
            with np.errstate(over="ignore"):
                values = [np.float32([value for _, value in pairs]).tobytes() for pairs in both]
            assert values[0] == values[1], record
        heads = {name: cell for name, cell in theirs.items() if name not in wide and cell is not None}
        assert heads.keys() == ours.keys() - wide, record
        assert all(ours[name] in (cell, as_number(cell)) for name, cell in heads.items()), record


@in_full_all()
@over("form", LINES)
def test_rows_are_shown_as_they_are_read(form: str, take: Any) -> None:
    of_form: list[tuple[Schema, Format]] = [(WIDE, {"name": form, "bits": 6} if form == "vw" else form), (NAMED, form)]
    of_form += [(schema, form) for schema in SCHEMAS if form == "vw"]
    for schema, format in of_form:
        for record in [*oracle(form).EXAMPLES, *(VW_LINES if form == "vw" else [])]:
            assert_record_rows(schema, format, record)
            for worse in spoiled(record, take, 40, b" |:'\n\t.1e-#"):
                assert_record_rows(schema, format, worse)


def test_rows_that_a_job_cannot_take_are_written_as_they_were() -> None:
    for form in LINES:
        line = b"spam# 99:0.5 3:0.001\n1# 2:1\n".replace(b"#", b" |" if form == "vw" else b"")
        rows = record_rows(WIDE, form, line).rows
        assert rows[0]["late"] == "spam" and row_counter(WIDE, form).count([line]).dead == 1
        assert encode_rows(form, WIDE, rows) == line
    schema = schema_of(**{"a.b": USER, "rest": REST})
    (row,) = record_rows(schema, "vw", b"1 |u x:n/a |b y").rows
    assert row.path == '$[0].a.b' and '":n/a"' in row.reason


def test_values_are_shown_as_short_as_they_can_be() -> None:
    record = b"1 3:0.1 4:16777217 5:1e-45 6:-0 7:1e18\n" * 1500  # more than one batch
    rows = record_rows(WIDE, "libsvm", record).rows
    assert len(rows) == 1500 and all(row == rows[0] for row in rows)
    assert str(rows[0]["wide"]) == "[[3, 0.1], [4, 16777216.0], [5, 1e-45], [6, 0.0], [7, 1e+18]]"


def test_each_column_has_its_namespaces_and_one_the_others() -> None:
    slot = decoded(BOTH, "1 'k1 |u 1:2 |7:3 2:1 | 4 |u 5 |b 6:.5 |uu 7")
    alone = {name: first_entries(decoded(schema_of(all=OF_VW), f"1 |{part}"), "all")
             for name, part in (("u", "u 1:2 |7:3 2:1 |u 5"), ("rest", " 4 |b 6:.5 |uu 7"))}  # fmt: skip
    assert first_entries(slot, "user") == alone["u"] and len(alone["u"]) == 3
    assert first_entries(slot, "rest") == alone["rest"] and len(alone["rest"]) == 3
    none = schema_of(user=USER)  # and no column for the others, nor for the tag
    assert first_entries(decoded(none, "1 tag|b x:n/a |u 1:2 |c"), "user") == alone["u"][:1]
    assert first_entries(decoded(none, "1 |b c"), "user") == []


@pytest.mark.full
def test_indexes_of_namespaces_are_those_of_vw() -> None:
    """Checks that all columns together have VW's features, and each those of its namespaces; the tag is the same."""
    vowpal = pytest.importorskip("vowpalwabbit")
    workspace = vowpal.Workspace("--quiet -b 18 --noconstant")

    def theirs(line: str) -> tuple[list[tuple[int, float]], str]:
        parsed = workspace.parse(line)
        example = parsed[0] if isinstance(parsed, list) else parsed
        workspace.setup_example(example)
        found = sorted((at // 4 & 0x3FFFF, round(value, 6)) for at, value in example.iter_features())
        tag = example.get_tag()
        workspace.finish_example(example)
        return found, tag

    def ours(slot: RowSlot, *names: str) -> list[tuple[int, float]]:
        return sorted((at, round(value, 6)) for name in names for at, value in first_entries(slot, name))

    chance = random.Random(5)
    for _ in range(200):
        spaces = [chance.choice(["u", "geo\u00e9", "7", "b", "uu", "", "u:2"]) for _ in range(chance.randint(1, 4))]
        words = [[chance.choice(["a", "7", "x^y:2", "\u00e9:0.25"]) for _ in range(3)] for _ in spaces]
        parts = [f"|{space} {' '.join(each)} " for space, each in zip(spaces, words, strict=True)]
        own = [part for space, part in zip(spaces, parts, strict=True) if space.partition(":")[0] in USER["namespaces"]]
        head = chance.choice(["1 ", "1 2 ", "1 'id7 ", "1 2 id7", "id7", "'id7 "])
        slot = decoded(BOTH, head + "".join(parts))
        whole, tag = theirs(head + "".join(parts))
        assert ours(slot, "user", "rest") == whole, head + "".join(parts)
        assert ours(slot, "user") == theirs("1 " + ("".join(own) or "|"))[0]
        (row,) = record_rows(BOTH, "vw", (head + "".join(parts)).encode()).rows
        assert row.get("tag", "") == tag
    workspace.finish()


def test_rows_of_namespaces_are_written_and_read_again() -> None:
    """An index is the same one in any namespace, as written by either half; a name is VW's."""
    schema = schema_of(user=USER, rest=REST, id={**TAG, "kind": "category"})
    given = [
        {"user": [[3, 0.5], [262143, 2.0]], "rest": {"4": 1.5}, "tag": "k1", "late": 1, "w": 2},
        {"user": {"3": 0.5}, "rest": None, "tag": None, "late": 0},
        {"user": [], "rest": [[1, 1]], "tag": "k2"},
    ]
    ((native_record,),) = Records(schema, "vw", "rows", 9, 1 << 20).blocks(given, None, False)
    assert parse("vw", native_record.value).rows == parse("vw", oracle("vw").encode_rows(schema, given)).rows
    lines = native_record.value.decode().splitlines()
    assert lines[0].startswith("1 2 'k1 |u ") and " 'k2 |u | 1:1" in lines[2]
    slots = [decoded(schema, line) for line in lines]
    assert [first_entries(slot, "user") for slot in slots] == [[(3, 0.5), (262143, 2.0)], [(3, 0.5)], []]
    assert [first_entries(slot, "rest") for slot in slots] == [[(4, 1.5)], [], [(1, 1.0)]]
    named = decoded(schema, oracle("vw").encode_rows(schema, [{"user": {"a": 2}, "late": 1}]).decode())
    assert first_entries(named, "user") == first_entries(decoded(schema, "1 |u a:2"), "user")
    again = record_rows(schema, "vw", native_record.value).rows
    ((once_more,),) = Records(schema, "vw", "rows", 9, 1 << 20).blocks(again, None, False)
    assert parse("vw", once_more.value).rows == parse("vw", native_record.value).rows


def test_names_of_a_program_are_vws(same: Any) -> None:
    """Names are those of the first namespace that a column names, in rows of any shape."""
    schema = schema_of(user={**USER, "vw_bits": 18}, rest={**REST, "vw_bits": 18})
    row = {"user": {"age": 31, "länder": 0.5, "9": 2}, "rest": [["x", 1], ["page^7", 3]], "late": 1}
    read = decoded(schema, f"1 |u age:31 länder:0.5 {9 - vw_seed('u') + 2**32}:2 | x:1 page^7:3")
    expected = [first_entries(read, name) for name in ("user", "rest")]
    for record in (json.dumps(row), json.dumps(row, ensure_ascii=False)):
        assert same(schema, "json", record.encode()).trained == 1
        slot = RowSlot(schema, 1, "json")
        list(slot.record(record.encode()))
        assert [first_entries(slot, name) for name in ("user", "rest")] == expected
    slot = RowSlot(schema, 1)
    list(slot.batches([row]))
    assert [first_entries(slot, name) for name in ("user", "rest")] == expected
    others = RowSlot(schema_of(user=USER, rest=REST), 1, "json")
    list(others.record(json.dumps(row).encode()))
    assert first_entries(others, "rest") != expected[1]


def test_a_jobs_columns_have_its_records_bits(tmp_path: Path) -> None:
    text = """
        name = "names"
        kafka.bootstrap.servers = "127.0.0.1:9"
        [records]
        format = "vw"
        bits = 20
        [columns]
        rest = { kind = "sparse", buckets = 1048576 }
        other = { kind = "sparse", buckets = 1048576, namespaces = ["o"], vw_bits = 7 }
        y = { role = "label" }
    """
    (tmp_path / "names.toml").write_text(text)
    columns = dict(Job.load(tmp_path / "names.toml").schema.columns)
    assert (columns["rest"].vw_bits, columns["other"].vw_bits) == (20, 7)
    for what, instead in (('"vw"', '"json"'), ("bits = 20", ""), ('namespaces = ["o"], ', "")):
        text = text.replace(what, instead, 1)
    (tmp_path / "names.toml").write_text(text)
    columns = dict(Job.load(tmp_path / "names.toml").schema.columns)
    assert (columns["rest"].vw_bits, columns["other"].vw_bits) == (None, 7)
    with pytest.raises(UserMistake, match="buckets: expected 1,024 or more for vw_bits = 10, got 64"):
        schema_of(rest={**REST, "buckets": 64, "vw_bits": 10})


def test_the_tag_is_a_key() -> None:
    schema = schema_of(rest=REST, id={"role": "key", "path": "tag"})
    rows = [{"tag": "k1", "rest": {"a": 1}, "late": 1}, {"tag": "k2", "rest": {}, "late": 0}]
    found = [record for block in Records(schema, "vw", "rows", 9, 1 << 20).blocks(rows, None, True) for record in block]
    assert [record.own.key for record in found] == [b"k1", b"k2"]
    assert [record.value for record in found] == [b"1 'k1 | a:1\n", b"0 'k2 |\n"]
    assert not list(mistakes("vw", schema))


def test_a_number_may_be_the_tag() -> None:
    schema = schema_of(rest=REST, x={"path": "tag", "missing": -1})
    assert [decoded(schema, line).views["numbers"][0, 0] for line in ("1 '2.5 |a", "1 |a")] == [2.5, -1]
    ((rows, tally),) = list(RowSlot(schema, 1, "vw").record(b"1 'n/1 |a"))
    assert rows == 0 and [each[2] for each in tally.dead_rows] == ["$[0].tag"]


@over(
    ("columns", "form", "column", "problem"),
    [
        ({"a": USER, "b": {**OF_VW, "namespaces": ["x", "u"]}}, "vw", "b", "got 'u' in a too"),
        ({"a": REST, "b": OF_VW}, "vw", "b", "that names no namespaces for vw, got a too"),
        ({"a": USER}, "json", "a", "namespaces: expected a format whose features stand in some, such as vw, got json"),
        ({"a": USER}, "libsvm", "a", "namespaces: expected a format whose features stand in some"),
        ({"a": REST, "id": TAG}, "libsvm", "id", "got another column"),
        ({"a": REST, "id": {**TAG, "path": "tags"}}, "vw", "id", 'one with path = "tag"'),
    ],
)
def test_what_namespaces_cannot_give_is_a_mistake(
    columns: dict[str, dict[str, Any]], form: str, column: str, problem: str
) -> None:
    assert problem in dict(mistakes(form, schema_of(**columns)))[column]
    tables = {"columns": {**columns, **LATE}, "records": {"format": form}, "model": {"loss": "mean_squared_error"}}
    with pytest.raises(UserMistake, match=column):
        Job.from_tables(tables)
