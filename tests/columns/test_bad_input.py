"""Records that are hostile to decoders: reasons and paths as a person reads them, and time linear in the size."""

from __future__ import annotations

import json
import math
import struct
import time
from typing import Any

import msgpack
import numpy as np
from example_format import encoded, example_format
from looped import over
from slots import decode_rows

from streamtrain.columns.schema import Schema
from tests.columns.conftest import LARGE, NESTED, SIMPLE, every_format
from tests.oracles.records import oracle
from tests.oracles.sparse_text import parse

ROW = {"x1": 1, "x2": 2, "carrier": "AA", "late": 1}


def explain(schema: Schema, format_name: str, record: bytes) -> list[tuple[str, str]]:
    tally = decode_rows(format_name, schema, record)[1]
    return [(dead.path, dead.reason) for dead in tally.dead_rows]


@over(
    ("schema", "format_name", "record", "path", "reason"),
    [
        *((SIMPLE, "json", text.encode(), path, reason) for text, path, reason in [
            ('{"x1":"n/a","x2":2,"late":1}', "$.x1", 'expected number, got "n/a"'),
            ('{"x1":"12.5","x2":2,"late":1}', "$.x1", 'expected number, got "12.5"'),
            ('{"x1":NaN,"x2":2,"late":1}', "$.x1", "expected number, got NaN"),
            ('{"x1":-Infinity,"x2":2,"late":1}', "$.x1", "expected number, got -Infinity"),
            ('{"x1":1e39,"x2":2,"late":1}', "$.x1", f"{LARGE}, got 1e+39"),
            ('{"x1":-1.1e18,"x2":2,"late":1}', "$.x1", f"{LARGE}, got -1.1e+18"),
            ('{"x1":1e999,"x2":2,"late":1}', "$.x1", f"{LARGE}, got Infinity"),
            ('{"x1":[1],"x2":2,"late":1}', "$.x2",
             "expected an array of as many values as in the other columns, got no array"),
            ('{"x2":2,"x1":{},"late":1}', "$.x1", "expected number, got an object"),
            ('{"x2":2,"late":1}', "$.x1", "expected number, got nothing (missing)"),
            ('{"x1":1,"x2":null,"late":1}', "$.x2", "expected number, got nothing (missing)"),
            ('{"x1":1,"x2":2,"late":2}', "$.late", "expected 0, 1, true or false, got 2"),
            ('{"x1":1,"x2":2,"late":"yes"}', "$.late", 'expected 0, 1, true or false, got "yes"'),
            ('{"x1":1,"x2":2,"late":1,"carrier":2.5}', "$.carrier", "expected text, integer or boolean, got 2.5"),
            ('[1,2,"AA"]', "$", "expected 4 values, got 3"),
            ('[[1,2,"AA",0,5]]', "$[0]", "expected 4 values, got 5"),
            ("[{},7]", "$[1]", "expected a row (an object or an array), got 7"),
            ('{"x1":1,"x2":2,"late":1}x', "$", "expected the record's end, got 'x' at byte 24"),
            ('{"x1":1,"x2":2,"late":1', "$", "expected ',' or '}', got the record's end at byte 23"),
            ('{"x1":1,"x2":02,"late":1}', "$", "expected a number, got '0' at byte 13"),
            ('{"x1":1,"a":"\\x","x2":2,"late":1}', "$", "expected JSON text, got text with an unknown escape"),
            ('{"x1":[1,2],"x2":[1],"late":[1,1]}', "$.x2",
             "expected an array of as many values as in the other columns, got 1 values where $.x1 has 2"),
            ("5", "$", "expected an object or an array, got '5' at byte 0"),
        ]),
        *((NESTED, "json", text.encode(), path, reason) for text, path, reason in [
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
            ('{"user":{"x1":1,"x2":"\x01"},"x1":1,"late":1}', "$",
             "expected JSON text, got a control character in text"),
            ('{"user":{"x1":1,},"x1":1,"late":1}', "$", "expected a key, got '}' at byte 16"),
        ]),
        *((SIMPLE, "msgpack", *each) for each in [
            (b"\xdd\xff\xff\xff\xff", "$", "an array claims 4294967295 elements, but 0 bytes follow at byte 0"),
            (b"\xdf\xff\xff\xff\xff", "$", "a map claims 4294967295 elements, but 0 bytes follow at byte 0"),
            (b"\x81\xa2x1\xdb\xff\xff\xff\xff", "$", "the record ends inside the value at byte 4"),
            (msgpack.packb({**ROW, "x1": float("nan")}), "$.x1", "expected number, got NaN"),
            (msgpack.packb({**ROW, "x1": b"raw"}), "$.x1", "expected number, got binary"),
            (msgpack.packb(ROW) + b"\x01", "$", "expected the record's end, got 1 more bytes at byte 26"),
            (msgpack.packb([ROW, 3, ROW]), "$[1]", "expected a row (a map or an array), got an integer"),
            (b"\xc1", "$", "expected a value, got byte 193, which msgpack does not use, at byte 0"),
            (b"\x05", "$", "expected a map or an array, got an integer"),
        ]),
    ],
    ids=lambda entry: f"{entry[1]} {entry[2]!r}",
)  # fmt: skip
def test_a_dead_letter_says_where_and_why(
    schema: Schema, format_name: str, record: bytes, path: str, reason: str
) -> None:
    assert explain(schema, format_name, record)[-1] == (path, reason)


