"""Decoding alone, on one core: each format against what a Python program would do with the same records; what columns
cost that are more than plain numbers, rows nested as their columns' paths say, texts, and rows on lines."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Sequence
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

import fastavro
import msgpack
import numpy as np
import orjson
import pyarrow
import pyarrow.csv
import pyarrow.ipc
from avro_schemas import nullable, record, written
from packed_wire import Cells, packed
from proto_schemas import File
from sklearn.datasets import load_svmlight_file
from sklearn.feature_extraction.text import HashingVectorizer
from slots import RowSlot

from streamtrain import _native
from streamtrain.columns.formats import avro_schema, protobuf_schema
from streamtrain.columns.schema import Schema
from tests.bench.harness import Line, Run, Sides, absent, bench, rates
from tests.bench.learning_streams import DATA
from tests.oracles.records import encode_rows, oracle

BATCH_ROWS = 256
PACKED_SLOT_ROWS = 1024
SCHEMA = Schema.from_columns({"f{01..28}": {}, "late": {"role": "label"}}, "binary_cross_entropy")
NAMES = [name for name, _ in SCHEMA.columns]
LOOP, COPY = "orjson.loads + NumPy", "memcpy of the same bytes"
RECORDS, WORDS = 64, 16
CRITEO = 30e6  # rows/s of one core
BINARY = "binary_cross_entropy"
CLASSES = "softmax_cross_entropy"
LATE: dict[str, Any] = {"role": "label"}
PLAIN = {"f{01..28}": {}, "late": LATE}
TAGS = {**PLAIN, "tags": {"kind": "category", "list": True, "buckets": 65536}}
Columns = dict[str, Any]
Make = Callable[[np.random.Generator], Any]


def decoder(
    format: Any, schema: Schema, records: Sequence[bytes], rows: int, slot_rows: int = BATCH_ROWS, work: int = 0
) -> Callable[[], int]:
    """Decodes all records into one slot again and again, one call from Python a slot. `work`: what a call counts as, if
    not the rows; rows that a condition leaves out count."""
    filler = _native.BatchFiller(format, RowSlot(schema, slot_rows).plan)
    per_slot = max(1, slot_rows * len(records) // rows)
    batches = [records[at : at + per_slot] for at in range(0, len(records), per_slot)]

    def call() -> int:
        done = 0
        for batch in batches:
            tally = filler.count(batch)
            done += tally.trained + tally.filtered
        assert done == rows
        return work or rows

    return call


def pack(row: Any) -> bytes:
    return bytes(msgpack.packb(row, use_single_float=True))


def rows(count: int, digits: int) -> list[dict[str, float]]:
    """28 numbers between -10 and 10 and a label."""
    chance = np.random.default_rng(1)
    values = chance.uniform(-10, 10, (count, 28)).round(digits).tolist()
    return [dict(zip(NAMES, [*row, i % 2], strict=True)) for i, row in enumerate(values)]


def numbers(chance: np.random.Generator, names: Sequence[str] = NAMES[:-1]) -> dict[str, Any]:
    """Columns of 256 rows."""
    columns = {name: chance.normal(size=BATCH_ROWS).astype(np.float32) for name in names}
    return {**columns, "late": chance.integers(0, 2, BATCH_ROWS).astype(np.float32)}


def python(records: list[bytes], loads: Callable[[bytes], Any], is_map: bool = True) -> Callable[[], int]:
    """Each record parsed into Python objects and put into its row of a NumPy batch."""
    pick = itemgetter(*NAMES)
    batch = np.zeros((BATCH_ROWS, len(NAMES)), np.float32)

    def call() -> int:
        for i, raw in enumerate(records):
            batch[i % BATCH_ROWS] = pick(loads(raw)) if is_map else loads(raw)
        return len(records)

    return call


def by_256(records: Sequence[bytes], take: Callable[[Sequence[bytes]], object]) -> Callable[[], int]:
    """256 records become an array in one call: as fast as plain Python gets."""

    def call() -> int:
        for at in range(0, len(records), BATCH_ROWS):
            take(records[at : at + BATCH_ROWS])
        return len(records)

    return call


def each_of(records: Sequence[Any], take: Callable[[Any], object], work: int = 1) -> Callable[[], int]:
    """One after the other; `work` is what each counts as."""

    def call() -> int:
        for raw in records:
            take(raw)
        return work * len(records)

    return call


def copied(records: list[bytes]) -> Callable[[], int]:
    """memcpy of the same bytes, record by record, to one place."""
    to = memoryview(bytearray(max(len(each) for each in records)))
    pairs = [(to[: len(each)], each) for each in records]

    def call() -> int:
        for target, source in pairs:
            target[:] = source
        return len(records) * BATCH_ROWS

    return call


def read_by_pyarrow(record: bytes) -> object:
    """A record's columns put side by side."""
    batch = pyarrow.ipc.open_stream(record).read_next_batch()
    return np.stack([column.to_numpy() for column in batch.columns], axis=1)


