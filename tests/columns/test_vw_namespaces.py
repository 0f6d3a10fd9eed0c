"""VW's lines for several columns: each takes its namespaces, one all others; the tag is a column by its path."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from long_tables import in_full_all
from looped import over
from slots import RowSlot

from streamtrain import Job
from streamtrain.columns.formats import mistakes, parse, record_format
from streamtrain.columns.kinds.bags import block_name
from streamtrain.columns.records import Records
from streamtrain.columns.rows import record_rows
from streamtrain.columns.schema import Schema
from streamtrain.columns.vw_hash import vw_seed
from streamtrain.errors import UserMistake
from tests.columns.conftest import spoiled

WIDE: dict[str, Any] = {"kind": "sparse", "buckets": 1 << 18, "most": 99, "missing": 0}
USER, REST = {**WIDE, "namespaces": ["u", "geo\u00e9", "7"]}, WIDE
LATE = {"late": {"role": "label", "missing": 0}, "w": {"role": "weight", "missing": 1}}
TAG: dict[str, Any] = {"kind": "category", "buckets": 64, "missing": "", "path": "tag"}
LINES = [
    b"1 2 'k1|u a:2 x:3 y |b z:.5 7 |u c\n",
    b"-1 tag|geo\xc3\xa9:2 3:1 :2 :3 |ge d |7 5\n0 | p 3:1\n1 '|:2 q |u\n",
    b"0 'a b |u x:n/a y |b z\n0 |b x:n/a |u y\n1 \xff|u a\n1 |u:bad a|b:bad c\n1 |u x:1e99 |b y:1e99\n|\n",
]


def schema_of(**columns: dict[str, Any]) -> Schema:
    return Schema.from_columns({**columns, **LATE}, "mean_squared_error")


BOTH = schema_of(user=USER, rest=REST, id=TAG)
SCHEMAS = [BOTH, schema_of(user=USER), schema_of(rest={**REST, "namespaces": [""]}, user={**USER, "most": 2}, id=TAG)]


def entries(slot: RowSlot, name: str) -> list[tuple[int, float]]:
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
def test_native_and_slow_agree_cut_and_mutated(same: Any, number: int, take: Any) -> None:
    schema, trained = SCHEMAS[number], 0
    for record in LINES:
        for capacity in (1, 64):
            trained += same(schema, "vw", record, capacity).trained
        for worse in spoiled(record, take, 150, b" |:'\nubg7"):
            same(schema, "vw", worse)
    assert trained > 6


def test_each_column_has_its_namespaces_and_one_the_others() -> None:
    slot = decoded(BOTH, "1 'k1 |u 1:2 |7:3 2:1 | 4 |u 5 |b 6:.5 |uu 7")
    alone = {name: entries(decoded(schema_of(all=WIDE), f"1 |{part}"), "all")
             for name, part in (("u", "u 1:2 |7:3 2:1 |u 5"), ("rest", " 4 |b 6:.5 |uu 7"))}  # fmt: skip
    assert entries(slot, "user") == alone["u"] and len(alone["u"]) == 3
    assert entries(slot, "rest") == alone["rest"] and len(alone["rest"]) == 3
    none = schema_of(user=USER)  # and no column for the others, nor for the tag
    assert entries(decoded(none, "1 tag|b x:n/a |u 1:2 |c"), "user") == alone["u"][:1]
    assert entries(decoded(none, "1 |b c"), "user") == []


@pytest.mark.full
def test_indexes_are_those_of_vw() -> None:
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
        return sorted((at, round(value, 6)) for name in names for at, value in entries(slot, name))

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


def test_rows_are_written_and_read_again() -> None:
    """An index is the same one in any namespace, as written by either half; a name is VW's."""
    schema = schema_of(user=USER, rest=REST, id={**TAG, "kind": "category"})
    given = [
        {"user": [[3, 0.5], [262143, 2.0]], "rest": {"4": 1.5}, "tag": "k1", "late": 1, "w": 2},
        {"user": {"3": 0.5}, "rest": None, "tag": None, "late": 0},
        {"user": [], "rest": [[1, 1]], "tag": "k2"},
    ]
    ((made,),) = Records(schema, "vw", "rows", 9, 1 << 20).blocks(given, None, False)
    assert parse("vw", made.value).rows == parse("vw", record_format("vw").encode_rows(schema, given)).rows
    lines = made.value.decode().splitlines()
    assert lines[0].startswith("1 2 'k1 |u ") and " 'k2 |u | 1:1" in lines[2]
    slots = [decoded(schema, line) for line in lines]
    assert [entries(slot, "user") for slot in slots] == [[(3, 0.5), (262143, 2.0)], [(3, 0.5)], []]
    assert [entries(slot, "rest") for slot in slots] == [[(4, 1.5)], [], [(1, 1.0)]]
    named = decoded(schema, record_format("vw").encode_rows(schema, [{"user": {"a": 2}, "late": 1}]).decode())
    assert entries(named, "user") == entries(decoded(schema, "1 |u a:2"), "user")
    again = record_rows(schema, "vw", made.value).rows
    ((once_more,),) = Records(schema, "vw", "rows", 9, 1 << 20).blocks(again, None, False)
    assert parse("vw", once_more.value).rows == parse("vw", made.value).rows


def test_names_of_a_program_are_vws(same: Any) -> None:
    """Names are those of the first namespace that a column names, in rows of any shape."""
    schema = schema_of(user={**USER, "vw_bits": 18}, rest={**REST, "vw_bits": 18})
    row = {"user": {"age": 31, "länder": 0.5, "9": 2}, "rest": [["x", 1], ["page^7", 3]], "late": 1}
    read = decoded(schema, f"1 |u age:31 länder:0.5 {9 - vw_seed('u') + 2**32}:2 | x:1 page^7:3")
    expected = [entries(read, name) for name in ("user", "rest")]
    for record in (json.dumps(row), json.dumps(row, ensure_ascii=False)):
        assert same(schema, "json", record.encode()).trained == 1
        slot = RowSlot(schema, 1, "json")
        list(slot.record(record.encode()))
        assert [entries(slot, name) for name in ("user", "rest")] == expected
    slot = RowSlot(schema, 1)
    list(slot.batches([row]))
    assert [entries(slot, name) for name in ("user", "rest")] == expected
    others = RowSlot(schema_of(user=USER, rest=REST), 1, "json")
    list(others.record(json.dumps(row).encode()))
    assert entries(others, "rest") != expected[1]


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
        ({"a": USER, "b": {**WIDE, "namespaces": ["x", "u"]}}, "vw", "b", "got 'u' in a too"),
        ({"a": REST, "b": WIDE}, "vw", "b", "that names no namespaces for vw, got a too"),
        ({"a": USER}, "json", "a", "namespaces: expected a format whose features stand in some, such as vw, got json"),
        ({"a": USER}, "libsvm", "a", "namespaces: expected a format whose features stand in some"),
        ({"a": REST, "id": TAG}, "libsvm", "id", "got another column"),
        ({"a": REST, "id": {**TAG, "path": "tags"}}, "vw", "id", 'one with path = "tag"'),
    ],
)
def test_what_lines_cannot_give_is_a_mistake(
    columns: dict[str, dict[str, Any]], form: str, column: str, problem: str
) -> None:
    assert problem in dict(mistakes(form, schema_of(**columns)))[column]
    tables = {"columns": {**columns, **LATE}, "records": {"format": form}, "model": {"loss": "mean_squared_error"}}
    with pytest.raises(UserMistake, match=column):
        Job.from_tables(tables)
