"""The native encoders against the Python ones of each format: what is decoded of both is the same, to the bit."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import msgpack
import numpy as np
import pytest
from example_format import encoded, example_format
from hypothesis import given, settings
from hypothesis import strategies as st
from long_tables import examples
from looped import over
from slots import decode_rows

from streamtrain import _native
from streamtrain.columns.formats import format_names
from streamtrain.columns.schema import Schema
from tests.columns.conftest import assert_same, every_format, every_schema, joined


def encoder(format_name: str, schema: Schema) -> _native.RecordEncoder:
    return _native.RecordEncoder(example_format(format_name), schema.native_columns(), lambda value, column: None)


def assert_decoded_alike(format_name: str, schema: Schema, ours: bytes, theirs: bytes) -> None:
    """Each as the slow reference has it, too."""
    found, expected = (assert_same(schema, format_name, record, 64) for record in (ours, theirs))
    assert joined([found]) == joined([expected])


@every_schema
@every_format
@over("form", ["dicts", "arrays"])
def test_rows_with_ignored_columns_alone_are_as_many(schema: Any, format_name: str, form: str) -> None:
    name = next((name for name, _ in schema.columns if name not in schema.record_names), None)
    if name is None:
        return
    native = encoder(format_name, schema)
    if form == "dicts":
        native.read_rows([{}, {name: "walk"}])
    else:
        native.read_columns({name: ["sit", "walk"]}, 2)
    assert assert_same(schema, format_name, native.encode(0, 2)).rows == 2


@every_schema
@every_format
@settings(max_examples=examples(60) // 2)
@given(chance=st.integers(0, 2**32 - 1), count=st.sampled_from([1, 2, 7, 200]))
def test_arrays_are_encoded_as_python_does(schema: Any, format_name: str, chance: int, count: int) -> None:
    random = np.random.default_rng(chance)
    types = ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"]
    columns: dict[str, Any] = {}
    for name, column in schema.columns:
        if random.random() < 0.1 and columns:
            continue
        if column.entry.is_text(column) or column.role == "key":
            words = ["AA", "walk", "sit", "1", "", "é" * 9, *map(str, range(random.integers(1, 300)))]
            columns[name] = random.choice(words[: int(random.choice([4, 999]))], count).tolist()
        elif column.role == "event_time":
            columns[name] = random.integers(0, 2**40, count)
        else:
            array = random.integers(0, 2, count).astype(random.choice(types))
            columns[name] = np.repeat(array, 2)[::2] if random.random() < 0.3 else array
    native = encoder(format_name, schema)
    native.read_columns(columns, count)
    first = int(random.integers(0, count))
    chosen = random.permutation(count)[: int(random.integers(1, count + 1))]
    for ours, picked in (
        (native.encode(0, count), np.arange(count)),
        (native.encode(first, count - first), np.arange(first, count)),
        (native.encode_chosen(chosen.tolist()), chosen),
    ):
        part = {name: np.array(values, None if isinstance(values, np.ndarray) else object)[picked]
                for name, values in columns.items()}  # fmt: skip
        theirs = encoded(format_name, schema, part)
        assert_decoded_alike(format_name, schema, ours, theirs)


@every_format
@over("dtype", ["f4", "f8"])
def test_nan_is_missing_and_infinity_refused(schemas: Any, format_name: str, dtype: str) -> None:
    simple = schemas["simple"]
    holes = {"x1": np.array([1, np.nan, 3, np.nan], dtype), "x2": np.arange(4.0), "late": np.zeros(4)}
    native = encoder(format_name, simple)
    native.read_columns(holes, 4)
    (blocks, tally) = decode_rows(format_name, simple, native.encode(0, 4))
    assert [each.row_from for each in tally.dead_rows] == [1, 3] and blocks["numbers"][:, 0].tolist() == [1, 3]
    native.read_columns({**holes, "x2": np.array([0, 1, -np.inf, 3], dtype)}, 4)
    with pytest.raises(ValueError) as raised:
        native.encode(0, 4)
    assert raised.value.args == (2, "x2", "number", "-Infinity")
    with pytest.raises(ValueError) as raised:
        native.read_rows([{"x1": 1}, {"x1": float("inf")}])
    assert raised.value.args == (1, "x1", "number", "Infinity")


def test_other_fields_go_along_where_they_are_plain(schemas: Any) -> None:
    odd = {"tags": ["a"], "at": datetime(2026, 1, 2), "odd": object(), 5: 1, "inf": 1e999}
    given_row = {"x1": 1, "more": "kept", **odd}
    for format_name, loads in (("json", json.loads), ("msgpack", msgpack.unpackb)):
        native = encoder(format_name, schemas["simple"])
        assert loads(native.encode_row(given_row)) == {"x1": 1, "more": "kept"}
        for turn in range(5):  # names of former calls take no one's place
            many = {f"{turn}.{number}": number for number in range(1_000)}
            assert 65 <= len(loads(native.encode_row({"x1": 1, **many}))) <= 129
            some = {f"{turn}-{number}": number for number in range(64)}
            assert loads(native.encode_row({"x1": 1, **some})) == {"x1": 1, **some}
    blocks, _ = decode_rows("packed", schemas["simple"], encoder("packed", schemas["simple"]).encode_row(given_row))
    assert len(blocks["numbers"]) == 0  # x2 and late are missing


@every_format
def test_a_dict_of_arrays_is_no_row(schemas: Any, format_name: str) -> None:
    native = encoder(format_name, schemas["simple"])
    assert native.encode_row({"tags": [1, 2], "x1": [1, 2]}) is None
    assert native.encode_row({"tags": [1, 2], "x1": 1}) is not None


def test_every_format_has_an_encoder(schemas: Any) -> None:
    for name in format_names():
        assert encoder(name, schemas["simple"]).encode_row({"x1": 1, "x2": 2, "late": 1})
    with pytest.raises(ValueError, match="no record format is named arvo"):
        _native.RecordEncoder("arvo", schemas["simple"].native_columns(), lambda value, column: None)


@over("rows", [[{"x1": 1}, 5], [5]])
def test_only_dicts_and_columns_of_one_length_are_read(schemas: Any, rows: list[Any]) -> None:
    native = encoder("json", schemas["simple"])
    with pytest.raises(TypeError):
        native.read_rows(rows)
    with pytest.raises(ValueError, match="one length"):
        native.read_columns({"x1": [1, 2], "x2": [1]}, 2)
    native.read_rows([{"x1": 1}])
    for bad in (lambda: native.encode(0, 2), lambda: native.encode_chosen([1])):
        with pytest.raises(ValueError, match="behind the last"):
            bad()
    native.clear()
    with pytest.raises(ValueError, match="behind the last"):
        native.encode(0, 1)