def json_sides() -> Sides:
    sample = rows(4 * BATCH_ROWS, 4)
    chance = np.random.default_rng(2)
    texts = {
        "json": [json.dumps(row).encode() for row in sample],
        "any order": [json.dumps({name: row[name] for name in chance.permutation(NAMES)}).encode() for row in sample],
        "17 digits": [json.dumps(row).encode() for row in rows(4 * BATCH_ROWS, 16)],
    }
    sides: dict[str, Any] = {name: decoder("json", SCHEMA, text, len(text)) for name, text in texts.items()}
    sides |= {f"{LOOP}, {name}": python(text, orjson.loads) for name, text in texts.items()}
    pick = itemgetter(*NAMES)
    batched = by_256(texts["json"], lambda some: np.array([pick(orjson.loads(each)) for each in some], np.float32))
    return {**sides, "orjson.loads + one np.array per 256 rows": batched}


def msgpack_sides() -> Sides:
    sample = rows(4 * BATCH_ROWS, 4)
    sides: dict[str, Any] = {}
    for what, values in (("map", sample), ("array", [list(row.values()) for row in sample])):
        records = [pack(row) for row in values]
        sides[what] = decoder("msgpack", SCHEMA, records, len(records))
        sides[f"msgpack.unpackb + NumPy, {what}"] = python(records, msgpack.unpackb, what == "map")
    return sides


def block_sides() -> Sides:
    """15 MB are what ingest lets librdkafka keep. 2 MB lie in the processor's own cache, to memcpy's advantage."""
    sides: dict[str, Any] = {}
    for form in ("packed", "arrow"):
        chance = np.random.default_rng(3)
        records = [oracle(form).encode(SCHEMA, numbers(chance)) for _ in range(512)]
        for name, part in ((form, records), (f"{form}, 2 MB", records[:64])):
            sides[name] = decoder(form, SCHEMA, part, BATCH_ROWS * len(part), PACKED_SLOT_ROWS)
            sides[f"{COPY}, {name}"] = copied(part)
    return {**sides, "pyarrow's reader + one np.array a record": each_of(records, read_by_pyarrow, BATCH_ROWS)}


def row_sides() -> Sides:
    """One dict into a slot."""
    slot, pick, one = RowSlot(SCHEMA, BATCH_ROWS), itemgetter(*NAMES), np.zeros((1, len(NAMES)), np.float32)
    sample = rows(BATCH_ROWS, 4)

    def numpy_by_row() -> int:
        for row in sample:
            one[0] = pick(row)
        return len(sample)

    return {"one dict": each_of(sample, slot.fill_row), "NumPy row of it": numpy_by_row}


