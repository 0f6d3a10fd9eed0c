"""CSV beyond what every format is asked: its options, Python's own reader beside it, texts that are numbers; rows of a
JSON record on lines of their own."""

from __future__ import annotations

import csv
import io
import json
import random
from base64 import b64decode, b64encode
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pytest
from long_tables import examples, in_full_all
from looped import over
from proto_schemas import proto
from slots import RowSlot, decode_rows

from streamtrain import _native
from streamtrain.columns.formats import checked, mistakes, options
from streamtrain.columns.record_encoding import Records
from streamtrain.columns.row_plan import RowPlan
from streamtrain.columns.rows import record_rows
from streamtrain.columns.schema import Schema
from streamtrain.compute import losses
from streamtrain.compute.options import read
from streamtrain.errors import UserMistake
from tests.columns.conftest import NESTED, SCHEMAS, SIMPLE, assert_same, spoiled
from tests.oracles import kinds
from tests.oracles.kinds import Wrong
from tests.oracles.records import encode_rows, oracle, parse

OPTIONS = [
    {"delimiter": "\t"},
    {"delimiter": ";", "quote": "'"},
    {"header": True},
    {"delimiter": "|", "header": True, "quote": "'"},
]
LETTERS = ["a", "1", "é", '"', "'", ",", "\t", ";", "|", " ", "\n", "\r\n", "\ufeff"]


def named(given: dict[str, Any]) -> dict[str, Any]:
    return {"name": "csv", **read(given, options("csv"))}


def written(rows: list[list[str]], given: dict[str, Any], ending: str, quoting: Any) -> bytes:
    file = io.StringIO()
    writer = csv.writer(
        file, delimiter=given.get("delimiter", ","), quotechar=given.get("quote", '"'), lineterminator=ending,
        quoting=quoting,
    )  # fmt: skip
    writer.writerows(rows)
    return file.getvalue().encode()