def test_packed_reasons(schemas: dict[str, Schema]) -> None:
    simple = schemas["simple"]
    record = oracle("packed").encode(simple, {"x1": [1.0, np.inf, 3.0], "x2": [1, 2, 3], "late": [1, 1, 0]})
    assert explain(simple, "packed", record) == [("$.x1[1]", f"{LARGE}, got Infinity")]
    assert explain(simple, "packed", b"PAR1" + record[4:])[0][1].startswith('expected a packed record ("STPK"')
    assert explain(simple, "packed", record[:4] + b"\x01" + record[5:])[0][1] == "expected packed wire version 2, got 1"
    assert "cut short" in explain(simple, "packed", record[:200])[0][1]
    claim = record[:8] + struct.pack("<I", 2**32 - 1) + record[12:]
    assert "claims 4294967295 rows" in explain(simple, "packed", claim)[0][1]


@every_format
def test_registry_frame_and_empty_value(schemas: dict[str, Schema], format_name: str) -> None:
    framed = b"\0" + struct.pack(">I", 42) + json.dumps(ROW).encode()
    meant = parse(example_format(format_name), framed).broken or ""
    if "Schema Registry frame" in meant:  # data of the others may begin so
        [(path, reason)] = explain(schemas["simple"], format_name, framed)
        assert path == "$" and "Schema Registry frame (0 and schema id 42)" in reason
    if parse(example_format(format_name), b"").broken:  # others take it for a record
        assert explain(schemas["simple"], format_name, b"") == [("$", "expected a record, got an empty value")]


def test_other_rows_of_a_record_train(schemas: dict[str, Schema]) -> None:
    rows: list[Any] = [dict(ROW, x1=i) for i in range(1000)]
    for i in range(0, 1000, 7):
        rows[i]["x2"] = "bad"
    for name, record in (("json", json.dumps(rows).encode()), ("msgpack", msgpack.packb(rows))):
        blocks, tally = decode_rows(name, schemas["simple"], record)
        assert (tally.trained, tally.dead) == (857, 143)
        np.testing.assert_array_equal(blocks["numbers"][:, 0], [i for i in range(1000) if i % 7])
        assert tally.dead_rows[1].path == "$[7].x2" and tally.dead_rows[1].row_from == 7


def test_bad_rows_side_by_side_are_one_entry(schemas: dict[str, Schema]) -> None:
    _, tally = decode_rows(
        "json", schemas["simple"], json.dumps([{"x1": 1}, *[{"x1": 1, "late": 1}] * 50_000]).encode()
    )
    assert tally.filtered == 1 and tally.dead == 50_000
    assert [(dead.row_from, dead.row_to, dead.path) for dead in tally.dead_rows] == [(1, 50_001, "$[1].x2")]


def deep(opening: bytes, closing: bytes = b"") -> bytes:
    return opening * 1_000_000 + closing * 1_000_000


