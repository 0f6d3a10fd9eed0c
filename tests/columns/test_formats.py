"""Every format against its slow reference: its examples, cut, mutated and resumed; JSON and msgpack of any nesting."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import msgpack
from example_format import row_formats
from hypothesis import given, note
from hypothesis import strategies as st
from long_tables import in_full_all, some
from looped import over

from streamtrain import _native
from streamtrain.columns.formats import format_names, is_lines, record_format
from streamtrain.columns.schema import Schema
from tests.columns import reference
from tests.columns.conftest import (
    NESTED,
    PLAIN,
    SCHEMAS,
    assert_resumed,
    every_format,
    every_schema,
    spoiled,
)
from tests.columns.drawn_jobs import moments, numbers, words
from tests.oracles.records import oracle

NAMES = ["x1", "x2", "x3", "carrier", "origin", "late", "w", "when", "id", "other"]
cells = st.one_of(numbers, words, moments, st.integers(-(2**70), 2**70), st.floats(), st.booleans(), st.none())
nested = st.recursive(
    st.one_of(cells, st.text(max_size=12)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=12), inner, max_size=3)),
    max_leaves=6,
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
        module = oracle(name)
        assert record_format(name).HELP and module.EXAMPLES and {"encode", "encode_rows"} & vars(module).keys()
        assert is_lines(name) or module.parse


READ = [(SCHEMAS[name], each) for name in PLAIN for each in row_formats()]
READ += [(NESTED, each) for each in ("json", "msgpack", "packed")]
every_read = over(("schema", "format_name"), READ)


@every_read
def test_examples(schema: Schema, format_name: str, same: Any) -> None:
    trained = 0
    for record in oracle(format_name).EXAMPLES:
        for capacity in (1, 3, 64):
            trained += same(schema, format_name, record, capacity).trained
    assert trained > 0


@in_full_all()
@every_read
def test_examples_cut_at_every_byte_and_mutated(
    schema: Schema, format_name: str, same: Any, take: Callable[..., Any]
) -> None:
    for number, record in enumerate(oracle(format_name).EXAMPLES):
        parts = spoiled(record, take, 250)
        for part in parts if take is not some else parts[number % 3 :: 3]:  # jobs at random have more
            same(schema, format_name, part)


@given(record=records, spaces=st.booleans(), ascii_only=st.booleans())
def test_json_and_msgpack_of_any_nesting(schemas: Any, same: Any, record: Any, spaces: bool, ascii_only: bool) -> None:
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


@in_full_all()
@every_schema
@every_format
def test_resumes_at_every_row(schema: Schema, format_name: str, take: Callable[..., Any]) -> None:
    for record in oracle(format_name).EXAMPLES:
        rows = reference.decode(schema, format_name, record).rows
        for capacity, from_row in itertools.product(take((2, 1, 5)), range(rows + 2)):
            assert_resumed(schema, format_name, record, from_row, capacity)
