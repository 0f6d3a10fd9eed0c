"""Repeated fields as lists: packed or one by one, wherever they come, as Google's package writes them."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from long_tables import in_full_all
from looped import over
from proto_schemas import File, proto
from slots import RowSlot

from streamtrain.columns.formats import record_format
from streamtrain.columns.formats._protobuf_wire import sized, tag, varint
from streamtrain.columns.formats.protobuf_schema import canonical, canonical_bytes
from streamtrain.columns.kinds.bags import block_name
from streamtrain.columns.records import Records
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from tests.columns.conftest import spoiled

SCALARS: dict[str, list[Any]] = {
    "double": [0.0, 1.5, float("nan")], "float": [0.5, -3e38], "int32": [0, -1, 2**31 - 1], "int64": [-(2**63), 300],
    "uint32": [0, 2**32 - 1], "uint64": [2**64 - 1], "sint32": [-1, 5], "sint64": [-(2**63)], "fixed32": [2**32 - 1],
    "fixed64": [7, 2**64 - 1], "sfixed32": [-5], "sfixed64": [-5, 1 << 40], "bool": [False, True],
    "string": ["AA", "", "é" * 40], "bytes": [b"\xff"],
}  # fmt: skip
TAGS: dict[str, Any] = {"kind": "category", "list": True, "buckets": 1000, "most": 8}
VECTOR: dict[str, Any] = {"kind": "vector", "size": 3}
LATE = {"late": {"role": "label", "missing": 1}}
SPREAD = proto(
    "message Row { repeated int32 tags = 1; Inner inner = 2; oneof either { Inner one = 3; int32 other = 4; } "
    "repeated Row rows = 5; repeated float place = 6; int32 late = 9; } message Inner { repeated int32 tags = 1; }"
)


def schema_of(**columns: dict[str, Any]) -> Schema:
    return Schema.from_columns({**columns, **LATE}, "binary_cross_entropy")


@in_full_all()
@over("kind", SCALARS)
def test_every_type_against_the_slow_meaning(same: Any, kind: str, take: Any) -> None:
    """Checks what Google's package writes, packed and not: whole, cut at every byte, and with other bytes in it."""
    chance = random.Random(len(kind))
    for packed in (None, False) if kind not in ("string", "bytes") else (None,):
        file = File("lists.proto", "air")
        file.add("Row", ("many", 1, kind, "repeated"), ("late", 2, "int32", "optional"))
        if packed is False:
            file.proto.message_type[0].field[0].options.packed = False
        format = {"name": "protobuf", "schema": canonical(canonical_bytes(file.set_bytes()))}
        for settings in (TAGS, {**TAGS, "missing": "", "cut": True, "most": 2}, {**VECTOR, "missing": 0}):
            schema = schema_of(many=settings)
            for count in (0, 1, 3, 9):
                made = file.message("air.Row")(late=1)
                made.many.extend(chance.choice(SCALARS[kind]) for _ in range(count))
                whole = made.SerializeToString()
                same(schema, format, whole)
                for mutated in spoiled(whole, take, 40):
                    same(schema, format, mutated)


def entries(schema: Schema, record: bytes, column: str) -> list[int] | str:
    """A list's ids; of a dead row why."""
    slot = RowSlot(schema, 4, SPREAD)
    ((rows, tally),) = list(slot.record(record))
    return slot.views[block_name(column)][:1][0].tolist() if rows else str(tally.dead_rows[0][3])


def ids(column: str, *numbers: int) -> list[int]:
    slot = RowSlot(schema_of(**{column: {**TAGS, "missing": ""}}), 4, "json")
    list(slot.record(json.dumps({column: numbers, "late": 1}).encode()))
    return list(slot.views[block_name(column)][:1][0].tolist())


def test_values_come_packed_and_one_by_one_and_in_parts(same: Any) -> None:
    schema = schema_of(tags=TAGS)
    scattered = tag(1, 0) + varint(300) + sized(1, b"\1\2") + tag(9, 0) + b"\1" + sized(1, b"") + tag(1, 0) + b"\3"
    assert entries(schema, scattered, "tags") == ids("tags", 300, 1, 2, 3)
    nested = schema_of(inner={**TAGS, "path": "inner.tags"})
    parts = sized(2, sized(1, b"\1")) + tag(9, 0) + b"\0" + sized(2, sized(1, b"\2") + tag(1, 0) + b"\3")
    assert entries(nested, parts, "inner") == ids("inner", 1, 2, 3)
    either = schema_of(inner={**TAGS, "path": "one.tags", "missing": ""})
    replaced = sized(3, sized(1, b"\1")) + tag(4, 0) + b"\1"  # of a oneof the last is there
    assert entries(either, replaced, "inner") == []
    assert entries(either, replaced + sized(3, sized(1, b"\2")), "inner") == ids("inner", 2)
    for columns, record in ((schema, scattered), (nested, parts), (either, replaced),
                            (either, replaced + sized(3, sized(1, b"\2")))):  # fmt: skip
        for mutated in (record, *spoiled(record, list, 100)):
            same(columns, SPREAD, mutated)


@over(
    ("record", "reason"),
    [
        (sized(1, b"\1\xff"), "got many values, of which the last is cut short"),
        (tag(1, 5) + bytes(4), "got wire type 5 in the place of many values"),
        (b"", "got nothing (missing)"),
        (sized(1, b"\1" * 9), "expected at most 8 values, got 9"),
    ],
)
def test_what_is_no_list(record: bytes, reason: str) -> None:
    """It is told of the cell: a row whose columns do not read it is trained."""
    assert str(entries(schema_of(tags=TAGS), record, "tags")).endswith(reason)
    assert entries(schema_of(inner={**TAGS, "path": "inner.tags", "missing": ""}), record, "inner") == []


def written(schema: Schema, format: dict[str, Any], row: dict[str, Any]) -> bytes:
    """Encodes by the native encoder."""
    ((record,),) = Records(schema, format, "rows", 1, 1 << 20).blocks(row, None, False)
    return bytes(record.value)


@over("kind", [kind for kind in SCALARS if kind != "bytes"])
def test_lists_are_written_as_googles_package_reads_them(kind: str) -> None:
    file = File("lists.proto", "air")
    file.add("Row", ("many", 1, kind, "repeated"), ("late", 2, "int32", "optional"))
    format = {"name": "protobuf", "schema": canonical(canonical_bytes(file.set_bytes()))}
    schema = schema_of(many=TAGS)
    values = [each for each in SCALARS[kind] if each == each]
    rows = [{"many": values * 2, "late": 1}, {"many": [], "late": 0}]
    made = [written(schema, format, row) for row in rows]
    assert made == [record_format("protobuf").encode_rows(schema, [row], **without_name(format)) for row in rows]
    message = file.message("air.Row")
    assert list(message.FromString(made[0]).many) == pytest.approx(values * 2) if kind != "string" else True
    assert made[0] == message(many=values * 2, late=1).SerializeToString()
    assert made[1] == message(late=0).SerializeToString()


def without_name(format: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in format.items() if key != "name"}


def test_a_list_that_does_not_fit_is_refused() -> None:
    for cell in (["far"], [2**40], [None], 5, [[1]]):
        with pytest.raises(UserMistake, match=r"tags.*(many values|expected)"):
            written(schema_of(tags=TAGS), SPREAD, {"tags": cell, "late": 1})
