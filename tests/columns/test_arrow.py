"""Arrow records: what pyarrow writes is read as it reads it, in any layout; what is broken is no record at all."""

from __future__ import annotations

import datetime
import io
import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from looped import over
from slots import decode_rows

from streamtrain import _native
from streamtrain.columns.formats.parsed import MISSING_ENTRY, Binary
from streamtrain.columns.schema import Schema
from tests.oracles import arrow_wire as wire
from tests.oracles.packed import EXAMPLE_COLUMNS, EXAMPLE_SCHEMA
from tests.oracles.records import parse

SCHEMA = Schema.from_columns(
    {
        "x": {"missing": 0.5},
        "name": {"kind": "category", "buckets": 64, "missing": "none"},
        "place": {"kind": "vector", "size": 2, "missing": 0.25},
        "at": {"role": "event_time", "unit": "s", "missing": 0},
        "late": {"role": "label", "missing": "skip"},
    },
    "binary_cross_entropy",
)
COUNT = 700
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def stream(*batches: pa.RecordBatch, **options: Any) -> bytes:
    to = io.BytesIO()
    with pa.ipc.new_stream(to, batches[0].schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for batch in batches:
            writer.write(batch)
    return to.getvalue()


def drawn(seed: int, **types: pa.DataType) -> pa.RecordBatch:
    """Columns of these types in a random order, between others that no job names, with and without missing cells."""
    random = np.random.default_rng(seed)
    given: dict[str, Any] = {
        "x": random.integers(-100, 100, COUNT).tolist(),
        "name": random.choice(["", "a", "é" * 9, "bc"], COUNT).tolist(),
        "place": random.integers(-9, 9, (COUNT, 2)).astype(float).tolist(),
        "at": random.integers(0, 2_000_000_000, COUNT).tolist(),
        "late": random.choice([True, False], COUNT).tolist(),
    }
    plain = {
        "x": pa.int64(), "name": pa.string(), "place": pa.list_(pa.float32(), 2), "at": pa.int64(), "late": pa.bool_()
    }  # fmt: skip
    arrays: dict[str, pa.Array] = {}
    for name in random.permutation(list(given)).tolist():
        gone = random.random(COUNT) < random.choice([0, 0.05])
        cells = [None if missing else cell for cell, missing in zip(given[name], gone, strict=True)]
        kind = types.get(name, plain[name])
        arrays[f"before {name}"] = pa.array([None if i % 3 else {"a": [i], "b": "c"} for i in range(COUNT)])
        if pa.types.is_dictionary(kind):
            arrays[name] = pa.array(cells, kind.value_type).dictionary_encode().cast(kind)
        else:
            arrays[name] = pa.array(cells, pa.int64()).cast(kind) if name in ("x", "at") else pa.array(cells, kind)
    return pa.record_batch(arrays)


@over(
    "types",
    [
        {}, *({"x": kind} for kind in (pa.int8(), pa.int16(), pa.int32(), pa.float16(), pa.float32(), pa.float64())),
        {"name": pa.large_string()}, {"name": pa.binary()}, {"place": pa.list_(pa.float64(), 2)},
        *({"name": pa.dictionary(code, pa.string())} for code in (pa.int8(), pa.uint16(), pa.int32(), pa.int64())),
        {"name": pa.dictionary(pa.uint8(), pa.large_string())}, {"x": pa.null()},
        *({"at": pa.timestamp(unit)} for unit in ("s", "ms", "us", "ns")), {"at": pa.timestamp("ms", "Europe/Berlin")},
        {"at": pa.date64()},
    ],
    ids=str,
)  # fmt: skip
def test_what_pyarrow_writes(same: Any, types: dict[str, pa.DataType]) -> None:
    """The same to native decoder and reference, in one batch, in several, from the middle of others."""
    if "x" in types and pa.types.is_null(types["x"]):
        batch = drawn(3)
        at = batch.schema.get_field_index("x")
        batch = batch.set_column(at, "x", pa.nulls(COUNT))
    else:
        batch = drawn(3, **types)
    whole = same(SCHEMA, "arrow", stream(batch), 256)
    refused = "name" in types and pa.types.is_binary(types["name"])  # by each row: no category is bytes
    assert (whole.trained > 600 and not whole.dead) or refused
    parts = [batch.slice(0, 7), batch.slice(7, 0), batch.slice(7, 300), batch.slice(307)]
    again = same(SCHEMA, "arrow", stream(*parts, emit_dictionary_deltas=False), 256)
    assert (again.trained, len(again.dead), again.rows) == (whole.trained, len(whole.dead), COUNT)
    assert [np.array(block).tobytes() for block in again.blocks.values()] == [
        np.array(block).tobytes() for block in whole.blocks.values()
    ]


def test_batches_of_the_same_shape(same: Any) -> None:
    """Checks batches after others, within a stream, and where a cell is missing or is made."""

    def plain(seed: int, **others: Any) -> pa.RecordBatch:
        random = np.random.default_rng(seed)
        numbers = {"x": random.normal(size=20).astype("f4"), "late": random.integers(0, 2, 20).astype("f4")}
        return pa.record_batch({**numbers, "at": random.integers(0, 99, 20), **others})

    gone = pa.array([None, *range(19)], pa.float32())
    streams = [
        stream(plain(1)), stream(plain(2)), stream(plain(3), plain(4), plain(5)), stream(plain(6)),
        stream(plain(1, x=gone)), stream(plain(7)), stream(plain(8, x=gone)), stream(plain(9), plain(2, x=gone)),
        stream(plain(4))[:-3], stream(plain(4)), stream(plain(5, name=["a"] * 20)), stream(plain(6, name=["b"] * 20)),
        stream(plain(7).slice(3)), stream(plain(8).slice(3)), stream(plain(1, x=np.arange(20.0))), stream(plain(2)),
    ]  # fmt: skip
    for record in (*streams, *reversed(streams)):
        assert same(SCHEMA, "arrow", record, 13).rows


@over(("cells", "is_good"), [([[1.0, 2.0], None], True), ([[1.0, None], [1.0, 2.0]], False)])
def test_lists_have_all_their_numbers(same: Any, cells: list[Any], is_good: bool) -> None:
    kind = pa.list_(pa.float32(), 2)
    assert same(SCHEMA, "arrow", stream(pa.record_batch({"place": pa.array(cells, kind), "late": [0, 1]}))).trained == (
        2 if is_good else 0
    )


def test_texts_may_begin_anywhere(same: Any) -> None:
    """Pyarrow reads such texts and does not write them."""
    schema = Schema.from_columns(
        {"name": {"kind": "category", "buckets": 1 << 20, "missing": "none"}, "late": {"role": "label"}},
        "binary_cross_entropy",
    )
    record = stream(pa.record_batch({"name": ["zz", "a", "bc"], "late": [0, 1, 1]}))
    later = record.replace(struct.pack("<4i", 0, 2, 3, 5), struct.pack("<4i", 2, 3, 5, 5))
    assert pa.ipc.open_stream(later).read_all()["name"].to_pylist() == ["a", "bc", ""]
    assert same(schema, "arrow", later).trained == same(schema, "arrow", record).trained == 3


LISTS = Schema.from_columns(
    {
        "tags": {"kind": "category", "list": True, "buckets": 1 << 20, "most": 4, "cut": True, "missing": "none"},
        "place": {"kind": "vector", "size": 2, "missing": 0.25},
        "late": {"role": "label"},
    },
    "binary_cross_entropy",
)
TAGS = [["a", "é"], [], None, ["b", None, "a"], [""], ["c"] * 6, ["12"]] * 5
NUMBERS = [[1, 2], [], None, [3, None, 4], [12]] * 7


@over(
    "tags",
    [
        *(pa.array(TAGS, of(pa.string())) for of in (pa.list_, pa.large_list)),
        pa.array(TAGS, pa.list_(pa.large_utf8())),
        *(pa.array(NUMBERS, pa.list_(of)) for of in (pa.int8(), pa.uint64(), pa.int32())),
        pa.array([["b", "a"], None, ["b", "c"], ["", None], ["é", "b"]] * 7, pa.list_(pa.string(), 2)),
        pa.array([[1, 2], None, [3, None]] * 12, pa.list_(pa.int16(), 2)).slice(0, 35),
        pa.array([[True, False], [], None, [None], [True]] * 7), pa.array([[], [None], None, [None, None], []] * 7),
        pa.array(TAGS, pa.list_(pa.dictionary(pa.int8(), pa.string()))),
    ],
    ids=lambda tags: str(tags.type),
)  # fmt: skip
def test_lists_of_any_length(same: Any, tags: pa.Array) -> None:
    """Checks lists in one batch and from the middle of others; a JSON record says the same."""
    late, place = np.arange(35) % 2, pa.array([[1.5, 2], None, [3, 4], [5, 6], [7, 8]] * 7)
    batch = pa.record_batch({"tags": tags, "place": place, "late": late})
    whole = same(LISTS, "arrow", stream(batch), 64)
    assert (whole.trained, whole.dead) == (35, [])
    again = same(LISTS, "arrow", stream(batch.slice(0, 3), batch.slice(3, 0), batch.slice(3, 20), batch.slice(23)), 64)
    said = same(LISTS, "json", json.dumps(batch.to_pylist()).encode(), 64)
    for name, block in whole.blocks.items():
        for other in (again, said):
            assert [np.array(cells).tolist() for cells in other.blocks[name]] == [np.array(c).tolist() for c in block]


@over("of", [pa.float64(), pa.float32(), pa.float16(), pa.int32()], ids=str)
def test_a_vector_may_come_as_a_list_of_any_length(same: Any, of: pa.DataType) -> None:
    """Rejects only lists of another length, or with a missing number."""
    lists = [[1, 2], None, [3, 4], [5], [6, None], [7, 8, 9], []] * 4
    place = pa.array(lists, pa.list_(pa.float64())).cast(pa.list_(of))
    found = same(LISTS, "arrow", stream(pa.record_batch({"place": place, "tags": TAGS[:28], "late": [0, 1] * 14})), 64)
    assert (found.trained, len(found.dead)) == (12, 16)


@over(
    ("tags", "trained"),
    [
        (pa.array([[{"a": 1}], [{"a": 2}]]), 0), (pa.array([[["a"]], [["b"]]]), 0),
        (pa.array([[("a", 1)], [("b", 2)]], pa.map_(pa.string(), pa.int32())), 0),
        (pa.array([[1], [2]], pa.list_(pa.decimal128(5))), 0), (pa.array([[b"\xff"], []]), 1),
        (pa.array([[1.5], [2.0]]), 1), (pa.array([[], []], pa.list_(pa.int32(), 0)), 2), (pa.array([[], []]), 2),
        (pa.array([None, None], pa.list_(pa.string())), 2), (pa.array([["x"] * 50_000, ["y"]]), 2),
        (pa.ListArray.from_arrays([0, 1, 2], pa.array([5, 6]).dictionary_encode()), 0),
    ],
    ids=lambda given: str(given.type) if isinstance(given, pa.Array) else str(given),
)  # fmt: skip
def test_lists_of_what_is_no_cell_and_of_none(same: Any, tags: pa.Array, trained: int) -> None:
    assert same(LISTS, "arrow", stream(pa.record_batch({"tags": tags, "late": [0, 1]})), 8).trained == trained


def test_lists_may_begin_anywhere_in_order(same: Any) -> None:
    record = stream(pa.record_batch({"tags": [["zz"], ["a", "bc"]], "late": [0, 1]}))
    offsets = struct.pack("<3i", 0, 1, 3)
    assert record.count(offsets) == 1
    for given, trained in (((1, 2, 3), 2), ((0, 3, 3), 2), ((0, 3, 1), 0), ((-1, 1, 3), 0), ((0, 1, 4), 0)):
        assert same(LISTS, "arrow", record.replace(offsets, struct.pack("<3i", *given))).trained == trained, given


def test_the_reference_reads_what_pyarrow_reads() -> None:
    batch = pa.record_batch({
        "b": pa.array([True, None, False] * 5), "i": pa.array([1, None, -3] * 5, pa.int16()),
        "t": pa.array([1500, None, -3] * 5, pa.timestamp("ms", "UTC")), "s": pa.array(["é", None, ""] * 5),
        "d": pa.array(["a", None, "b"] * 5).dictionary_encode(), "z": pa.array([b"\xff", None, b""] * 5),
        "l": pa.array([[1.5, 2], None, [3, 4]] * 5, pa.list_(pa.float64(), 2)),
        "r": pa.array([["a"], None, [], ["b", "é", ""], ["c"]] * 3),
    })  # fmt: skip
    found = parse("arrow", stream(batch.slice(1), batch.slice(4, 2)))
    read = pa.ipc.open_stream(stream(batch.slice(1), batch.slice(4, 2))).read_all().to_pydict()
    assert found.broken is None and found.columns is not None
    for name, cells in found.columns:
        plain = [None if cell is MISSING_ENTRY else cell.raw if isinstance(cell, Binary) else cell for cell in cells]
        if name == "t":
            plain = [None if cell is None else EPOCH + datetime.timedelta(milliseconds=cell) for cell in plain]
        assert plain == read[name], name


def test_what_is_written_pyarrow_reads() -> None:
    """Both readers read the same; and each buffer begins at a multiple of 64 bytes."""
    for columns in EXAMPLE_COLUMNS:
        native = _native.RecordEncoder("arrow", EXAMPLE_SCHEMA.native_columns(), lambda value, column: None)
        known = {name: cells for name, cells in columns.items() if name in EXAMPLE_SCHEMA.record_names}
        native.read_columns(known, len(columns["x1"]))
        record = native.encode(0, len(columns["x1"]))
        read = pa.ipc.open_stream(record).read_all()
        read.validate(full=True)
        found = parse("arrow", record)
        assert found.row_count == read.num_rows and found.columns is not None
        for name, cells in found.columns:
            np.testing.assert_equal([None if cell is MISSING_ENTRY else cell for cell in cells], read[name].to_pylist())
        _, batch, *_ = wire.messages(record)
        assert all(at % 64 == 0 for at, _ in batch.header.numbers(2)) and len(batch.body) % 64 == 0


class FlatWriter:
    """Writes front to back a table, then what its offsets lead to: schemas that pyarrow does not write."""

    def __init__(self) -> None:
        self.out = bytearray(4)

    def table(self, source: int, fields: list[tuple[int, int, int]]) -> dict[int, int]:
        """A table that `source` leads to, of (number, bytes, value); where its fields stand."""
        count = max((number + 1 for number, *_ in fields), default=0)
        heads = 4 + 2 * count
        while (len(self.out) + heads) % 8 != 4:
            self.out.append(0)
        begin, at = len(self.out), len(self.out) + heads
        self.out += bytes(heads + 4)
        places: dict[int, int] = {}
        for number, size, value in sorted(fields, key=lambda each: -each[1]):
            places[number] = len(self.out)
            self.put("<H", begin + 4 + 2 * number, len(self.out) - at)
            self.out += value.to_bytes(size, "little", signed=True)
        self.put("<HH", begin, heads, len(self.out) - at)
        self.put("<i", at, heads)
        self.put("<I", source, at - source)
        return places

    def vector(self, source: int, elements: bytes, count: int) -> int:
        """One that `source` leads to; where its first element stands."""
        each = len(elements) // count if count else 1
        while len(self.out) % 4 or (len(self.out) + 4) % max(each, 4) % 8:
            self.out.append(0)
        at = len(self.out)
        self.put("<I", source, at - source)
        self.out += struct.pack("<I", count) + elements
        return at + 4

    def put(self, form: str, at: int, *values: int) -> None:
        struct.pack_into(form, self.out, at, *values)


def message(kind: int, body: bytes, write: Callable[[FlatWriter, int], Any]) -> bytes:
    """One, whose header `write` writes where it is told."""
    to = FlatWriter()
    places = to.table(0, [(0, 2, 4), (1, 1, kind), (2, 4, 0), (3, 8, len(body))])
    write(to, places[2])
    meta = bytes(to.out) + bytes(-len(to.out) % 8)
    return wire.CONTINUATION + struct.pack("<i", len(meta)) + meta + body


def other_order(record: bytes) -> bytes:
    """Numbers of the other byte order: a schema that says so, which no option of pyarrow writes."""
    return message(wire.SCHEMA, b"", lambda to, at: to.vector(to.table(at, [(0, 2, 1), (1, 4, 0)])[1], b"", 0))


BATCH = pa.record_batch({"x": pa.array([1.0, 2.0]), "late": pa.array([0, 1])})
GOOD = stream(BATCH)
MANY = struct.pack("<q", 2)
REFUSED = [
    (stream(BATCH, compression="lz4"), "$", "a compressed body (LZ4 or ZSTD); write it without"),
    (stream(BATCH, compression="zstd"), "$", "a compressed body (LZ4 or ZSTD); write it without"),
    (other_order(GOOD), "$", "numbers of the other byte order"),
    (GOOD + b"\0", "$", "1 bytes behind its end"),
    (GOOD[:-8] + GOOD, "$", "a second schema"),
    (GOOD[GOOD.index(wire.CONTINUATION, 4):], "$", "no schema before its other messages"),
    (wire.CONTINUATION + bytes(4), "$", "no schema"),
    (b"ARROW1\0\0" + GOOD, "$", "a message that does not begin with four bytes 255 at byte 0"),
    (stream(pa.record_batch({"x": pa.array([[[1]]]), "late": pa.array([0])})), "$.x", "a type that is no column's"),
    (stream(pa.record_batch({"x": pa.array([1], pa.decimal128(9)), "late": pa.array([0])})), "$.x",
     "a type that is no column's"),
    (stream(pa.record_batch({"late": pa.array([0]), "more": pa.array(["a"], pa.string_view())})), "$",
     "a batch with a field of a type that this build does not know"),
    (stream(pa.record_batch({"x": pa.array([1, 2]).dictionary_encode(), "late": pa.array([0, 1])})), "$.x",
     "codes of other than texts"),
]  # fmt: skip


@over(("record", "path", "reason"), REFUSED, ids=[reason for *_, reason in REFUSED])
def test_refused_as_a_whole(same: Any, record: bytes, path: str, reason: str) -> None:
    _, tally = decode_rows("arrow", SCHEMA, record)
    assert [(dead.path, dead.reason.partition(", got ")[2]) for dead in tally.dead_rows] == [(path, reason)]
    same(SCHEMA, "arrow", record)


def test_rows_that_no_bytes_stand_for_are_refused(same: Any) -> None:
    """A batch may claim any number of rows of columns that take no room."""
    before = GOOD.index(struct.pack("<d", 1.0))
    places = [i for i in range(before) if GOOD[i : i + 8] == MANY]
    for place in places:
        same(SCHEMA, "arrow", GOOD[:place] + struct.pack("<q", 1 << 60) + GOOD[place + 8 :])
    nothing = stream(pa.record_batch({"x": pa.nulls(5)}))
    assert [dead.reason for dead in decode_rows("arrow", SCHEMA, nothing)[1].dead_rows] == [
        "expected an Arrow IPC stream, got a batch of 5 rows in 0 bytes"
    ]


def test_fields_within_fields_are_read_in_linear_time(same: Any) -> None:
    """Each has the one below it twice: 2^18 of them by a few bytes."""

    def write(to: FlatWriter, header: int) -> None:
        at = to.vector(to.table(header, [(1, 4, 0)])[1], bytes(4), 1)
        for level in range(18):
            places = to.table(at, [(0, 4, 0), (2, 1, wire.STRUCTURE), (3, 4, 0), (5, 4, 0)])
            if level:
                to.put("<I", at + 4, struct.unpack_from("<I", to.out, at)[0] - 4)
            to.vector(places[0], b"", 0)
            to.table(places[3], [])
            at = to.vector(places[5], bytes(8), 2)
        for place in (at, at + 4):
            to.table(place, [(2, 1, wire.BOOLEAN)])

    record = message(wire.SCHEMA, b"", write)
    same(SCHEMA, "arrow", record)
    assert "do not hold together" in decode_rows("arrow", SCHEMA, record)[1].dead_rows[0].reason