HOSTILE = {
    "json": [
        deep(b"["), deep(b"[", b"]"), deep(b'{"a":'), b'{"a":' + deep(b"[", b"]") + b"}", b'{"x1":' + deep(b"["),
        b"[" + b"[]," * 300_000 + b"[]]", b"[" + b"{}," * 300_000, b'{"x1":[' + b"1," * 500_000 + b'1],"x2":[2]}',
        b'{"x1":' + b"9" * 1_000_000 + b"}", b'{"x1":0.' + b"0" * 1_000_000 + b"1}", b'"' + b"\\" * 1_000_001,
        b'{"carrier":"' + b"\\u0041" * 200_000 + b'"}', b"\xff" * 1_000_000, b'{"x1":[],' * 100_000,
        b'{"x1":[1],' + b'"x1":[1],' * 100_000 + b'"x1":[1]}', b'{"a":"' + b"\xc3\xa9" * 500_000 + b'","x1":1}',
    ],
    "msgpack": [
        b"\x91" * 1_000_000, b"\x81\x01" * 500_000, b"\x81\xa1a" + b"\x91" * 1_000_000 + b"\x01",
        b"\xdd\x00\x0f\x00\x00" + b"\x90" * 0xF0000, b"\xdd\x00\x0f\x00\x00" + b"\x80" * 0xF0000,
        b"\x81\xa2x1\xdd\x00\x0f\x00\x00" + b"\x01" * 0xF0000,
        b"\xdc\xff\xff" + b"\xdc\xff\xff" * 20 + b"\x01" * 200_000,
        b"\x81\xa7carrier\xdb\x00\x0f\x00\x00" + b"\xff" * 0xF0000,
    ],
}  # fmt: skip


def hostile_packed(schema: Schema) -> list[bytes]:
    """Overlapping texts and one long bad word for every row: work that must not be rows times bytes."""
    rows = 100_000
    header = struct.pack("<4sHHII", b"STPK", 1, 1, rows, 24)
    entry = struct.pack("<IIIBBH7sx", 64, 4 * rows + 8 + 500_000, 0, 13, 0, 7, b"carrier")
    data = bytes(4 * rows) + struct.pack("<II", 1, 500_000)
    bad_word = (header + entry).ljust(64, b"\0") + data + b"\xff" * 500_000
    good_word = (header + entry).ljust(64, b"\0") + data + b"a" * 500_000
    ends = np.tile(np.array([0, 400_000], "<u4"), rows // 2).tobytes()
    overlapping = (header + struct.pack("<IIIBBH7sx", 64, 4 * rows + 400_000, 0, 12, 0, 7, b"carrier")).ljust(64, b"\0")
    return [
        bad_word,
        good_word,
        overlapping + ends + b"a" * 400_000,
        struct.pack("<4sHHII", b"STPK", 1, 0, 900_000, 0) + bytes(900_000),
    ]


@every_format
def test_hostile_records_are_answered_in_linear_time(schemas: dict[str, Schema], format_name: str) -> None:
    simple = schemas["simple"]
    for record in hostile_packed(simple) if format_name == "packed" else HOSTILE.get(format_name, []):
        started = time.thread_time()  # others may load the machine
        _, tally = decode_rows(format_name, simple, record)
        assert time.thread_time() - started < 1.0, record[:30]  # about 1 MB each: 10 to 50 ms
        assert tally.dead + tally.filtered + tally.trained >= (
            0 if record.startswith(b"\xdd\x00\x0f\x00\x00\x90") else 1
        )


@every_format
@over("weight", [-1.0, -5, -1e-50, math.nan, math.inf, -math.inf])
def test_a_row_weight_below_0_or_no_number_is_a_dead_letter(format_name: str, weight: float) -> None:
    """A weight that float32 would round to 0 is one too: a row is never left out in silence."""
    schema = Schema.from_columns({"x": {}, "late": {"role": "label"}, "w": {"role": "weight"}}, "binary_cross_entropy")
    columns = {"x": [1.0, 2.0, 3.0], "late": [0, 1, 1], "w": [0.0, weight, 1e-42]}
    blocks, tally = decode_rows(format_name, schema, encoded(format_name, schema, columns))
    assert blocks["weight"].ravel().tolist() == [0.0, np.float32(1e-42)]
    assert [(dead.row_from, dead.row_to) for dead in tally.dead_rows] == [(1, 2)] and ".w" in tally.dead_rows[0].path
    assert "expected" in tally.dead_rows[0].reason
