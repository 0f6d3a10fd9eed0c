"""Every kind of column that the folder holds: what it says of itself, and whose settings are whose."""

from __future__ import annotations

from typing import Annotated, Any, get_args

import pytest
from looped import over
from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from streamtrain import _native
from streamtrain.columns.around import FROM
from streamtrain.columns.column import Column
from streamtrain.columns.kinds import FEATURE, REGISTRY, features, kinds, roles
from streamtrain.columns.kinds.kind import Settings
from streamtrain.columns.plan import native_plan
from streamtrain.columns.schema import Schema

SHARED = Settings.model_fields.keys()


@over("name", REGISTRY.names())
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
        native_plan(schema, _native.SlotLayout.make(4, 1, narrow))