@bench(
    "decode",
    {
        (json_sides,): [
            Line("json, 29 numbers", "json", f"{LOOP}, json", 12),
            Line("json, 29 numbers", "json", "orjson.loads + one np.array per 256 rows"),
            Line("json, keys in any order", "any order", f"{LOOP}, any order"),
            Line("json, 17 digits", "17 digits", f"{LOOP}, 17 digits"),
        ],
        (msgpack_sides,): [
            Line("msgpack, map of 29 float32", "map", "msgpack.unpackb + NumPy, map"),
            Line("msgpack, array of 29 float32", "array", "msgpack.unpackb + NumPy, array"),
        ],
        (block_sides,): [
            Line("packed, 256 rows a record, 15 MB / 8 M rows/s", "packed", 8e6, 1),
            Line("packed, 256 rows a record, 15 MB", "packed", f"{COPY}, packed", 0.5),
            Line("packed, 256 rows a record, 2 MB", "packed, 2 MB", f"{COPY}, packed, 2 MB", 0.5),
            Line("arrow, 256 rows a record, 15 MB", "arrow", f"{COPY}, arrow", 0.5),
            Line("arrow, 256 rows a record", "arrow", "pyarrow's reader + one np.array a record"),
        ],
        (row_sides,): [Line("one dict into a slot", "one dict", "NumPy row of it")],
    },
    rates(), "rows/s", seconds=30.0,
)  # fmt: skip
def decode(run: Run, sides: Callable[[], Sides]) -> Sides:
    """Formats into slots on one core, against Python libraries with NumPy and against memcpy."""
    return sides()


def packed_decoder(columns: Columns, make: Make, loss: str = BINARY, texts: bool = False) -> Callable[[], int]:
    """Packed records of 256 rows; `texts`: labels are a text a row, and no words."""
    schema, chance = Schema.from_columns(columns, loss), np.random.default_rng(3)
    blocks = [make(chance) for _ in range(RECORDS)]
    records = [with_texts(each) if texts else oracle("packed").encode(schema, each) for each in blocks]
    return decoder("packed", schema, records, RECORDS * BATCH_ROWS, PACKED_SLOT_ROWS)


def with_nulls(chance: np.random.Generator) -> Columns:
    return {
        name: np.ma.MaskedArray(cells, chance.random(BATCH_ROWS) < 0.05) if name != "late" else cells
        for name, cells in numbers(chance).items()
    }


def with_more(**more: Make) -> Make:
    """The numbers, and columns beside or in the place of some."""
    return lambda chance: {**numbers(chance), **{name: make(chance) for name, make in more.items()}}


def of(words: np.ndarray[Any, Any]) -> Make:
    return lambda chance: words[chance.integers(0, len(words), BATCH_ROWS)]


def with_names(count: int) -> Make:
    return with_more(late=of(np.array([f"class {i}" for i in range(count)])))


def with_texts(columns: Columns) -> bytes:
    none = [False] * BATCH_ROWS
    cells = {name: Cells("f4", columns[name].tolist(), none) for name in NAMES[:-1]}
    return packed({**cells, "late": Cells("text", columns["late"].tolist(), none)})


def of_classes(count: int) -> Columns:
    return {"f{01..28}": {}, "late": {**LATE, "classes": [f"class {i}" for i in range(count)]}}


def criteo(bits: int) -> Columns:
    """13 numbers and 26 categories."""
    return {"i{01..13}": {}, "c{01..26}": {"kind": "category", "buckets": 100_000, "hash_bits": bits}, "late": LATE}


def with_hashes(chance: np.random.Generator) -> Columns:
    columns = numbers(chance, [f"i{i:02}" for i in range(1, 14)])
    ids = {f"c{i:02}": [f"{id:08x}" for id in chance.integers(0, 10**6, BATCH_ROWS)] for i in range(1, 27)}
    return {**columns, **ids}


def tags(chance: np.random.Generator) -> list[list[str]]:
    """0 to 8 of 1,000."""
    return [[f"tag {i}" for i in chance.integers(0, 1000, chance.integers(0, 9))] for _ in range(BATCH_ROWS)]


def of_rows(form: str, columns: Columns, rows: list[Any], lines: bool = False) -> Callable[[], int]:
    """Rows, each a record; with `lines` all of a slot in one, a line each."""
    schema = Schema.from_columns(columns, BINARY)
    records = [json.dumps(row).encode() if form == "json" else pack(row) for row in rows]
    return decoder(form, schema, [b"\n".join(records)] if lines else records, len(rows), len(rows))


