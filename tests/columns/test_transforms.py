"""Every transform that the folder holds does what its slow half says, in every format, by rows and by blocks; what
expressions mean, of which nothing is run; patterns beside Python's `re`."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_format import is_columnar, plain_formats
from hypothesis import given
from hypothesis import strategies as st
from long_tables import in_full_all, some
from looped import over
from slots import RowSlot
from transformed import examples, ids, rows_of, schema_of

from streamtrain import _native
from streamtrain.columns import transforms
from streamtrain.columns.expression import ExpressionError, columns_of, compiled
from streamtrain.columns.patterns import MOST_STEPS
from streamtrain.columns.patterns import compiled as compiled_pattern
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from tests.columns import reference
from tests.columns.conftest import assert_program_rows
from tests.oracles import transforms as oracles
from tests.oracles.records import encode_records
from tests.oracles.transforms.expr import value_of
from tests.oracles.transforms.extract import searching

FORMATS = plain_formats(Schema.from_columns({"x": {}, "y": {"role": "label"}}, "binary_cross_entropy"))
TIMES = 40  # so that packed rows go by blocks
LOSS = "binary_cross_entropy"
LATE: dict[str, Any] = {"role": "label"}


def around_of(rows: list[dict[str, Any]]) -> reference.Around:
    at = next((row["x"] for row in rows if isinstance(row.get("x"), int)), -1)
    return reference.Around(timestamp_ms=at)


@over("name", transforms.names())
def test_a_transform_describes_itself(name: str) -> None:
    assert transforms.REGISTRY.describe()[name]
    assert next(iter(transforms.options(name))) == name


def test_every_transform_has_a_native_half_and_an_oracle() -> None:
    assert _native.cell_transforms() == transforms.names()
    assert sorted(path.stem for path in Path(oracles.__path__[0]).glob("[!_]*.py")) == transforms.names()


@over(
    ("format_name", "name", "number", "example"),
    lambda: [(format_name, *example) for example in examples() for format_name in FORMATS], sampled=True,
)  # fmt: skip
def test_the_examples_in_every_format(
    format_name: str, name: str, number: int, example: dict[str, Any], same: Callable[..., reference.Reference]
) -> None:
    schema = schema_of(example)
    for times in (1, TIMES):
        rows = rows_of(example, times)
        around = around_of(rows)
        trained = 0
        for record in encode_records(format_name, schema, rows):
            for capacity in (7, 1024):
                trained += same(schema, format_name, record, capacity, around).trained
        assert trained > 0


@over(("name", "number", "example"), examples(), ids=ids())
def test_the_examples_as_rows_of_a_program(name: str, number: int, example: dict[str, Any]) -> None:
    schema = schema_of(example).without_message()
    rows = rows_of(example, 3)
    (record,) = encode_records("json", schema, rows)
    assert_program_rows(schema, record, rows, [list(row.values()) for row in rows])


CHAIN = {
    "a": {"role": "input"},
    "b": {"missing": 2},
    "carrier": {"kind": "category", "buckets": 7, "missing": "none"},
    "at": {"role": "event_time", "missing": 3},
    "w": {"role": "weight"},
}
TABLES = {
    "speed": {"expr": "a / b", "role": "input"},
    "log_speed": {"log1p": "speed", "missing": "skip"},
    "fast": {"bins": "speed", "edges": [1, 2.5], "role": "input"},
    "small": {"lower": "carrier", "role": "input"},
    "route": {"cross": ["small", "fast"], "buckets": 100, "missing": "none"},
    "twice": {"cross": ["route", "carrier"], "buckets": 300, "hash_bits": 64},
    "was_b": {"is_missing": "b"},
    "late": {"expr": "a > 3 and not b is missing", "role": "label", "missing": 0},
}
WHERE = "(a is missing or a != 7) and carrier != 'XX' and (log_speed < 2 or log_speed is missing)"


def chained(where: str | None = WHERE) -> Schema:
    return Schema.from_columns(CHAIN, LOSS, TABLES, where)


def chain_rows(count: int, seed: int = 1) -> list[dict[str, Any]]:
    random = np.random.default_rng(seed)
    kinds = [[1, 2.5, 7, None, -4, 30, "n/a"], [0, 1, None, 2, 8], ["AA", "xx", "XX", None, "\u00c9"],
             [5, None, 9], [1, 0.5, -1]]  # fmt: skip
    weights = [[20, 20, 10, 5, 5, 5, 1], [3, 30, 5, 30, 20], [30, 30, 5, 5, 5], [5, 2, 5], [20, 20, 1]]
    columns = [random.choice(len(kind), count, p=np.array(w) / sum(w)) for kind, w in zip(kinds, weights, strict=True)]
    return [
        {name: kind[column[i]] for name, kind, column in zip(CHAIN, kinds, columns, strict=True)} for i in range(count)
    ]


@in_full_all()
@over("where", [None, WHERE], ids=["all", "where"])
@over("format_name", FORMATS)
def test_transforms_of_transforms(
    format_name: str, where: str | None, same: Callable[..., reference.Reference], take: Callable[..., list[int]]
) -> None:
    """Rows left out, rows skipped, dead ones and others beside one another; the label is one of what is made."""
    schema = chained(where)
    found = reference.Reference()
    for seed in range(3 if take is some else 6):
        rows = chain_rows(300, seed)
        for row in rows:
            if seed % 3:  # records without the cells that do not fit, which go by blocks
                row["a"] = None if isinstance(row["a"], str) else row["a"]
                row["w"] = abs(row["w"])
        try:
            records = encode_records(format_name, schema, rows)
        except UserMistake:
            continue
        for record in records:
            result = same(schema, format_name, record, 1024)
            assert same(schema, format_name, record, 7).rows == result.rows
            found.trained += result.trained
            found.filtered += result.filtered
            found.dead += result.dead
    assert found.trained > 300 and len(found.filtered) > 50
    assert found.dead or is_columnar(format_name)  # whose encoder refuses what would be


def test_the_label_that_is_made_is_no_matter_of_requests(same: Callable[..., reference.Reference]) -> None:
    schema = chained().for_requests()
    rows = [{"a": 2, "b": 1, "carrier": "AA"}, {"a": 7, "b": 1, "carrier": "XX"}, {"a": None, "b": 1}]
    (record,) = encode_records("json", schema, rows)
    result = same(schema, "json", record)
    assert result.trained == 2 and [path for _, path, _ in result.dead] == ["transforms.log_speed"]
    assert schema.decoded_names == {"a", "b", "carrier"}


def test_an_input_that_nothing_reads_is_passed_over(same: Callable[..., reference.Reference]) -> None:
    schema = Schema.from_columns({"x": {}, "raw": {"role": "input"}, "late": LATE}, LOSS)
    assert same(schema, "json", b'{"x":1,"raw":{"any":"thing"},"late":1}').trained == 1


def test_hashes_do_not_stand_for_texts_that_transforms_read(same: Callable[..., reference.Reference]) -> None:
    columns = {"c": {"kind": "category", "buckets": 9}, "late": LATE}
    plain, read = (Schema.from_columns(columns, LOSS, given) for given in ({}, {"l": {"lower": "c", "buckets": 5}}))
    rows = [{"c": "AA", "late": 1}, {"c": "B6", "late": 0}]
    (hashed,), (texts,) = (encode_records("packed", schema, rows) for schema in (plain, read))
    assert same(plain, "packed", hashed).trained == same(read, "packed", texts).trained == 2
    assert [path for _, path, _ in same(read, "packed", hashed).dead] == ["$.c[0]", "$.c[1]"]


@over("hash_bits", [32, 64])
@over("format_name", FORMATS)
def test_hashes_that_a_category_takes_are_those_its_crosses_are_made_of(
    format_name: str, hash_bits: int, same: Callable[..., reference.Reference]
) -> None:
    """Checks blocks in which no text is missing, and those where one is."""
    category = {"kind": "category", "buckets": 9, "hash_bits": hash_bits, "missing": "none"}
    tables = {"way": {"cross": ["a", "b"], "buckets": 1000}, "again": {"cross": ["b", "a"], "buckets": 1000}}
    schema = Schema.from_columns({"a": category, "b": category, "late": LATE}, LOSS, tables)
    rows: list[dict[str, Any]] = [{"a": f"a{i % 7}", "b": f"{i % 5}b", "late": i % 2} for i in range(TIMES)]
    for table in (rows, [*rows[1:], {"a": None, "b": "b", "late": 1}]):
        records = encode_records(format_name, schema, table)
        assert sum(same(schema, format_name, record).trained for record in records) == len(table)


def test_a_row_whose_condition_cannot_be_read_is_dead_and_not_left_out(
    same: Callable[..., reference.Reference],
) -> None:
    columns = {"x": {"role": "input"}, "y": {}, "late": LATE}
    schema = Schema.from_columns(columns, LOSS, {}, "x > 0")
    for cells, fate in ((("n/1", 1), "dead"), ((-1, "n/1"), "filtered"), ((1, "n/1"), "dead"), (("n/a", 1), "filtered"),
                        ((1, 1), "trained")):  # fmt: skip
        (record,) = encode_records("msgpack", schema, [{"x": cells[0], "y": cells[1], "late": 1}])
        result = same(schema, "msgpack", record)
        assert {"dead": len(result.dead), "filtered": len(result.filtered), "trained": result.trained}[fate] == 1, cells
    assert [(row, path) for row, path, _ in same(schema, "json", b"[-1,2]").dead] == [(0, "$")]


@over(
    ("tables", "where", "problem"),
    [
        (
            {"t": {"log1p": "dista"}},
            None,
            "transforms.t: expected a column that stands before it, got 'dista'; did you mean 'distance'?",
        ),
        ({"t": {"expr": "distance / hour"}}, None, "transforms.t: expected a column that stands before it, got 'hour'"),
        ({"t": {"log1q": "distance"}}, None, "did you mean 'log1p'?"),
        ({"t": dict.fromkeys(transforms.names()[:2], "distance")}, None, "expected one transform, among"),
        ({"t": {"log1p": "carrier"}}, None, "expected columns that hold a number, got carrier, which holds a text"),
        ({"t": {"log1p": "late"}}, None, "got late, which is the label: no request has it"),
        (
            {"t": {"log1p": "distance", "buckets": 4}},
            None,
            "transforms.t: buckets: only a category, a text or a sparse column has one",
        ),
        ({"t": {"log1p": "distance", "path": "a.b"}}, None, "path: expected none, such cells stand in no record"),
        ({"t": {"clip": "distance", "low": 3, "high": 2}}, None, "high: expected a number above low"),
        ({"t": {"clip": "distance", "lowest": 3}}, None, "lowest: "),
        ({"t": {"bins": "distance", "edges": [2, 1]}}, None, "edges: expected numbers that ascend"),
        ({"t": {"bins": "distance", "edges": [1], "buckets": 9}}, None, "buckets: expected none, there are 2; got 9"),
        ({"t": {"bins": "distance", "edges": [1], "missing": 2}}, None, "or the number of one of 2 buckets, got 2"),
        ({"t": {"lower": "carrier"}}, None, "expected a number of buckets for a category, or a vocabulary, got none"),
        ({"t": {"lower": "carrier", "kind": "number"}}, None, "expected one that takes text"),
        ({"distance": {"log1p": "distance"}}, None, "expected a name of its own, got 'distance' again"),
        ({"a": {"log1p": "b"}, "b": {"log1p": "distance"}}, None, "transforms.a: expected a column that stands before"),
        ({"a{1..2}": {"log1p": "{distance,delay,hour}"}}, None, "expected braces for as many as the name's, 2, got 3"),
        ({"t": {"time": "distance", "parts": ["hour"]}}, None, "expected columns that hold a time"),
        ({"t": {"log1p": "distance", "missing": "keep"}}, None, '"keep" is for what transforms read'),
        ({}, "distanc > 0", "records.where: expected a column that stands before it, got 'distanc'; did you mean"),
        ({}, "distance + 1", "records.where: expected a condition, which is true or false, got the number"),
        ({}, "carrier > 'A'", "expected a number"),
        ({}, "carrier == 3", "expected a number, got carrier, which holds a text"),
        ({}, "distance > ", "expected an expression such as"),
        ({}, "__import__('os').system('x') == 0", "records.where: "),
        ({}, "distance[0] > 1", "records.where: "),
    ],
)
def test_mistakes_are_reported_with_the_nearest_name(tables: dict[str, Any], where: str | None, problem: str) -> None:
    columns = {"distance": {}, "delay": {}, "carrier": {"kind": "category", "buckets": 4}, "late": LATE}
    with pytest.raises(UserMistake) as raised:
        Schema.from_columns(columns, LOSS, tables, where)
    assert problem in str(raised.value)


def test_braces_go_in_step_and_each_has_its_own() -> None:
    columns = {"x{1..3}": {}, "late": LATE}
    schema = Schema.from_columns(columns, LOSS, {"log{1..3}": {"log1p": "x{1..3}"}, "d": {"expr": "x1 - x2"}})
    assert schema.numbers == ["x1", "x2", "x3", "log1", "log2", "log3", "d"]
    assert [one.reads for one in schema.compiled_transforms] == [["x1"], ["x2"], ["x3"], ["x1", "x2"]]
    assert Schema.from_dict(schema.to_dict()) == schema


HOLDS = {"x": "number", "y": "number", "t": "text", "u": "text", "user.age": "number", "odd name": "number"}


def value(text: str, **cells: float | str | None) -> float | None:
    program = compiled(text, HOLDS)
    found = [cells.get(name.replace(".", "_").replace(" ", "_")) for name in program.columns]
    return value_of(program, found, [cell is not None for cell in found])


@over(
    ("text", "expected"),
    [
        ("x + y * 2", 5), ("(x + y) * 2", 8), ("x - y - 1", 1), ("x / (y - 1)", None), ("-x", -3), ("x > y", 1),
        ("x > y > 2", 0), ("not x > y", 0), ("x in (1, 3)", 1), ("x not in [1, 3]", 0), ("t == 'a'", 1),
        ("'b' == t", 0), ("t != u", None), ("u is missing", 1), ("u is not missing or x > 9", 0), ("t in ('a',)", 1),
        ("u == 'a' or x == 3", 1), ("u == 'a' and x == 4", 0), ("u == 'a' and x == 3", None),
        ("otherwise(user.age, 1 + 1)", 2), ("column('odd name') == 5", 1), ("min(x, y) + max(x, y)", 4),
        ("sqrt(0 - x)", None), ("log(0)", None), ("exp(1000)", None), ("floor(x / 2)", 1), ("abs(y - x)", 2),
        ("1e308 * 10", None), ("1 / (1 / (x - 3))", None),
    ],
)  # fmt: skip
def test_what_it_means(text: str, expected: float | None) -> None:
    assert value(text, x=3, y=1, t="a", odd_name=5) == expected


@over(
    "text",
    ["", " ", "x +", "x; y", "x = 3", "lambda: x", "[x for x in y]", "x.y.z", "f(x)", "min(x)", "x if y else 1",
     "x ** 2", "'a'", "t",
     "t + 1", "t < 'b'", "x == 'a'", "not x", "x and y", "x is y", "x is None", "True", "1j", "...",
     "f'{x}'",
     "x @ y", "x & y", "~x", "column(x)", "column('a', 'b')", "min(*x)", "min(x, y=1)", "9" * 400, "x in ()", "x in y",
     "otherwise(x, 1", "(" * 300 + "x" + ")" * 300, "-" * 3000 + "x", "x" * 5000, "x+" * 300 + "x", "\0", "x\ny",
     "yield x", "await x", "x := 1", "missing", "missing is missing", "x is missing missing",
     "t == 'it''s'", "t == 'a' \"b\""],
)  # fmt: skip
def test_what_it_is_not(text: str) -> None:
    with pytest.raises(ExpressionError):
        compiled(text, HOLDS)


@given(st.text(alphabet="xyt01.+-*/()<>=!'andornotinismissing, ", max_size=40))
def test_any_text_is_answered(text: str) -> None:
    try:
        found = value(text, x=2, y=None, t="a")
    except ExpressionError:
        return
    assert found is None or math.isfinite(found)


def test_its_columns_in_their_order() -> None:
    text = "b + a * b - min(c.d, column('odd name')) > 0 and z is missing"
    assert columns_of(text) == ["b", "a", "c.d", "odd name", "z"]


def schema_of_pattern(pattern: str, group: int = 0) -> Schema:
    table = {"extract": "x", "pattern": pattern, "group": group, "buckets": 1 << 20, "missing": ""}
    columns: dict[str, Any] = {"x": {"role": "input", "kind": "category"}, "y": {"role": "label"}}
    return Schema.from_columns(columns, "mean_squared_error", {"t": table})


def generated(chance: random.Random, depth: int = 3) -> str:
    """A pattern of few letters, so that it often matches."""
    if depth == 0:
        return chance.choice(["a", "b", "c", ".", "[ab]", "[^a]", r"\d", r"\w", r"\-", "\u00e9"])
    inner = [generated(chance, depth - 1) for _ in range(chance.randint(1, 3))]
    form = chance.randrange(5)
    if form == 0:
        return "".join(inner)
    if form == 1:
        return f"({'|'.join(inner)})"
    if form == 2:
        return f"(?:{inner[0]}){chance.choice(['*', '+', '?', '{2}', '{1,}', '{0,2}'])}{chance.choice(['', '?'])}"
    return chance.choice(["^", ""]) + "".join(inner) + chance.choice(["$", "", ""])


@in_full_all()
def test_native_and_slow_agree_on_generated_patterns(same: Any, take: Any) -> None:
    chance, matched = random.Random(4), 0
    count = 100 if take is some else 600
    for _ in range(count):
        pattern = generated(chance)
        try:
            groups = compiled_pattern(pattern, 0).groups
        except ValueError:
            continue
        schema = schema_of_pattern(pattern, chance.randint(0, groups))
        rows = [["".join(chance.choices("aabbc1-\u00e9\n", k=chance.randrange(9))), 1] for _ in range(20)]
        matched += sum(searching(pattern).search(row[0]) is not None for row in rows)
        assert same(schema, "json", json.dumps(rows).encode(), 64).trained == 20
    assert matched > 3 * count


@over("pattern", ["(a|a|aa)*b", "(?:a+)+b", "a?" * 60 + "a" * 60 + "b"])
def test_time_is_linear(pattern: str) -> None:
    """Backtracking would take longer than the world."""
    slot = RowSlot(schema_of_pattern(pattern), 4)
    started = time.process_time()
    ((rows, _),) = list(slot.batches([{"x": "a" * 20_000, "y": 1}]))
    assert rows == 1 and time.process_time() - started < 5


@over(
    ("pattern", "group", "problem"),
    [
        ("(a", 0, "pattern: expected ) at 2"),
        ("a)", 0, "pattern: expected the pattern's end at 1"),
        ("*a", 0, "pattern: expected a letter at 0, got '*'"),
        ("(a?)*", 0, "pattern: expected what takes a letter before a repetition at 5"),
        ("[b-a]", 0, "pattern: expected a range from lower to higher"),
        ("[a", 0, "pattern: expected ] at the pattern's end"),
        ("a{3,2}", 0, "pattern: expected the lower count first, got 3 and 2"),
        (r"\1", 0, "pattern: expected d, w, s, n, t, r or a sign behind"),
        ("(?=a)", 0, "pattern: expected a letter at 1"),
        ("a\\", 0, "pattern: expected something behind the last"),
        ("(?:a{900}){900}", 0, f"pattern: expected a pattern of at most {MOST_STEPS:,} steps"),
        ("(" * 60 + "a" + ")" * 60, 0, "pattern: expected at most 50 groups within each other"),
        ("(a)", 2, "group: expected at most 1, the pattern's groups, got 2"),
    ],
)
def test_mistakes_of_patterns(pattern: str, group: int, problem: str) -> None:
    with pytest.raises(UserMistake) as raised:
        schema_of_pattern(pattern, group)
    assert problem in str(raised.value)
