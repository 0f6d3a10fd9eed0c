"""[columns]: names in braces, checks with their messages, the slot's blocks, round trip and digest; whose settings are
whose; times in a column's unit, keys as bytes."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated, Any, get_args
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
from looped import over
from numpy_predict import murmur3
from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from streamtrain import _native
from streamtrain.columns.around import FROM
from streamtrain.columns.column import Column
from streamtrain.columns.kinds import FEATURE, REGISTRY, features, kinds, roles
from streamtrain.columns.kinds.key import key_bytes
from streamtrain.columns.kinds.kind import Block, Settings
from streamtrain.columns.kinds.time import time
from streamtrain.columns.names import expand
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from tests.columns.conftest import every_schema
from tests.columns.murmur3 import murmur3_64
from tests.oracles import kinds as oracles

BINARY = "binary_cross_entropy"
LABEL = {"late": {"role": "label"}}


@over(
    ("pattern", "names"),
    [
        ("x", ["x"]),
        ("C{1..3}", ["C1", "C2", "C3"]),
        ("x{a,b}y", ["xay", "xby"]),
        ("{01..03}", ["01", "02", "03"]),
        ("{2..0}", ["2", "1", "0"]),
        ("{a,b}{1..2}", ["a1", "a2", "b1", "b2"]),
    ],
)
def test_names_expand_as_in_a_shell(pattern: str, names: list[str]) -> None:
    assert expand(pattern) == names


@over("pattern", ["C{1..3", "C}", "{{a,b}}", "{a}", "{}", "{1..10000000}", "{1..1000}{1..1000}"])
def test_names_that_do_not_expand(pattern: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        expand(pattern)


@over(("columns", "loss", "problem"), [
    ({"x": {"knd": "number"}, **LABEL}, BINARY, "did you mean 'kind'"),
    ({"x": {"buckets": 3}, **LABEL}, BINARY, "buckets: only a category, a text or a sparse column has one"),
    ({"x": {"kind": "category", "buckets": 2, "standardize": True}, **LABEL}, BINARY, "standardize: only"),
    ({"x": {"missing": 1e39}, **LABEL}, BINARY, "square fits float32"),
    ({**LABEL}, BINARY, "at least one feature"),
    ({"x": {}, "y": {"role": "label", "classes": ["a", "b"]}}, "mean_squared_error", "expected a number"),
    ({"x": {}, "y": {"role": "label", "classes": ["walk", "sit"], "missing": "wlk"}}, BINARY, "did you mean 'walk'"),
    ({"x": {}, "y": {"role": "label", "missing": 2}}, BINARY, "index below 2"),
    ({"x": {"role": "weight", "missing": -1}, **LABEL}, BINARY, "not below 0"),
    ({"x": {"unit": "ms"}, **LABEL}, BINARY, "unit: only"),
    ({"x": {}, "raw": {"role": "input", "kind": "category", "missing": 1.5}, **LABEL}, BINARY,
     'a text or an integer for a category, got 1.5'),
])  # fmt: skip
def test_mistakes_are_named(columns: dict[str, Any], loss: str, problem: str) -> None:
    with pytest.raises(UserMistake) as raised:
        Schema.from_columns(columns, loss)
    assert problem in str(raised.value)
    assert raised.value.exit_code == 2


TAGS: dict[str, Any] = {"kind": "category", "list": True, "buckets": 1000, "most": 3}
WORDS: dict[str, Any] = {"kind": "text", "buckets": 1000, "most": 6}
PAIRS: dict[str, Any] = {"kind": "sparse", "buckets": 1000}


@over(
    ("columns", "problem"),
    [
        ({"tags": {**TAGS, "list": False}}, "most: only a column of lists, or a text, has one; say list = true"),
        (
            {"tags": {"kind": "category", "buckets": 9, "pool": "sum"}},
            "pool: only a column of lists, or a text, has one; say list = true",
        ),
        ({"place": {"kind": "vector"}}, "size: expected how many numbers a vector has, got none"),
        ({"tags": {**TAGS, "from": "key"}}, "from: a list is in the record"),
        ({"tags": {**TAGS, "most": 0}}, "most: Input should be greater than or equal to 1"),
        ({"t": {**WORDS, "buckets": None}}, "buckets: expected a number of buckets for a text, got none"),
        ({"t": {**WORDS, "ngrams": 9}}, "ngrams: expected a number from 1 to 8, or the least and the most, got 9"),
        ({"t": {**WORDS, "ngrams": [2, 1]}}, "ngrams: expected"),
        ({"t": {**WORDS, "ngrams": [1, 2, 3]}}, "ngrams: expected"),
        ({"t": {**WORDS, "missing": 0}}, 'missing: expected "dead_letter", "skip" or a text, got 0'),
        ({"t": {**WORDS, "missing": "a b c", "most": 2}}, "missing: expected a text of at most 2 entries, got 3"),
        ({"t": {**WORDS, "role": "label"}}, 'kind: expected "number" for role label'),
        ({"user": {**PAIRS, "namespaces": ["u", "u"]}}, "namespaces: expected names that differ"),
        ({"user": {**PAIRS, "namespaces": []}}, "namespaces: expected names that differ"),
        ({"user": {**PAIRS, "namespaces": ["a b"]}}, "namespaces: expected names that differ, without spaces"),
        ({"user": {**PAIRS, "namespace": ["u"]}}, "did you mean 'namespaces'"),
        ({"x": {"namespaces": ["u"]}}, "namespaces: only a column of kind sparse has them"),
        ({"t": {"from": "timestmp"}}, "did you mean 'timestamp'"),
        ({"t": {"from": "headers."}}, "headers.NAME"),
        ({"t": {"from": "key"}}, "key is text; say how it is parsed"),
        ({"t": {"from": "headers.a"}}, "headers.a is text"),
        ({"t": {"from": "offset", "role": "key"}}, "read by the producer alone"),
        ({"t": {"from": "timestamp", "role": "event_time", "unit": "s"}}, 'unit: expected "ms"'),
        ({"t": {"role": "event_time", "parse": "iso-8601"}}, 'parse: expected "iso8601" or a format'),
        ({"t": {"role": "event_time", "parse": "%Y-%q"}}, "got %q"),
        ({"t": {"role": "event_time", "parse": "%Y %Y"}}, "each part of a time once"),
        ({"t": {"role": "event_time", "parse": "%b %B"}}, "each part of a time once"),
        ({"t": {"role": "event_time", "parse": "iso8601", "zone": "Europe/Berlln"}}, "did you mean 'Europe/Berlin'"),
        ({"t": {"role": "event_time", "zone": "Europe/Berlin"}}, "say parse too"),
        ({"t": {"role": "event_time", "parse": "iso8601", "zone": "localtime"}}, "name of the IANA time zone database"),
        ({"t": {"kind": "category", "buckets": 4, "parse": "bool"}, "y": {"parse": "number"}}, "for a number"),
        ({"t": {"parse": "connect_decimal:2.5"}}, 'got "connect_decimal:2.5"'),
        ({"t": {"parse": "float"}}, "amount, decimal_comma or connect_decimal:SCALE for a number"),
        ({"t": {"kind": "category", "buckets": 4, "parse": "decimal"}}, "bool, number or connect_decimal:SCALE for"),
        ({"a": {"path": "u.x"}, "b": {"path": "u.x"}}, "columns.b: path: expected cells of its own, got $.u.x"),
        ({"u": {}, "b": {"path": "u.x"}}, "columns.b: path: expected cells of its own, got $.u.x, where those of u"),
        ({"b": {"path": "u.x"}, "u": {}}, "columns.u: path: expected cells of its own, got $.u, where those of b"),
        ({"a": {"path": "u.x"}, "b": {"path": "u[0]"}}, "got $.u[0] beside a's"),
        ({"v": {"path": "v[0]"}}, "columns.v: expected another name"),
        ({"a": {"path": "u."}}, "columns.a: path: expected keys and indexes such as user.age"),
        ({"x{1..3}": {"path": "v[{0..1}]"}}, "columns.x{1..3}: path: expected braces for as many as the name's, 3"),
        ({"x{1..2}": {"path": "v"}}, "got 1"),
        ({"x": {"path": "v{"}}, "path: expected braces in pairs"),
    ],
)  # fmt: skip
def test_mistakes_of_settings_are_named(columns: dict[str, Any], problem: str) -> None:
    with pytest.raises(UserMistake) as raised:
        Schema.from_columns({**columns, **LABEL}, BINARY)
    assert problem in str(raised.value)


def test_all_mistakes_at_once() -> None:
    with pytest.raises(UserMistake) as raised:
        Schema.from_columns({"a": {"kind": "category"}, "b{": {}, "c": {"missing": "x"}}, BINARY)
    assert [line.split(":")[0] for line in str(raised.value).splitlines()] == ["columns.a", "columns.b{", "columns.c"]


def test_blocks_and_engine_inputs(schemas: dict[str, Schema]) -> None:
    rich = schemas["rich"]
    assert rich.numbers == ["x1", "x2", "x3"] and rich.categories == ["carrier", "origin"]
    assert rich.block_specs() == [
        Block("categories", "i32", 2),
        Block("label", "i32", 1),
        Block("numbers", "f64", 3),
        Block("weight", "f32", 1),
    ]
    assert rich.engine_inputs() == {
        "numbers": 3,
        "standardize": [False, False, {"clip": 8.0, "half_life": 0.0, "floor": 1e-30}],
        "categories": [{"name": "carrier", "buckets": 1000, "embed": 8}, {"name": "origin", "buckets": 7, "embed": 8}],
        "classes": 3,
    }
    assert rich.class_names == ["walk", "sit", "true"] and rich.column_of("key")[0] == "id"  # type: ignore[index]
    regression = schemas["regression"].block_specs()
    assert sum(block.width for block in regression) == 4 and Block("numbers", "f32", 2) in regression
    standardized = Schema.from_columns({"x": {}, "y": {"role": "label", "standardize": True}}, "mean_squared_error")
    assert standardized.engine_inputs()["standardize_label"] == {"clip": 8.0, "half_life": 0.0, "floor": 1e-30}


@every_schema
def test_round_trip_and_digest(schema: Schema) -> None:
    assert Schema.from_dict(schema.to_dict()) == schema
    assert schema.for_requests().digest() == schema.digest()
    other = Schema.from_columns({"x1": {}, "x3": {}, **LABEL}, BINARY)
    assert other.digest() != schema.digest()
    with pytest.raises(UserMistake, match="expected columns"):
        Schema.from_dict({"columns": [{}]})


def test_hash_is_murmur3() -> None:
    """Values of the reference implementation (Austin Appleby's SMHasher)."""
    known = [(b"", 0, 0), (b"", 1, 0x514E28B7), (b"hello", 0, 0x248BFA47), (b"hello, world", 0, 0x149BBB7F)]
    known.append((b"The quick brown fox jumps over the lazy dog", 0x9747B28C, 0x2FA826CD))
    for text, seed, value in known:
        assert murmur3(text, seed) == _native.murmur3(text, seed) == value
    for size in range(40):
        assert murmur3(bytes(range(size)), size) == _native.murmur3(bytes(range(size)), size)
    assert murmur3_64(b"foo") == _native.murmur3(b"foo", 0, bits=64) == 2**64 - 2129773440516405919
    for size in range(70):
        text = bytes(range(100, 100 + size))
        assert murmur3_64(text, size) == _native.murmur3(text, size, 64)


SHARED = Settings.model_fields.keys()


@over("name", REGISTRY.names())
def test_a_kind_tells_what_it_is_and_what_its_columns_may_say(name: str) -> None:
    kind = kinds()[name]
    assert REGISTRY.describe()[name]
    assert kind is (features()[name] if kind.role == FEATURE else roles()[kind.role])
    for option, field in kind.options.model_fields.items():
        assert Column.model_fields[option].description, option
        assert option in SHARED or field.json_schema_extra["misplaced"], option  # type: ignore[index]


def test_every_kind_that_is_decoded_has_a_native_half_and_an_oracle() -> None:
    decoded = [name for name, kind in kinds().items() if kind.decoded]
    assert decoded == _native.column_kinds()
    assert decoded == sorted(path.stem for path in Path(oracles.__path__[0]).glob("[!_]*.py"))


def minimal(name: str) -> dict[str, Any]:
    role = kinds()[name].role
    return {"kind": name} if role == FEATURE else {"role": role}


def a_value(field: FieldInfo) -> Any:
    """One that a setting takes, other than its default."""
    words = [word for each in (field.annotation, *get_args(field.annotation)) for word in get_args(each)]
    plain = [word for word in words if isinstance(word, str | int)]
    for value in (True, False, 3, 0.5, *plain, "word", ["word"], {"some": 1}):
        try:
            TypeAdapter(Annotated[field.annotation, *field.metadata, None]).validate_python(value, strict=True)
        except ValidationError:
            continue
        if value != field.default:
            return value
    raise AssertionError(f"no value for {field}")


@over("name", REGISTRY.names())
def test_a_setting_of_another_kind_is_a_mistake(name: str) -> None:
    for option, field in Column.model_fields.items():
        if option in kinds()[name].options.model_fields or option == FROM:
            continue
        with pytest.raises(ValidationError) as raised:
            Column.model_validate({**minimal(name), option: a_value(field)})
        assert f"{option}: {field.json_schema_extra['misplaced']}" in str(raised.value)


def test_a_layout_without_room_for_a_column_is_refused() -> None:
    schema = Schema.from_columns({"x1": {}, "x2": {}, "y": {"role": "label"}}, "binary_cross_entropy")
    narrow = [block._replace(width=1) for block in schema.block_specs()]
    with pytest.raises(ValueError, match="x2: the slot layout has no place"):
        schema.native_plan(_native.SlotLayout.make(4, 1, narrow))


MOMENT = datetime(2026, 3, 4, 5, 6, 7, 250_000)
MS = 1_772_600_767_250
EAST = timezone(timedelta(hours=2))


@over(
    "value",
    [
        MOMENT, MOMENT.replace(tzinfo=UTC), MOMENT.replace(tzinfo=UTC).astimezone(EAST), pd.Timestamp(MOMENT),
        pd.Timestamp(MOMENT, tz="UTC").tz_convert("Asia/Tokyo"), np.datetime64(MOMENT), np.datetime64(MOMENT, "ns"),
    ],
)  # fmt: skip
def test_a_time_in_every_unit(value: Any) -> None:
    assert [time(unit, value) for unit in ("ms", "us", "ns")] == [MS, MS * 1_000, MS * 1_000_000]
    assert time("s", value) in (MS / 1000, MS // 1000)


def test_dates_and_what_is_no_time() -> None:
    assert time("s", date(2026, 3, 4)) == 1_772_582_400 and time("ms", datetime(1969, 12, 31, 23, 59, 59)) == -1000
    assert time("ns", pd.Timestamp(MOMENT) + pd.Timedelta(5, "ns")) == MS * 1_000_000 + 5
    assert time("ms", timedelta(1)) is None and time("ms", object()) is None
    assert np.isnan(time("ms", np.datetime64("NaT")))  # type: ignore[arg-type]
    column = Column(role="event_time")
    assert column.entry.plain_times(column, np.array([MOMENT, MOMENT], "M8[us]")).tolist() == [MS, MS]
    assert column.entry.plain_times(column, np.array([MOMENT, "NaT"], "M8[us]")) == [MS, None]


def plain(column: Column, value: Any) -> Any:
    return column.entry.plain(column, value)


def test_only_columns_that_can_take_other_values() -> None:
    assert plain(Column(role="event_time", unit="us"), MOMENT) == MS * 1_000
    assert plain(Column(), MOMENT) is None and plain(Column(kind="category", buckets=4), MOMENT) is None
    assert plain(Column(role="key"), UUID(int=5)) == str(UUID(int=5))


@over(
    ("cell", "key"),
    [
        ("é", "é".encode()), (b"\xff", b"\xff"), (7, b"7"), (np.int64(7), b"7"), (True, b"True"), (1.5, b"1.5"),
        (None, None), (float("nan"), None), (np.float32("nan"), None), (pd.NA, None), (pd.NaT, None),
    ],
)  # fmt: skip
def test_keys(cell: Any, key: bytes | None) -> None:
    assert key_bytes(cell) == key
