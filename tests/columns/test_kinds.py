"""Every kind of column that the folder holds: what it says of itself, and whose settings are whose."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from streamtrain import _native
from streamtrain.columns.column import Column
from streamtrain.columns.kinds import FEATURE, REGISTRY, features, kinds, roles
from streamtrain.columns.kinds.kind import Settings
from streamtrain.columns.plan import native_plan
from streamtrain.columns.schema import Schema

SHARED = Settings.model_fields.keys()


@pytest.mark.parametrize("name", REGISTRY.names())
def test_a_kind_tells_what_it_is_and_what_its_columns_may_say(name: str) -> None:
    kind = kinds()[name]
    assert REGISTRY.describe()[name]
    assert kind is (features()[name] if kind.role == FEATURE else roles()[kind.role])
    for option, field in kind.options.model_fields.items():
        assert Column.model_fields[option].description, option
        assert option in SHARED or field.json_schema_extra["misplaced"], option  # type: ignore[index]


def test_every_kind_that_is_decoded_has_a_native_half() -> None:
    assert [name for name, kind in kinds().items() if kind.decoded] == _native.column_kinds()


def minimal(name: str) -> dict[str, Any]:
    role = kinds()[name].role
    return {"kind": name} if role == FEATURE else {"role": role}


@pytest.mark.parametrize("name", REGISTRY.names())
def test_a_setting_of_another_kind_is_a_mistake(name: str) -> None:
    values = {"standardize": True, "buckets": 3, "embed": 2, "unit": "s", "classes": 3}
    for option, field in Column.model_fields.items():
        if option in kinds()[name].options.model_fields:
            continue
        with pytest.raises(ValidationError) as raised:
            Column.model_validate({**minimal(name), option: values[option]})
        assert f"{option}: {field.json_schema_extra['misplaced']}" in str(raised.value)


def test_a_layout_without_room_for_a_column_is_refused() -> None:
    schema = Schema.from_columns({"x1": {}, "x2": {}, "y": {"role": "label"}}, "binary_cross_entropy")
    narrow = [block._replace(width=1) for block in schema.block_specs()]
    with pytest.raises(ValueError, match="x2: the slot layout has no place"):
        native_plan(schema, _native.SlotLayout.make(4, 1, narrow))