def kinds() -> Sides:
    words, time_ms = of(np.array([f"word {i}" for i in range(WORDS)])), 1_790_000_000_000
    at = with_more(at=lambda chance: time_ms + chance.integers(0, 1_000_000, BATCH_ROWS))
    return {
        "plain": packed_decoder(PLAIN, numbers),
        "nulls": packed_decoder({"f{01..28}": {"missing": 0}, "late": LATE}, with_nulls),
        "event_time": packed_decoder({**PLAIN, "at": {"role": "event_time"}}, at),
        "words": packed_decoder(
            {**PLAIN, "w{0..3}": {"kind": "category", "buckets": 1024}}, with_more(**{f"w{i}": words for i in range(4)})
        ),
        "names": packed_decoder(of_classes(10), with_names(10), CLASSES),
        "a text of 10 names": packed_decoder(of_classes(10), with_names(10), CLASSES, texts=True),
        "a text of 20,000 names": packed_decoder(of_classes(20_000), with_names(20_000), CLASSES, texts=True),
        "hash32": packed_decoder(criteo(32), with_hashes),
        "hash64": packed_decoder(criteo(64), with_hashes),
    }


def lists() -> Sides:
    table = with_more(tags=tags)(np.random.default_rng(3))
    plain = {name: cells if name == "tags" else cells.astype(float).round(4).tolist() for name, cells in table.items()}
    rows = [dict(zip(plain, row, strict=True)) for row in zip(*plain.values(), strict=True)]
    return {"packed list": packed_decoder(TAGS, with_more(tags=tags)), "json list": of_rows("json", TAGS, rows)}


def nested() -> Sides:
    """28 numbers and a label: flat, in four objects, in an array."""
    flat = rows(1024, 4)
    cells = [[*row.values()] for row in flat]
    objects = [
        {f"g{k + 1}": {f"f{j + 1}": row[7 * k + j] for j in range(7)} for k in range(4)} | {"late": row[-1]}
        for row in cells
    ]
    arrays = [{"v": row[:-1], "late": row[-1]} for row in cells]
    sides: dict[str, Any] = {"json lines": of_rows("json", PLAIN, flat, lines=True)}
    for form in ("json", "msgpack"):
        sides[f"{form} flat"] = of_rows(form, PLAIN, flat)
        grouped = {"g{1..4}f{1..7}": {"path": "g{1..4}.f{1..7}"}, "late": LATE}
        sides[f"{form} objects"] = of_rows(form, grouped, objects)
        sides[f"{form} array"] = of_rows(form, {"f{0..27}": {"path": "v[{0..27}]"}, "late": LATE}, arrays)
    return sides


@bench(
    "columns",
    {
        (kinds,): [
            Line("packed, 28 float32 with 5 % nulls in every number", "nulls", "plain", 0.4),
            Line("packed, 28 float32 with an event_time", "event_time", "plain", 0.4),
            Line("packed, 28 float32 with 4 columns of words", "words", "plain", 0.4),
            Line("packed, 28 float32 with a label of 10 names", "names", "plain", 0.4),
            Line("13 float32 and 26 hash32 / 30 M rows/s", "hash32", CRITEO, 1),
            Line("13 float32 and 26 hash64 / 30 M rows/s", "hash64", CRITEO),
            Line("a label of 20,000 names, one text a row", "a text of 20,000 names", "a text of 10 names", 0.7),
        ],
        (nested,): [
            Line("json, 28 numbers in 4 objects", "json objects", "json flat", 0.6),
            Line("json, 28 numbers in an array", "json array", "json flat", 0.6),
            Line("msgpack, 28 numbers in 4 objects", "msgpack objects", "msgpack flat", 0.6),
            Line("msgpack, 28 numbers in an array", "msgpack array", "msgpack flat", 0.6),
            Line("json, 1024 rows on lines", "json lines", "json flat", 0.9),
        ],
        (lists,): [Line("packed, 28 float32 and a list of 0 to 8 categories", "packed list", "json list", 10)],
    },
    rates(), "rows/s", seconds=24.0,
)  # fmt: skip
def columns(run: Run, sides: Callable[[], Sides]) -> Sides:
    """Columns that are more than plain numbers, against the same records without them."""
    return sides()