@over("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@over("given", [{}, *OPTIONS[:2]], ids=str)
def test_what_pythons_writer_writes_and_its_reader_reads(given: dict[str, Any], quoting: Any) -> None:
    chance = random.Random(7)
    for _ in range(300):
        width = chance.randint(1, 6)
        rows = [
            ["".join(chance.choices(LETTERS, k=chance.randint(0, 5))) for _ in range(width)]
            for _ in range(chance.randint(0, 6))
        ]
        record = written(rows, given, chance.choice(["\n", "\r\n"]), quoting)
        if not record or record.startswith("\ufeff".encode()):
            continue
        reader = csv.reader(
            io.StringIO(record.decode(), newline=""), delimiter=given.get("delimiter", ","),
            quotechar=given.get("quote", '"'), strict=True,
        )  # fmt: skip
        expected = [[cell or None for cell in row] for row in reader if row]
        found = parse(named(given), record)
        assert found.rows == expected and found.broken is None
        assert encode_rows(named(given), SIMPLE, found.rows) == encode_rows(named(given), SIMPLE, expected)
        assert parse(named(given), encode_rows(named(given), SIMPLE, expected) or b"\n").rows == expected


def given_records(given: dict[str, Any]) -> list[bytes]:
    """The examples with these options, with and without a line of names."""
    between, quote = given.get("delimiter", ",").encode(), given.get("quote", '"').encode()
    headers = [b"x1,x2,carrier,late", b"late,x2,other,x1", b'x1,"x2","car""r",late,w,x1', b"\xff,x1,x2,late", b'"x1,']
    examples = [example.replace(b",", between).replace(b'"', quote) for example in oracle("csv").EXAMPLES]
    if not given.get("header"):
        return examples
    named = [header.replace(b",", between).replace(b'"', quote) for header in headers]
    return [name + end + each for name in named for end in (b"\n", b"\r\n\r\n", b"") for each in examples] + [
        b"x1" + between + b"late", b"x1", b"x2\n" * 3,
    ]  # fmt: skip


@in_full_all()
@over("given", OPTIONS, ids=str)
def test_options_agree_with_the_slow_reading(given: dict[str, Any], take: Any) -> None:
    format_name, trained = named(given), 0
    for record in given_records(given):
        for schema in (SCHEMAS["simple"], SCHEMAS["requests"], SCHEMAS["around"]):
            trained += assert_same(schema, format_name, record, 3).trained
            for worse in spoiled(record, take, 25, b",\"\n\r\xe91;'|"):
                assert_same(schema, format_name, worse, 3)
    assert trained


def test_a_header_is_that_of_its_record() -> None:
    slot = RowSlot(SIMPLE, 4, named({"header": True}))
    for record, expected in (
        (b"x1,x2,late\n1,2,0\n", [1, 2]),
        (b"x1,x2,late\n3,4,1\n", [3, 4]),
        (b"x1,x2,late,x1\n1,2,0,5\n", [5, 2]),
        (b"x2,x1,late\r\n1,2,0\r\n", [2, 1]),
        (b"x2,x1,late", None),
        (b"x2,x1,later\n1,2,0\n", None),
        (b"x2,x1,late\n7,8,1", [8, 7]),
    ):
        ((rows, _),) = slot.record(record)
        assert (slot.views["numbers"][0].tolist() if rows else None) == expected


TEXTS = ["1", "-1", "+1", " 2 ", "1.5", ".5", "1.", "1e3", "-0", "007", "nan", "inf", "true", "false", "walk", "x",
         "1 2", "9007199254740993", "18446744073709551615", "18446744073709551616", "1790000000000123456", "-5",
         "1e400", "0", "2026-11-22T02:10:00Z", "9" * 30, "é", "1790000000000.75"]  # fmt: skip
COLUMNS: dict[str, dict[str, Any]] = {
    "number": {},
    "category": {"kind": "category", "buckets": 1000},
    "weight": {"role": "weight"},
    "time": {"role": "event_time"},
    "seconds": {"role": "event_time", "unit": "s"},
    "nanoseconds": {"role": "event_time", "unit": "ns"},
    "moment": {"role": "event_time", "parse": "iso8601", "missing": 3},
    "label": {"role": "label"},
    "class": {"role": "label", "classes": ["walk", "sit", "true"]},
    "digits": {"role": "label", "classes": ["7", "1", "007"]},
    "pair": {"role": "label", "classes": ["walk", "sit"]},
}


@over("loss", {losses.label_kind(name): name for name in losses.names()}.values())
@over("kind", COLUMNS)
def test_texts_are_numbers_without_leave(kind: str, loss: str) -> None:
    column = COLUMNS[kind]
    late: dict[str, Any] = {} if column.get("role") == "label" else {"y": {"role": "label", "classes": 3}}
    if late and loss != "softmax_cross_entropy":
        late = {"y": {"role": "label"}}
    try:
        schema = Schema.from_columns({"x": {}, "a": column, **late}, loss)
    except UserMistake:
        return
    for text in TEXTS:
        record = f'1,{text},1\n"2","{text}","1"\n' if late else f"1,{text}\n"
        assert_same(schema, "csv", record.encode(), 4)


def test_a_whole_number_is_the_category_of_its_digits() -> None:
    schema = Schema.from_columns(
        {"c": {"kind": "category", "buckets": 10_000}, "late": {"role": "label"}}, "binary_cross_entropy"
    )
    slot, other = RowSlot(schema, 1, "csv"), RowSlot(schema, 1, "json")
    for number in (0, 7, -3, 2**70):
        list(slot.record(f"{number},1".encode()))
        list(other.record(json.dumps({"c": number, "late": 1}).encode()))
        assert slot.views["categories"][0, 0] == other.views["categories"][0, 0]


@over(
    ("record", "path", "reason"),
    [
        (b"1,2,AA,1\n1,2,AA\n", "$[1]", "expected 4 cells, got 3"),
        (b"1,2,AA,1,5,6\n", "$[0]", "expected 4 cells, got 6"),
        (b'1,2,AA,1\n1,"2', "$[1]", "expected the closing quote of the cell at byte 11, got the record's end"),
        (b'1,"2"x,AA,1', "$[0].x2", "expected number, got text behind a closing quote"),
        (b"1,x,AA,1", "$[0].x2", 'expected number, got "x"'),
        (b"1,2,\xff,1", "$[0].carrier", "expected text, integer or boolean, got text that is not UTF-8"),
    ],
)
def test_what_is_said_of_bad_rows(record: bytes, path: str, reason: str) -> None:
    ((_, tally),) = RowSlot(SIMPLE, 4, "csv").record(record)
    assert tally.dead_rows[0][2:4] == (path, reason)


def test_a_row_that_holds_nothing_is_one() -> None:
    """A request of one column, whose cell is missing."""
    late = {"role": "label", "from": "key", "parse": "decimal"}
    columns = {"x": {"missing": 7}, "at": {"from": "offset"}, "late": late}
    schema = Schema.from_columns(columns, "binary_cross_entropy")
    native = _native.RecordEncoder("csv", schema.native_columns(), lambda value, column: None)
    native.read_rows([{}, {"x": 1}])
    record = native.encode(0, 2)
    assert record == b'""\n1\n' == encode_rows("csv", schema, [{}, {"x": 1}])
    ((rows, _),) = RowSlot(schema.for_requests(), 4, "csv").record(record)
    assert rows == 2


def test_the_error_of_a_request_has_both_numbers_of_cells() -> None:
    ((_, tally),) = RowSlot(SCHEMAS["requests"], 4, "csv").record(b"1,2\n")
    assert tally.dead_rows[0][3] == "expected 9 cells (or 7 without label and weight), got 2"


WRONG = [{"delimiter": ""}, {"delimiter": "::"}, {"delimiter": "5"}, {"delimiter": '"'}, {"delimiter": "é"},
         {"header": 1}, {"quote": "|"}, {"separator": ","}]  # fmt: skip


@over("wrong", WRONG, ids=str)
def test_options_that_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserMistake, match=f"records.{next(iter(wrong))}"):
        checked({"name": "csv", **wrong})


