"""Records that need a schema, and texts, decoded by one thread."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow
import pyarrow.csv
from avro_schemas import nullable, record, written
from proto_schemas import File
from sklearn.datasets import load_svmlight_file
from sklearn.feature_extraction.text import HashingVectorizer

from streamtrain.columns.formats import avro_schema, encode_rows, protobuf_schema
from streamtrain.columns.schema import Schema
from tests.bench.decode import BATCH_ROWS, BINARY, NAMES, SCHEMA, by_256, decoder, rows
from tests.bench.harness import Line, Run, Sides, absent, bench, rates
from tests.bench.learning_streams import DATA

ROW_RECORDS = 4 * BATCH_ROWS
CRITEO_BUCKETS = 1_000_000
NUMBERS = NAMES[:-1]
COUNTS, TEXTS = [f"I{i}" for i in range(1, 14)], [f"C{i}" for i in range(1, 27)]
CRITEO = Schema.from_columns(
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

    return avro(fields, CRITEO, criteo_rows(), take)


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

    return protobuf([("late", 1, "int32"), *counts, *texts], CRITEO, criteo_rows(), take)


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


LINES, RECORDS = 1_000, 16
CSV: dict[str, dict[str, Any]] = {
    "28 numbers": {**{f"f{i}": {} for i in range(28)}, "late": {"role": "label"}},
    "13 numbers, 26 words": {
        **{f"i{i}": {} for i in range(13)},
        **{f"c{i}": {"kind": "category", "buckets": 1 << 18} for i in range(26)},
        "late": {"role": "label"},
    },
}
ROWS, WORDS, BUCKETS = 512, 40, 1 << 18
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
    columns, chance, rows = CSV[name], np.random.default_rng(3), LINES * RECORDS
    schema, packs = Schema.from_columns(columns, BINARY), [csv_lines(columns, chance) for _ in range(RECORDS)]
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
    rank = np.minimum(random.zipf(1.3, (ROWS, WORDS)), len(words)) - 1
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
    documents, work = texts(), ROWS * WORDS
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
