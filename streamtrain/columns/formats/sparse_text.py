"""Lines of text that hold a label, perhaps a weight, and features by index: what such formats share."""

from __future__ import annotations

from collections.abc import Iterator

from streamtrain.columns.column import Column
from streamtrain.columns.schema import Schema

LABEL = "label"
WEIGHT = "weight"
TAG = "tag"
FEATURES = "features"
_PARTS = {LABEL: "a label", WEIGHT: "a weight", TAG: 'one with path = "tag"'}


def names(schema: Schema) -> dict[str, str]:
    """The columns that a line's label, weight and tag are."""
    found = {role: role_column[0] for role in (LABEL, WEIGHT) if (role_column := schema.column_of(role)) is not None}
    tags = [name for name, column in schema.columns if _is_tag(column) and name not in found.values()]
    return found | dict.fromkeys([TAG], tags[0]) if tags else found


def features(schema: Schema) -> dict[str, Column]:
    """The columns that a line's features are."""
    return {name: column for name, column in schema.columns if column.entry.cells(column) == "pairs"}


def _is_tag(column: Column) -> bool:
    return column.path == TAG and column.entry.cells(column) == "value"


def mistakes(schema: Schema, form: str, more: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """(column, what is wrong) of columns that no line gives, which has a label, features and `more`."""
    parts = LABEL, *more
    wide, named = features(schema), [name for part, name in names(schema).items() if part in parts]
    rest = [name for name, column in wide.items() if column.namespaces is None]
    expected = f"{', '.join(_PARTS[part] for part in parts)} or one column of kind sparse"
    for name in schema.record_names - {*named, *wide}:
        yield name, f"expected {expected} for {form}, got another column"
    if not wide:
        yield next(iter(dict(schema.columns))), f"expected a column of kind sparse for {form}, got none"
    for name in rest[1:]:
        yield name, f"expected one column of kind sparse that names no namespaces for {form}, got {rest[0]} too"
    taken: dict[str, str] = {}
    for name, column in wide.items():
        for each in column.namespaces or ():
            if each in taken:
                yield name, f"namespaces: expected each in one column, got {each!r} in {taken[each]} too"
            taken.setdefault(each, name)