def test_a_decimal_comma_is_written_as_it_is_read() -> None:
    """A program's numbers in formats that write them as texts; 1.234 would be read as 1,234."""
    columns = {"x": {"parse": "decimal_comma"}, "y": {"role": "label"}}
    schema = Schema.from_columns(columns, "mean_squared_error")
    fields = [{"name": "x", "type": "string"}, {"name": "y", "type": "double"}]
    avro = {"name": "avro", "schema": json.dumps({"type": "record", "name": "Row", "fields": fields})}
    by_schema = [checked(avro), proto("message Row { string x = 1; double y = 2; }")]
    numbers = [1.234, -0.5, 12.0, 1e-7, 12345.678, -1e17]
    for format in ("csv", named({"delimiter": ";"}), "packed", "arrow", "json", *by_schema):
        rows = [{"x": number, "y": number} for number in numbers] + [{"x": "1.234,5", "y": 1234.5}]
        records = [each.value for block in Records(schema, format, "rows", 1000, 1 << 20).blocks(rows, None, False)
                   for each in block]  # fmt: skip
        found = RowPlan(schema, format, format).decode(records)
        assert found["x"].tolist() == found["y"].tolist() == np.array([*numbers, 1234.5], np.float32).tolist(), format


AMOUNTS = ["(", ")", "-", "+", "$", "US$", "USD", "€", " ", "\u00a0", "\u202f", "%", "e2", "E", ",", ".", "'", "0",
           "1", "12", "123", "234", "1234", "1,234", "1.234"]  # fmt: skip


