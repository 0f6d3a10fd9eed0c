"""Formats and schemas at random: the native decoders and encoders give what the slow reference gives, whatever comes.

A failure prints the smallest job that shows it, and notes the format and the record.
"""

from __future__ import annotations

import codecs
import inspect
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from example_format import is_columnar
from hypothesis import given, note, seed, settings
from hypothesis import strategies as st
from long_tables import examples

from streamtrain.columns.formats import Format, is_lines, needs_schema
from streamtrain.columns.paths import cell_at
from streamtrain.columns.record_encoding import Records
from streamtrain.columns.rows import record_rows
from tests.columns import reference
from tests.columns.conftest import assert_program_rows, assert_resumed, assert_same, joined
from tests.columns.drawn_jobs import TEXTS, DrawnJob, accepted, jobs, json_bytes, msgpack_bytes
from tests.oracles.records import encode_records

TIMES = st.sampled_from([1, 1, 1, 40, 100])  # rows of which packed ones go by blocks of 256
CAPACITIES = st.sampled_from([7, 1, 64])
BETWEEN = st.sampled_from(["\n", "\r\n", " \n\n", " ", "\n,"])
FROM_ROW = st.integers(0, 6)


def name_of(format: Format) -> str:
    return format if isinstance(format, str) else str(format["name"])


def decoded(job: DrawnJob, format: Format, record: bytes, capacity: int, is_whole: bool = True) -> reference.Reference:
    """The record by the native decoder, as the reference has it; the rows that are shown of it are as many."""
    note(f"{format}, slots of {capacity} rows: {record!r}")
    expected = assert_same(job.schema, format, record, capacity, job.around)
    # of broken columns those that can be read are shown; of a record without a column none
    if job.schema.record_names and (is_whole or not is_columnar(name_of(format))):
        view = record_rows(job.schema, format, record, job.around.headers)
        assert len(view.rows) + (view.broken is not None) == expected.rows
    return expected


def written(job: DrawnJob, format: Format, rows: list[dict[str, Any]]) -> list[bytes]:
    """Encodes by the native encoder."""
    records = Records(job.schema, format, "rows", 1000, 1 << 20)
    return [record.value for block in records.blocks(rows, None, False) for record in block]


def check_rows(job: DrawnJob, times: int, capacity: int) -> None:
    def outcome(format: Format, records: list[bytes]) -> tuple[Any, ...]:
        return joined([decoded(job, format, record, capacity) for record in records])

    for format in job.formats():
        rows = job.nested_rows
        if is_columnar(name_of(format)):
            rows = [row for row in rows if is_plain(job, format, row)]
        by_native, _ = accepted(lambda given, format=format: written(job, format, given), rows)
        both, _ = accepted(
            lambda given, format=format: encode_records(format, job.schema, given), [rows[at] for at in by_native]
        )
        kept = [rows[by_native[at]] for at in both] * times
        if not kept or not job.schema.record_names:
            continue
        note(f"{format}: the native encoder beside the slow one")
        theirs = outcome(format, encode_records(format, job.schema, kept))
        assert outcome(format, written(job, format, kept)) == theirs, "as both encoders wrote it"
        if not needs_schema(name_of(format)) and all(is_plain(job, format, row) for row in kept):
            assert outcome("json", [json_bytes(kept)]) == theirs, f"as JSON and as {format}"


def is_plain(job: DrawnJob, format: Format, row: dict[str, Any]) -> bool:
    """Returns whether the cells are in the format what they are in JSON: texts taken alone, hashes alike."""
    of_texts = {name for name, kind in job.kinds.items() if kind in TEXTS}
    if is_lines(name_of(format)) or (job.kinds["late"] != "one of two" and isinstance(row.get("late"), bool)):
        return False  # a column of one type has no booleans among numbers
    cells = {name: cell_at(row, job.schema.paths.get(name, (name,))) for name in job.columns}
    if any(job.kinds[name] in TEXTS[4:] and isinstance(cell, bool | float) for name, cell in cells.items()):
        return False  # NumPy has booleans beside numbers as numbers, and other digits for large fractions
    if name_of(format) == "csv" and "12" in cells.values():
        return False  # there a number, even where a time is a text
    return all(name in of_texts or not isinstance(cell, str) for name, cell in cells.items())


@settings(max_examples=examples(480))
@given(job=jobs(), times=TIMES, capacity=CAPACITIES)
def test_rows_mean_the_same_in_every_format(job: DrawnJob, times: int, capacity: int) -> None:
    """Written by the slow encoders and by the native ones, alone and so many that packed rows go by blocks."""
    check_rows(job, times, capacity)