ROW_RECORDS = 4 * BATCH_ROWS
CRITEO_BUCKETS = 1_000_000
NUMBERS = NAMES[:-1]
COUNTS, TEXTS = [f"I{i}" for i in range(1, 14)], [f"C{i}" for i in range(1, 27)]
CRITEO_RATE = Schema.from_columns(
    {
        "late": {"role": "label"},
        "I{1..13}": {"missing": 0},
        "C{1..26}": {"kind": "category", "buckets": CRITEO_BUCKETS, "missing": ""},
    },
    BINARY,
)
Rows = list[dict[str, Any]]
Parse = Callable[[bytes], Any]
Take = Callable[[list[Any]], object]  # of parsed rows


def criteo_rows() -> Rows:
    """A label, 13 counts and 26 texts of 8 hexadecimal digits; a twentieth of the cells is missing."""
    chance, rows = np.random.default_rng(2), []
    for i in range(ROW_RECORDS):
        row: dict[str, Any] = {name: int(chance.geometric(0.02)) for name in COUNTS}
        row |= {name: f"{chance.integers(0, 2**32):08x}" for name in TEXTS}
        rows.append({"late": i % 2, **{name: None if chance.random() < 0.05 else row[name] for name in row}})
    return rows


def hashed(rows: Sequence[Sequence[Any]]) -> object:
    """A text's bucket by Python's own hash, which is the fastest it has."""
    return np.array([[hash(text) % CRITEO_BUCKETS for text in row] for row in rows], np.int32)


def beside(rival: str, format: Any, columns: Schema, records: list[bytes], parse: Parse, take: Take) -> Sides:
    """Records decoded by us, and parsed and taken into arrays by a rival."""
    return {
        "ours": decoder(format, columns, records, len(records)),
        rival: by_256(records, lambda some: take([parse(record) for record in some])),
    }


def avro(fields: dict[str, Any], columns: Schema, rows: Rows, take: Take) -> Sides:
    schema = record(*fields.items())
    parsed, format = (
        fastavro.parse_schema(schema),
        {"name": "avro", "schema": avro_schema.canonical(json.dumps(schema))},
    )
    records = [written(schema, row) for row in rows]

    def parse(record: bytes) -> list[Any]:
        return list(fastavro.schemaless_reader(io.BytesIO(record), parsed, None).values())

    return beside("fastavro + NumPy", format, columns, records, parse, take)


def avro_floats() -> Sides:
    fields = {**dict.fromkeys(NUMBERS, "float"), "late": "int"}
    return avro(fields, SCHEMA, rows(ROW_RECORDS, 4), lambda parsed: np.array(parsed, np.float32))


def avro_criteo() -> Sides:
    fields = {"late": "int", **dict.fromkeys(COUNTS, nullable("long")), **dict.fromkeys(TEXTS, nullable("string"))}

    def take(parsed: list[Any]) -> None:
        numbers = np.array([row[:14] for row in parsed], np.float32)
        numbers[np.isnan(numbers)] = 0
        hashed([row[14:] for row in parsed])

    return avro(fields, CRITEO_RATE, criteo_rows(), take)


@bench(
    "avro",
    {
        (avro_floats,): [Line("28 float32", "ours", "fastavro + NumPy", 60)],
        (avro_criteo,): [
            Line("13 counts and 26 texts, nullable", "ours", "fastavro + NumPy", 50),
            Line("13 counts and 26 texts, nullable / 3 M rows/s", "ours", 3e6, 1),
        ],
    },
    rates(), "rows/s", seconds=12.0,
)  # fmt: skip
def avro_bench(run: Run, sides: Callable[[], Sides]) -> Sides:
    """Avro records of one row, against fastavro with NumPy and against a rate."""
    return sides()


def protobuf(fields: list[tuple[Any, ...]], columns: Schema, rows: Rows, take: Take) -> Sides:
    file = File("row.proto")
    file.add("Row", *fields)
    message = file.message("Row")
    records = [message(**row).SerializeToString() for row in rows]
    schema = protobuf_schema.canonical(protobuf_schema.canonical_bytes(file.set_bytes()))
    format = {"name": "protobuf", "schema": schema}
    return beside("upb + NumPy", format, columns, records, message.FromString, take)


