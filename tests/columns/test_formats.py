"""Every format against its slow reference: its examples, cut, mutated and resumed; JSON and msgpack of any nesting."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np
from example_format import encoded
from hypothesis import given, note
from hypothesis import strategies as st
from long_tables import in_full_all, some

from streamtrain import _native
from streamtrain.columns.formats import format_names, record_format
from streamtrain.columns.schema import Schema
from tests.columns.conftest import every_format, every_schema, spoiled

NAMES = ["x1", "x2", "x3", "carrier", "origin", "late", "w", "when", "id", "other"]
numbers = st.one_of(
    st.integers(-3, 3),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.floats(width=32),
    st.just(3.5e38),
    st.just(-0.0),
    st.just(2.0**53),
)
texts = st.one_of(
    st.sampled_from(["", "walk", "sit", "AA", "n/a", "é", "\U0001f6eb", '"\\\n', "1", "-0.5", "2026-11-22T02:10:00Z"]),
    st.text(max_size=12),
)
cells = st.one_of(numbers, texts, st.booleans(), st.none())
nested = st.recursive(
    cells, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)), max_leaves=6
)
likely = st.one_of(cells, cells, cells, nested)
row_maps = st.dictionaries(st.sampled_from(NAMES), likely, max_size=10)
full_maps = st.fixed_dictionaries({name: cells for name in NAMES[:8]})
row_lists = st.one_of(
    st.lists(likely, min_size=4, max_size=4), st.lists(cells, min_size=7, max_size=9), st.lists(likely, max_size=4)
)
columns = st.integers(0, 9).flatmap(
    lambda n: st.dictionaries(st.sampled_from(NAMES), st.lists(cells, min_size=n, max_size=n), min_size=1, max_size=9)
)
records = st.one_of(
    row_maps, full_maps, row_lists, st.lists(st.one_of(full_maps, row_maps, row_lists), max_size=6), columns, nested
)


def test_both_halves_of_every_format_are_there() -> None:
    assert format_names() == _native.decoder_formats()
    for name in format_names():
        module = record_format(name)
        assert module.HELP and module.EXAMPLES and module.encode and module.parse


@every_schema
@every_format
def test_examples(schema: Schema, format_name: str, same: Any) -> None:
    trained = 0
    for record in record_format(format_name).EXAMPLES:
        for capacity in (1, 3, 64):
            trained += same(schema, format_name, record, capacity).trained
    assert trained > 0


@in_full_all()
@every_schema
@every_format
def test_examples_cut_at_every_byte_and_mutated(
    schema: Schema, format_name: str, same: Any, take: Callable[..., Any]
) -> None:
    for number, record in enumerate(record_format(format_name).EXAMPLES):
        parts = spoiled(record, take, 250)
        for part in parts if take is not some else parts[number % 3 :: 3]:  # jobs at random have more
            same(schema, format_name, part)


@given(record=records, spaces=st.booleans(), ascii_only=st.booleans())
def test_json_and_msgpack_of_any_nesting(
    schemas: Any, same: Any, record: Any, spaces: bool, ascii_only: bool
) -> None:
    text = json.dumps(record, ensure_ascii=ascii_only, separators=None if spaces else (",", ":"))
    try:
        packed = msgpack.packb(record, use_single_float=spaces)
    except (OverflowError, UnicodeEncodeError):
        packed = b""
    for name, schema in schemas.items():
        note(name)
        same(schema, "json", text.encode(errors="surrogatepass"))
        same(schema, "msgpack", packed)


@given(text=st.text(alphabet='{}[]",:\\u0d8e1.-+ntfN \t\x01é', max_size=40))
def test_json_like_text(same: Any, schemas: Any, text: str) -> None:
    same(schemas["simple"], "json", b'{"x1":' + text.encode())
    same(schemas["simple"], "json", text.encode())


@given(data=st.binary(max_size=60))
def test_any_bytes(schemas: Any, same: Any, data: bytes) -> None:
    for name, format_name in itertools.product(schemas, format_names()):
        note(f"{name}, {format_name}")
        same(schemas[name], format_name, data)


@every_schema
@given(count=st.integers(0, 200), seed=st.integers(0, 2**32))
def test_generated_packed(schema: Schema, same: Any, count: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    made: dict[str, Any] = {}
    for name, column in schema.columns:
        if chance.random() < 0.15:
            continue
        kind = chance.choice(["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "bool", "text"])
        if column.entry.is_text(column) or (name == "late" and schema.class_names):
            kind = chance.choice(["text", "text", "i4"])
        if kind == "text" and name in ("carrier", "origin", "late", "id"):
            values = chance.choice(
                ["walk", "sit", "", "1", "é" * 9, *(str(i) for i in range(chance.integers(1, 300)))], count
            )
        elif kind in ("f4", "f8"):
            values = chance.normal(size=count).astype(kind)
            values[chance.random(count) < 0.01] = np.nan
        else:
            values = chance.integers(0, 2 if name == "late" else 100, count).astype("i8" if kind == "text" else kind)
        if chance.random() < 0.3:
            values = np.ma.MaskedArray(values, chance.random(count) < 0.05)
        made[name] = values
    same(schema, "packed", record_format("packed").encode(schema, made), int(chance.integers(1, 130)))


@in_full_all()
@every_schema
@every_format
def test_resumes_at_every_row(schema: Schema, format_name: str, native: Any, take: Callable[..., Any]) -> None:
    """from_row gives what follows that row, for every row and slot size; rows before it are passed over unreported."""
    for record in record_format(format_name).EXAMPLES:
        whole, tally, stops = native(schema, format_name, 1000).decode(record)
        for capacity in take((2, 1, 5)):
            decoder = native(schema, format_name, capacity)
            blocks, straddled, _ = decoder.decode(record)
            assert (straddled.trained, straddled.dead, straddled.filtered) == (
                tally.trained,
                tally.dead,
                tally.filtered,
            )
            for name, block in blocks.items():
                np.testing.assert_array_equal(block.view(np.uint32), whole[name].view(np.uint32))
            for from_row in range(stops[-1] + 2):
                resumed, rest, _ = decoder.decode(record, from_row)
                dead = [row for each in tally.dead_rows for row in range(each.row_from, each.row_to) if row >= from_row]
                assert rest.dead == len(dead)
                assert rest.trained == len(resumed["weight"])
                for name, block in resumed.items():
                    tail = whole[name][len(whole[name]) - len(block) :]
                    np.testing.assert_array_equal(block.view(np.uint32), tail.view(np.uint32))
                if from_row >= stops[-1]:
                    assert rest.trained == rest.dead == rest.filtered == 0


@every_schema
@every_format
def test_encode_round_trip(schema: Schema, format_name: str, native: Any) -> None:
    for count in (1, 500):
        chance = np.random.default_rng(3)
        given_columns = {
            name: chance.choice(["walk", "sit"], count)
            if name in ("carrier", "origin") or schema.class_names
            else chance.integers(0, 2, count)
            for name, _ in schema.columns
        }
        for name in ("x1", "x2", "x3", "w", "when"):
            given_columns[name] = chance.random(count).astype(np.float32) + 1
        if "0" in schema.class_names:
            given_columns["late"] = chance.choice(["0", "1"], count)
        record = encoded(format_name, schema, given_columns)
        blocks, tally, _ = native(schema, format_name).decode(record)
        assert (tally.trained, tally.dead, tally.filtered) == (count, 0, 0), tally.dead_rows
        np.testing.assert_array_equal(blocks["numbers"][:, 0], given_columns["x1"])
