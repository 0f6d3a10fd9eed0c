"""Avro and Protobuf records, one row each, on one core: against fastavro, against Google's package (upb), both with
NumPy, and against a rate."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import fastavro
import numpy as np
from proto_schemas import File

from streamtrain.columns.formats import avro_schema, protobuf_schema
from streamtrain.columns.schema import Schema
from tests.bench.decode import BATCH_ROWS, decoder
from tests.bench.harness import Line, Run, Sides, bench, rates

RECORDS = 4 * BATCH_ROWS
BUCKETS = 1_000_000
NUMBERS = [f"f{i:02}" for i in range(1, 29)]
COUNTS, TEXTS = [f"I{i}" for i in range(1, 14)], [f"C{i}" for i in range(1, 27)]
FLOATS = Schema.from_columns({"f{01..28}": {}, "late": {"role": "label"}}, "binary_cross_entropy")
CRITEO = Schema.from_columns(
    {
        "late": {"role": "label"},
        "I{1..13}": {"missing": 0},
        "C{1..26}": {"kind": "category", "buckets": BUCKETS, "missing": ""},
    },
    "binary_cross_entropy",
)
Rows = list[dict[str, Any]]


def float_rows() -> Rows:
    """28 float32 and a label."""
    values = np.random.default_rng(1).uniform(-10, 10, (RECORDS, 28)).astype(np.float32).tolist()
    return [{**dict(zip(NUMBERS, row, strict=True)), "late": i % 2} for i, row in enumerate(values)]


def criteo_rows() -> Rows:
    """A label, 13 counts and 26 texts of 8 hexadecimal digits; a twentieth of the cells is missing."""
    chance, rows = np.random.default_rng(2), []
    for i in range(RECORDS):
        row: dict[str, Any] = {name: int(chance.geometric(0.02)) for name in COUNTS}
        row |= {name: f"{chance.integers(0, 2**32):08x}" for name in TEXTS}
        rows.append({"late": i % 2, **{name: None if chance.random() < 0.05 else row[name] for name in row}})
    return rows


def by_256(records: list[bytes], take: Callable[[list[bytes]], object]) -> Callable[[], int]:
    """256 rows become arrays in one call."""

    def call() -> int:
        for at in range(0, len(records), BATCH_ROWS):
            take(records[at : at + BATCH_ROWS])
        return len(records)

    return call


def hashed(rows: Sequence[Sequence[Any]]) -> object:
    """A text's bucket by Python's own hash, which is the fastest it has."""
    return np.array([[hash(text) % BUCKETS for text in row] for row in rows], np.int32)


def avro(fields: dict[str, Any], columns: Schema, rows: Rows, take: Callable[[Any, list[bytes]], object]) -> Sides:
    schema = {"type": "record", "name": "Row", "fields": [{"name": name, "type": of} for name, of in fields.items()]}
    parsed, records = fastavro.parse_schema(dict(schema)), []
    for row in rows:
        to = io.BytesIO()
        fastavro.schemaless_writer(to, parsed, row)
        records.append(to.getvalue())
    format = {"name": "avro", "schema": avro_schema.canonical(json.dumps(schema))}
    return {
        "ours": decoder(format, columns, records, len(records)),
        "fastavro + NumPy": by_256(records, lambda some: take(parsed, some)),
    }


def read_avro(parsed: Any, records: list[bytes]) -> list[list[Any]]:
    return [list(fastavro.schemaless_reader(io.BytesIO(record), parsed, None).values()) for record in records]


def avro_floats() -> Sides:
    fields = {**dict.fromkeys(NUMBERS, "float"), "late": "int"}
    return avro(fields, FLOATS, float_rows(), lambda parsed, some: np.array(read_avro(parsed, some), np.float32))


def avro_criteo() -> Sides:
    nullable = {**{name: ["null", "long"] for name in COUNTS}, **{name: ["null", "string"] for name in TEXTS}}

    def take(parsed: Any, records: list[bytes]) -> None:
        rows = read_avro(parsed, records)
        numbers = np.array([row[:14] for row in rows], np.float32)
        numbers[np.isnan(numbers)] = 0
        hashed([row[14:] for row in rows])

    return avro({"late": "int", **nullable}, CRITEO, criteo_rows(), take)


@bench(
    "avro",
    {
        (avro_floats,): [Line("28 float32, 114 bytes", "ours", "fastavro + NumPy", 60)],
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


def protobuf(fields: list[tuple[Any, ...]], columns: Schema, rows: Rows, take: Callable[[Rows], object]) -> Sides:
    file = File("row.proto")
    file.add("Row", *fields)
    made_class = file.message("Row")
    records = [made_class(**row).SerializeToString() for row in rows]
    schema = protobuf_schema.canonical(protobuf_schema.canonical_bytes(file.set_bytes()))
    return {
        "ours": decoder({"name": "protobuf", "schema": schema}, columns, records, len(records)),
        "upb + NumPy": by_256(records, lambda some: take([made_class.FromString(record) for record in some])),
    }


def protobuf_floats() -> Sides:
    fields, pick = [(name, i, "float") for i, name in enumerate(NUMBERS, 1)], attrgetter(*NUMBERS, "late")
    of_label = ("late", 29, "int32")
    return protobuf(
        [*fields, of_label], FLOATS, float_rows(), lambda rows: np.array([pick(row) for row in rows], np.float32)
    )


def protobuf_criteo() -> Sides:
    counts = [(name, i, "int64", "optional") for i, name in enumerate(COUNTS, 2)]
    texts = [(name, i, "string", "optional") for i, name in enumerate(TEXTS, 15)]
    numbers, words = attrgetter("late", *COUNTS), attrgetter(*TEXTS)

    def take(rows: Rows) -> None:
        np.array([numbers(row) for row in rows], np.float32)
        hashed([words(row) for row in rows])

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