def protobuf_floats() -> Sides:
    fields, pick = [(name, i, "float") for i, name in enumerate(NUMBERS, 1)], attrgetter(*NAMES)
    return protobuf(
        [*fields, ("late", 29, "int32")], SCHEMA, rows(ROW_RECORDS, 4),
        lambda parsed: np.array([pick(row) for row in parsed], np.float32),
    )  # fmt: skip


def protobuf_criteo() -> Sides:
    counts = [(name, i, "int64", "optional") for i, name in enumerate(COUNTS, 2)]
    texts = [(name, i, "string", "optional") for i, name in enumerate(TEXTS, 15)]
    numbers, words = attrgetter("late", *COUNTS), attrgetter(*TEXTS)

    def take(parsed: list[Any]) -> None:
        np.array([numbers(row) for row in parsed], np.float32)
        hashed([words(row) for row in parsed])

    return protobuf([("late", 1, "int32"), *counts, *texts], CRITEO_RATE, criteo_rows(), take)


@bench(
    "protobuf",
    {
        (protobuf_floats,): [Line("28 float32", "ours", "upb + NumPy", 30)],
        (protobuf_criteo,): [Line("13 counts and 26 texts, optional", "ours", "upb + NumPy", 10)],
    },
    rates(), "rows/s", seconds=12.0,
)  # fmt: skip
def protobuf_bench(run: Run, sides: Callable[[], Sides]) -> Sides:
    """Protobuf records of one row, against Google's package with NumPy."""
    return sides()


LINES, PACKS = 1_000, 16
CSV: dict[str, dict[str, Any]] = {
    "28 numbers": {**{f"f{i}": {} for i in range(28)}, "late": {"role": "label"}},
    "13 numbers, 26 words": {
        **{f"i{i}": {} for i in range(13)},
        **{f"c{i}": {"kind": "category", "buckets": 1 << 18} for i in range(26)},
        "late": {"role": "label"},
    },
}
ROWS, VOCABULARY, BUCKETS = 512, 40, 1 << 18
RCV1 = DATA / "rcv1" / "rcv1_small.dat"
RCV1_LINES = 100  # a record
SPARSE: dict[str, Any] = {
    "wide": {"kind": "sparse", "buckets": 1 << 18, "most": 4096},
    "late": {"role": "label", "classes": ["-1", "1"]},
}


def csv_lines(columns: dict[str, Any], chance: np.random.Generator) -> list[bytes]:
    """Numbers of five decimal places; words of eight hexadecimal digits, as Criteo's."""
    cells = []
    for column in columns.values():
        if column.get("kind") == "category":
            cells.append([f"{word:08x}" for word in chance.integers(0, 1 << 31, LINES)])
        elif column.get("role") == "label":
            cells.append([str(label) for label in chance.integers(0, 2, LINES)])
        else:
            cells.append([f"{value:.5f}" for value in chance.normal(size=LINES)])
    return [",".join(row).encode() + b"\n" for row in zip(*cells, strict=True)]


def by_pyarrow(columns: dict[str, Any], records: list[bytes]) -> Callable[[], int]:
    read = pyarrow.csv.ReadOptions(use_threads=False, column_names=list(columns), block_size=1 << 24)
    types = {
        name: pyarrow.string() if column.get("kind") == "category" else pyarrow.float32()
        for name, column in columns.items()
    }
    convert = pyarrow.csv.ConvertOptions(column_types=types, strings_can_be_null=True)
    return lambda: sum(
        pyarrow.csv.read_csv(pyarrow.BufferReader(each), read, None, convert).num_rows for each in records
    )


@bench(
    "csv",
    {
        (name,): [
            Line(f"{name}, 1,000 lines a record", "many", "pyarrow", 1),
            Line(f"{name}, a line a record", "one", "pyarrow of all lines", 1),
        ]
        for name in CSV
    },
    rates(cpu=time.process_time), "rows/s", seconds=12.0,
)  # fmt: skip
def csv(run: Run, name: str) -> Sides:
    """CSV into slots against pyarrow's reader on one thread. It reads each record of many lines by itself; of records
    of one line it gets all lines at once, as it was not made for them."""
    columns, chance, rows = CSV[name], np.random.default_rng(3), LINES * PACKS
    schema, packs = Schema.from_columns(columns, BINARY), [csv_lines(columns, chance) for _ in range(PACKS)]
    many, one = [b"".join(lines) for lines in packs], [line for lines in packs for line in lines]
    by_arrow = by_pyarrow(columns, many)
    assert by_arrow() == rows
    return {
        "many": decoder("csv", schema, many, rows, LINES), "one": decoder("csv", schema, one, rows, LINES),
        "pyarrow": by_arrow, "pyarrow of all lines": by_pyarrow(columns, [b"".join(many)]),
    }  # fmt: skip