@over("parse", ["amount", "decimal_comma"])
def test_amounts_are_what_the_slow_pattern_reads(parse: str) -> None:
    chance = random.Random(3)
    texts = ["".join(chance.choices(AMOUNTS, k=chance.randint(1, 5))) for _ in range(examples(48_000))]
    texts += [f"({text})" for text in texts[: len(texts) // 4]]
    schema = Schema.from_columns({"x": {"parse": parse}, "y": {"role": "label"}}, "mean_squared_error")
    rows = [{"x": text, "y": 1} for text in texts]
    assert assert_same(schema, "json", json.dumps(rows).encode(), 512).trained > len(rows) / 15


@over("scale", [0, 2, 6, 38, -3])
def test_decimals_of_connect_are_pythons_decimals(scale: int) -> None:
    """Java's BigDecimal in base64. `null` is base64 of three bytes, and no missing cell."""
    chance, parse = random.Random(scale), f"connect_decimal:{scale}"
    wholes = [chance.randint(-(1 << bits), (1 << bits) - 1) for bits in chance.choices(range(99), k=500)]
    wholes += [10 ** max(scale, 0) * each for each in (0, 1, 1, -1, 2)] + [7, -300, (1 << 255) - 1, -(1 << 255)]
    texts = [b64encode(each.to_bytes(each.bit_length() // 8 + 1, "big", signed=True)).decode() for each in wholes]
    wholes += [int.from_bytes(b64decode(word), "big", signed=True) for word in ("null", "None")]
    texts += ["null", "None"]
    wrong = ["A", "AA", "AAA=A", "-", "12.5", "AA A", "A===", "\u00e9" * 2, b64encode(bytes(33)).decode(), "AAAA" * 20]
    category = {"c": {"kind": "category", "buckets": 1000, "parse": parse, "missing": "none"}}
    rows = [{"x": text, "c": text, "y": text} for text in [*texts, *wrong, "", 0, 1, 1.0, True, 0.5]]
    for label in ({}, {"classes": ["0", "1"]}):
        loss = "binary_cross_entropy" if label else "mean_squared_error"
        columns = {"x": {"parse": parse, "missing": 0}, "y": {"role": "label", "parse": parse, **label}}
        for more in ({}, category):
            schema = Schema.from_columns({**columns, **more}, loss)
            assert assert_same(schema, "json", json.dumps(rows).encode(), 600).trained > 2
    schema = Schema.from_columns({"x": {"parse": parse}, "y": {"role": "label"}}, "mean_squared_error")
    records = [json.dumps({"x": text, "y": 1}).encode() for text in [*texts, *wrong]]
    decoded = RowPlan(schema, "json", "json").decode(records, errors="leave_out")
    exact = [float(Decimal(whole).scaleb(-scale, Context(prec=99))) for whole in wholes]
    assert decoded["x"].tolist() == [float(np.float32(each)) for each in exact if abs(each) <= 1e18]
    left_out = decoded.left_out[-len(wrong):]
    assert all("expected number" in each.reason and "no base64 of 1 to 32 bytes" in each.reason for each in left_out)
    assert "expected records of format json" in dict(mistakes("msgpack", schema))["x"]


def test_a_fraction_is_no_category() -> None:
    with pytest.raises(UserMistake, match=r"carrier: expected text or a whole number, got 1\.5"):
        encode_rows("csv", SIMPLE, [{"carrier": 1.5}])
    with pytest.raises(Wrong):
        kinds.of(SCHEMAS["simple"].columns[0][1]).written(SCHEMAS["simple"].columns[0][1], "binary_cross_entropy", "x")


ROWS: list[Any] = [
    {"x1": 1, "x2": 2, "carrier": "AA", "late": 1}, [1.5, 2, "B6", 0], {"x1": 3, "x2": 4, "late": 0}, {"x1": 5},
]  # fmt: skip


def lines(rows: list[Any], between: str = "\n") -> bytes:
    return between.join(json.dumps(row) for row in rows).encode()


@over(
    ("record", "trained", "filtered", "dead"),
    [
        (lines(ROWS), 3, 1, []),
        (b"\n\r\n " + lines(ROWS, "\r\n \n") + b"\n\n", 3, 1, []),
        (lines(ROWS[:1]) + b"\n", 1, 0, []),
        (lines(ROWS[:2], " "), 0, 0, ["$"]),
        (lines(ROWS[:1]) + b"\n7", 0, 0, ["$"]),
        (lines([ROWS[0], {"x1": "n/a", "x2": 1, "late": 1}, ROWS[0]]), 2, 0, ["$[1].x1"]),
        (lines([{"x1": [1, 2], "x2": [1, 2], "late": [1, 0]}, ROWS[0]]), 1, 0, ["$[0].x1"]),
        (lines([ROWS[0], {"x1": [1, 2], "x2": [1, 2], "late": [1, 0]}]), 1, 0, ["$[1].x1"]),
        (lines([{"x1": [1, 2], "x2": [1, 2], "late": [1, 0]}]) + b"\n", 2, 0, []),
        (lines([ROWS[0], [[1, 2, "AA", 0]], ROWS[0]]), 2, 0, ["$[1]"]),
        (lines([ROWS[0], {}, ROWS[0]]), 2, 1, []),
        (lines(ROWS[:1]) + b'\n{"x1": 1,}\n' + lines(ROWS[:1]), 1, 0, ["$[1]"]),
        (lines(ROWS[:2]) + b"\n" + lines(ROWS[:2], " "), 3, 0, ["$[3]"]),
        (lines([ROWS[:2], ROWS[:2]]), 2, 0, ["$[2]"]),
        (lines(ROWS[:1]) + b"\n{", 1, 0, ["$[1]"]),
    ],
)
def test_lines(same: Any, record: bytes, trained: int, filtered: int, dead: list[str]) -> None:
    found = same(SIMPLE, "json", record)
    assert (found.trained, len(found.filtered), [path for _, path, _ in found.dead]) == (trained, filtered, dead)


@in_full_all()
def test_mutated_lines(same: Any, take: Any) -> None:
    whole = lines([*ROWS, {"user": {"x1": 1}, "x1": 2, "late": 1}], "\n")
    for worse in spoiled(whole, take, 2000, b'\n\r {}[]",:07xe-'):
        for schema in (SIMPLE, NESTED):
            same(schema, "json", worse)


def test_cut_and_taken_up_at_every_row() -> None:
    record = lines([ROWS[0]] * 7 + [ROWS[3], {"x1": "n/1"}])
    _, tally = decode_rows("json", SIMPLE, record)
    assert (tally.trained, tally.filtered, tally.dead) == (7, 1, 1)
    slot = RowSlot(SIMPLE, 2, "json")
    for row in range(10):
        tallies = [each for _, each in slot.record(record, row)]
        assert sum(each.trained for each in tallies) == max(0, 7 - row)
        assert sum(each.dead for each in tallies) == (row < 9)
    assert slot.filler.record_rows == 9


def test_they_are_shown_and_sent_again_as_rows() -> None:
    record = lines([*ROWS, {"x1": "n/a"}]) + b"\n{"
    found = record_rows(SIMPLE, "json", record)
    by_name = [ROWS[0], dict(zip(dict(SIMPLE.columns), ROWS[1], strict=True)), *ROWS[2:], {"x1": "n/a"}]
    assert found.rows == by_name and found.broken is not None
    assert decode_rows("json", SIMPLE, encode_rows("json", SIMPLE, found.rows))[1].trained == 3
