"""Avro container files as fastavro writes them: the same cells, whatever codec and pieces; broken ones are named."""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pytest

import streamtrain
from streamtrain import Job
from streamtrain.errors import UserMistake
from streamtrain.files import source
from streamtrain.files.blocks import Size
from streamtrain.files.column_selection import ColumnSelection
from streamtrain.files.reading import count_rows, read_blocks, read_rows

NOW = datetime(2024, 7, 1, 12, 0, 0, 123_000, tzinfo=UTC)
MILLIS, MICROS = "local-timestamp-millis", "timestamp-micros"
FIELDS: dict[str, Any] = {
    "x": "double",
    "n": ["null", "long"],
    "word": {"type": "enum", "name": "W", "symbols": ["a", "b"]},
    "raw": "bytes",
    "late": "boolean",
    "at": {"type": "long", "logicalType": MICROS},
    "tags": {"type": "map", "values": "int"},
    "here": ["null", {"type": "long", "logicalType": MILLIS}],
    "list": {"type": "array", "items": "float"},
    "day": {"type": "int", "logicalType": "date"},
    "in": {"type": "record", "name": "In", "fields": [{"name": "s", "type": ["null", "string"]}]},
    "price": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
}
FIELD_LIST = [{"name": name, "type": kind} for name, kind in FIELDS.items()]
SCHEMA = {"type": "record", "name": "Row", "namespace": "a.b", "fields": FIELD_LIST}
MS = int(NOW.timestamp() * 1000)


def given(count: int, drawn: random.Random) -> list[dict[str, Any]]:
    either = drawn.choice
    return [
        {
            "x": drawn.random(), "n": either([None, 2**40, -3]), "word": either("ab"), "raw": drawn.randbytes(3),
            "late": drawn.random() < 0.5, "at": NOW, "tags": {"k": 1}, "here": either([None, NOW.replace(tzinfo=None)]),
            "list": [0.5, 1.5], "day": date(2024, 7, 1), "in": {"s": either([None, "é"])}, "price": Decimal("12.25"),
        }
        for _ in range(count)
    ]  # fmt: skip


def read(path: Path) -> list[dict[str, Any]]:
    rows = list(read_rows(str(path)))
    assert count_rows(str(path)) == len(rows)
    return rows


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_cells_as_they_were_given(tmp_path: Path, codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.avro"
    for count in (0, 1, 300):
        rows = given(count, random.Random(count))
        with path.open("wb") as file:
            fastavro.writer(file, SCHEMA, rows, codec=codec, sync_interval=1000)
        here, at = np.datetime64(MS, "ms"), np.datetime64(MS * 1000, "us")
        expected = [{**row, "at": at, "here": row["here"] and here, "day": np.datetime64("2024-07-01"), "price": 12.25}
                    for row in rows]  # fmt: skip
        for piece in (3, 1 << 20):
            monkeypatch.setattr(source, "_PIECE_BYTES", piece)
            assert read(path) == expected


def test_it_trains_and_is_produced_as_other_files_are(tmp_path: Path) -> None:
    path = tmp_path / "rows.avro"
    with path.open("wb") as file:
        fastavro.writer(file, SCHEMA, given(200, random.Random(1)))
    word = {"kind": "category", "buckets": 8, "path": "in.s", "missing": ""}
    columns = {"x": {}, "at": {"role": "event_time"}, "s": word, "late": {"role": "label"}}
    tables: dict[str, Any] = {"columns": columns, "train": {"workers": 1}}
    assert streamtrain.fit(tables, files=[str(path)]).manifest.rows_seen == 200
    job = Job.from_tables({**tables, "model": {"loss": "binary_cross_entropy"}})
    blocks = read_blocks([str(path)], ColumnSelection(job.schema), Size(50))
    found = [json.loads(record) for block in blocks for record in job.plan().records(block)]
    assert [record["at"] for record in found] == [[MS] * 50] * 4


def test_broken_files_are_named(tmp_path: Path) -> None:
    path, drawn = tmp_path / "rows.avro", random.Random(3)
    with path.open("wb") as file:
        fastavro.writer(file, SCHEMA, given(20, drawn), sync_interval=200)
    whole = path.read_bytes()
    for _ in range(400):
        raw = bytearray(whole[: drawn.randrange(len(whole))] if drawn.random() < 0.5 else whole)
        if raw and len(raw) == len(whole):
            raw[drawn.randrange(len(raw))] ^= 1 << drawn.randrange(8)
        path.write_bytes(raw)
        try:
            list(read_rows(str(path)))
        except UserMistake as mistake:
            assert str(path) in str(mistake)
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "long"}, [1, 2])
    with pytest.raises(UserMistake, match=r"rows.avro: expected an Avro .* got a schema that is none of rows"):
        read(path)
    path.write_bytes(whole.replace(b"avro.codec\x08null", b"avro.codec\x0czipped"))
    with pytest.raises(UserMistake, match="write it with one of null, deflate"):
        read(path)