def shapes(job: DrawnJob) -> Iterator[Any]:
    """Yields every shape that a JSON or msgpack record of some rows may have."""
    yield job.nested_rows[0]
    yield job.nested_rows
    names = [name for name, column in job.columns.items() if "from" not in column]
    yield [[row.get(name) for name in names] for row in job.rows]
    yield [row.get(name) for name in names for row in job.rows[:1]]
    yield [*job.nested_rows, None, [row.get(name) for name in names[1:] for row in job.rows[:1]]]
    yield {**job.nested_rows[0], **job.nested_rows[-1], "u": None}
    if "sparse" not in job.kinds.values() and not (job.schema.lists and job.schema.paths):  # which may be a row too
        yield {name: [row.get(name) for row in job.rows] for name in [*names, "other"]}
        yield {name: [row.get(name) for row in job.rows][at % 2 :] for at, name in enumerate(names)}


def check_shapes(job: DrawnJob, between: str, capacity: int) -> None:
    for value in shapes(job):
        decoded(job, "json", json_bytes(value), capacity)
        if (record := msgpack_bytes(value)) is not None:
            decoded(job, "msgpack", record, capacity)
    decoded(job, "json", between.encode().join(json_bytes(row) for row in job.nested_rows), capacity)
    last = {name: {} if name == "u" and capacity == 7 else cell for name, cell in job.nested_rows[-1].items()}
    twice = job.nested_rows[0], last  # each key is there again, maybe with nothing below
    decoded(job, "json", b"{%b}" % b",".join(json_bytes(row)[1:-1] for row in twice), capacity)
    parts = [msgpack_bytes(part) for row in twice for pair in row.items() for part in pair]
    if None not in parts:
        decoded(job, "msgpack", b"\xde" + struct.pack(">H", len(parts) // 2) + b"".join(map(bytes, parts)), capacity)
    decoded(job, "json", codecs.BOM_UTF8 + json_bytes(job.nested_rows), capacity)
    assert_program_rows(job.schema.without_message(), json_bytes(job.nested_rows), job.nested_rows)


@settings(max_examples=examples(300))
@given(job=jobs(), between=BETWEEN, capacity=CAPACITIES)
def test_records_and_a_programs_rows_of_every_shape(job: DrawnJob, between: str, capacity: int) -> None:
    check_shapes(job, between, capacity)


Damage = list[tuple[str, int, int]]
damages = st.lists(
    st.tuples(
        st.sampled_from(["cut", "set", "insert", "delete"]),
        st.integers(0, 600),
        st.one_of(st.sampled_from([*b'{}[]",:0\x90\x81\xff\x80\0\1\2\n|']), st.integers(0, 255)),
    ),
    min_size=1, max_size=12,
)  # fmt: skip


def damaged(record: bytes, damage: Damage) -> Iterator[bytes]:
    """The record with each damage alone, and with all of them."""
    worse = bytearray(record)
    for what, place, byte in damage:
        for one in (bytearray(record), worse):
            at = place % (len(one) or 1)
            if what == "cut":
                del one[at:]
            elif what == "set" and one:
                one[at] = byte
            elif what == "insert":
                one[at:at] = bytes([byte])
            else:
                del one[at : at + 1 + byte % 3]
            if one is not worse:
                yield bytes(one)
    yield bytes(worse)


def check_damage(job: DrawnJob, damage: Damage, capacity: int) -> None:
    for format in job.formats():
        _, records = accepted(lambda rows, format=format: encode_records(format, job.schema, rows), job.nested_rows)
        for record in records[:1]:
            for worse in damaged(record, damage):
                decoded(job, format, worse, capacity, is_whole=False)


@settings(max_examples=examples(300))
@given(job=jobs(), damage=damages, capacity=CAPACITIES)
def test_any_bytes_get_an_answer(job: DrawnJob, damage: Damage, capacity: int) -> None:
    """Rows or a dead letter, those of the reference, of records that are cut short or have other bytes in them."""
    check_damage(job, damage, capacity)


def check_resumed(job: DrawnJob, from_row: int, capacity: int) -> None:
    for format in job.formats():
        kept, records = accepted(lambda rows, format=format: encode_records(format, job.schema, rows), job.nested_rows)
        for record in records if kept else ():
            note(f"{format}: {record!r}")
            assert_resumed(job.schema, format, record, from_row, capacity, job.around)


@settings(max_examples=examples(300))
@given(job=jobs(), from_row=FROM_ROW, capacity=CAPACITIES)
def test_what_follows_a_row_is_decoded_alike(job: DrawnJob, from_row: int, capacity: int) -> None:
    """Rows before it are passed over unreported."""
    check_resumed(job, from_row, capacity)


@pytest.mark.full
@pytest.mark.parametrize("check", [check_rows, check_shapes, check_damage, check_resumed])
def test_at_length(check: Callable[..., None]) -> None:
    """The same of many more jobs."""
    drawn = {
        "times": TIMES, "capacity": CAPACITIES, "between": BETWEEN, "damage": damages,
        "from_row": FROM_ROW,
    }  # fmt: skip
    parameters = inspect.signature(check).parameters
    draws = {name: strategy for name, strategy in drawn.items() if name in parameters}
    seed(1)(settings(max_examples=400)(given(job=jobs(), **draws)(check)))()
