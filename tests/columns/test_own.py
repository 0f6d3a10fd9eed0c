"""Message metadata of a row: it goes into the message, and rows that differ in it share none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_format import plain_formats
from looped import over
from slots import RowSlot

from streamtrain import RecordWriter, UserMistake
from streamtrain.clients.dead_letters import Part, Rows, dead_rows
from streamtrain.clients.topic_reader import read_messages
from streamtrain.columns.records import Own, Record, Records
from streamtrain.columns.schema import Schema
from streamtrain.job import Job
from streamtrain.topics.dead_letters import DeadLetter, DeadRange
from tests.e2e.harness import LiveJob, rows

SCHEMA = Schema.from_columns(
    {
        "x": {},
        "user": {"kind": "category", "buckets": 9, "from": "key", "missing": "-"},
        "tenant": {"kind": "category", "buckets": 9, "from": "headers.t", "missing": "-"},
        "level": {"parse": "decimal", "from": "headers.level", "missing": 0},
        "late": {"role": "label"},
    },
    "binary_cross_entropy",
)
ROWS = [
    {"x": 1, "user": "a", "tenant": "é", "level": 1.5, "late": 0},
    {"x": 2, "user": "b", "tenant": "é", "level": 1.5, "late": 1},
    {"x": 3, "user": "a", "tenant": "é", "level": 1.5, "late": 0},
    {"x": 4, "user": "a", "tenant": None, "level": 1.5, "late": 1},
    {"x": 5, "late": 1},
]
HEADERS = (("t", "é".encode()), ("level", b"1.5"))
EXPECTED = [(Own(b"a", HEADERS), 2), (Own(b"b", HEADERS), 1), (Own(b"a", HEADERS[1:]), 1), (Own(), 1)]


def made(given: Any, format: Any = "json", **settings: Any) -> list[Record]:
    records = Records(SCHEMA, format, "rows", pack=10, most_bytes=settings.pop("most_bytes", 10_000))
    along = {"key": None, "own_keys": True, **settings}
    return [record for block in records.blocks(given, **along) for record in block]


@over("name", plain_formats(SCHEMA))
def test_rows_share_a_record_where_all_around_is_the_same(name: str) -> None:
    columns = {key: [row.get(key) for row in ROWS] for key in ROWS[0]}
    for given in (ROWS, columns, {**columns, "x": np.arange(1, 6)}):
        found = made(given, name)
        assert [(record.own, record.rows) for record in found] == EXPECTED
    slot = RowSlot(SCHEMA, 8, name)
    ((_, told),) = slot.record(found[0].value)
    assert told.trained == 2 and slot.views["numbers"][:2, 0].tolist() == [1, 3]


def test_a_key_that_is_given_is_that_of_all() -> None:
    found = made(ROWS, key=b"all", own_keys=False)
    assert [(record.own.key, record.rows) for record in found] == [(b"all", 3), (b"all", 1), (b"all", 1)]


def test_what_is_around_counts_in_a_message() -> None:
    row = {**ROWS[0], "tenant": "t" * 5_000}
    assert len(made(row)) == 1
    with pytest.raises(UserMistake, match="at most 5,000 bytes"):
        made(row, most_bytes=5_000)


def test_rows_are_sent_again_with_what_stood_around_them() -> None:
    text = 'name = "j"\n[kafka]\nbootstrap.servers = "b"\n[columns]\nx = {}\nlate = { role = "label" }\n'
    job = Job.parse(text + 't = { kind = "category", buckets = 9, from = "headers.t" }\n')
    letter = DeadLetter(
        "j.records", 0, 5, (DeadRange(0, 1, "$.x", "wrong"),), 1, 1, value=b'{"x": 1, "late": 1}',
        headers=(("t", b"a"),),
    )  # fmt: skip
    assert dead_rows(job, letter) == Rows([Part([{"x": 1, "late": 1}], None, (("t", b"a"),))])
    assert dead_rows(job, replace(letter, headers=())).still_bad == ["headers.t"]


def test_through_kafka(kafka: Any, tmp_path: Path) -> None:
    columns = 'tenant = { kind = "category", buckets = 9, from = "headers.t" }'
    job = LiveJob(kafka, tmp_path, partitions=1, more_columns=columns)
    given = [{**row, "tenant": f"{number % 3}"} for number, row in enumerate(rows(30))]
    with RecordWriter(job.job, pack=8) as writer:
        writer.write(given, headers={"trace": "x"})
        for row in given:
            writer.write(row)
    assert writer.rows_written == 60
    messages = list(read_messages(job.job, "records", until_end=True))
    told = [dict(message.headers) for message in messages]
    assert {header["t"] for header in told} == {b"0", b"1", b"2"} and sum("trace" in header for header in told) == 6
    assert job.train("--until-end")[-1]["rows"] == 60