def texts() -> list[str]:
    random = np.random.default_rng(1)
    words = ["".join(random.choice(list("abcdefghijklmnopqrstuvwxyz"), size)) for size in random.integers(2, 10, 5000)]
    rank = np.minimum(random.zipf(1.3, (ROWS, VOCABULARY)), len(words)) - 1
    return [" ".join(words[each] for each in row).capitalize() + "." for row in rank]


@bench(
    "text",
    {
        (1,): [Line("words of JSON", "ours", "scikit-learn's hashing", 10)],
        (2,): [Line("words and pairs of JSON", "ours", "scikit-learn's hashing", 10)],
    },
    rates(), "words/s", seconds=10.0,
)  # fmt: skip
def text(run: Run, size: int) -> Sides:
    """Words, and pairs of words, hashed into slots; the rival hashes the same of texts that are decoded already."""
    documents, work = texts(), ROWS * VOCABULARY
    columns = {"words": {"kind": "text", "ngrams": [1, size], "buckets": BUCKETS}, "late": {"role": "label"}}
    schema = Schema.from_columns(columns, BINARY)
    rows = [{"words": text, "late": at % 2} for at, text in enumerate(documents)]
    records = [encode_rows("json", schema, rows[at : at + 64]) for at in range(0, ROWS, 64)]
    rival = HashingVectorizer(ngram_range=(1, size), n_features=BUCKETS, norm=None, alternate_sign=False)
    return {
        "ours": decoder("json", schema, records, ROWS, ROWS, work),
        "scikit-learn's hashing": (lambda: rival.transform(documents), work),
    }


def by_scikit(path: Path) -> int:
    table, _ = load_svmlight_file(str(path))
    return int(table.nnz)


def by_vowpal(path: Path) -> None:
    import vowpalwabbit

    workspace = vowpalwabbit.Workspace(f"--noop --quiet -b 18 -d {path}")
    workspace.run_parser()
    workspace.finish()


@bench(
    "sparse_text",
    [
        Line("vw, rcv1", "vw", "load_svmlight_file", 10),
        Line("vw, rcv1", "vw", "vw --noop", 2),
        Line("libsvm, rcv1", "libsvm", "load_svmlight_file", 10),
    ],
    rates(cpu=time.process_time),
    "features/s",
    seconds=12.0,
)
def sparse_text(run: Run) -> Sides:
    """rcv1 as VW's text and as libsvm into slots, against scikit-learn's reader and VW's parser."""
    if not RCV1.exists():
        return dict.fromkeys(("vw", "libsvm", "load_svmlight_file", "vw --noop"), f"{RCV1.name} is not at hand")
    vw = RCV1.read_bytes() * 4  # what a call costs beside its lines counts for less
    libsvm, features, folder = vw.replace(b"|f ", b""), vw.count(b":"), run.folder
    (folder / "rcv1.libsvm").write_bytes(libsvm)
    (folder / "rcv1.vw").write_bytes(vw)
    schema, sides = Schema.from_columns(SPARSE, BINARY), dict[str, Any]()
    for form, data in (("vw", vw), ("libsvm", libsvm)):
        lines = data.splitlines(keepends=True)
        records = [b"".join(lines[at : at + RCV1_LINES]) for at in range(0, len(lines), RCV1_LINES)]
        sides[form] = decoder(form, schema, records, len(lines), 1000, features)
    assert by_scikit(folder / "rcv1.libsvm") == features
    sides["load_svmlight_file"] = lambda: by_scikit(folder / "rcv1.libsvm"), features
    sides["vw --noop"] = absent("vowpalwabbit") or (lambda: by_vowpal(folder / "rcv1.vw"), features)
    return sides
