"""The words for what a field of the job's models takes, and for what it is when not given."""

from __future__ import annotations

import types
from typing import Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from streamtrain.job.mistakes import show_value
from streamtrain.job.units import OneOf, Takes

_WORDS: dict[Any, str] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
}
_EACH: dict[Any, str] = {
    str: " of texts", int: " of whole numbers", float: " of numbers", bool: " of booleans", dict: " of tables",
}  # fmt: skip


def bare(annotation: Any) -> Any:
    """The annotation without metadata and `| None`."""
    if hasattr(annotation, "__metadata__"):
        annotation = annotation.__origin__
    if get_origin(annotation) in (Union, types.UnionType):
        kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
        return bare(kinds[0]) if len(kinds) == 1 else annotation
    return annotation


def _metadata(field: FieldInfo) -> list[Any]:
    """A field's metadata, that inside `| None` too."""
    inner = [item for kind in get_args(field.annotation) for item in getattr(kind, "__metadata__", ())]
    return [*field.metadata, *inner]


def _range(metadata: list[Any]) -> str:
    limits: dict[str, Any] = {}
    for item in metadata:
        for name in ("ge", "gt", "le", "lt"):
            if isinstance(item, annotated_types.BaseMetadata) and hasattr(item, name):
                limits[name] = getattr(item, name)
    low = f"from {limits['ge']}" if "ge" in limits else f"above {limits['gt']}" if "gt" in limits else ""
    high = f"to {limits['le']}" if "le" in limits else f"below {limits['lt']}" if "lt" in limits else ""
    some = "that is not empty" if any(isinstance(item, annotated_types.MinLen) for item in metadata) else ""
    return f"{low} {high} {some}".strip()


def plain(kind: Any) -> str:
    """A type in words, without what its metadata says."""
    if get_origin(kind) is list:
        (each,) = get_args(kind)
        return "an array" + _EACH.get(get_origin(bare(each)) or bare(each), "")
    return _WORDS.get(get_origin(kind) or kind, "a table")


def _kind(kind: Any) -> str:
    """One of several that a field takes."""
    if get_origin(kind) is Literal:
        return " or ".join(map(show_value, get_args(kind)))
    metadata = [item for entry in getattr(kind, "__metadata__", ()) for item in getattr(entry, "metadata", [entry])]
    return f"{plain(bare(kind))} {_range(metadata)}".strip()


def takes(field: FieldInfo) -> str:
    """Returns what a field takes."""
    metadata = _metadata(field)
    for item in metadata:
        if isinstance(item, OneOf):
            return "one of " + ", ".join(item.names())
        if isinstance(item, Takes):
            return item.words
    annotation = bare(field.annotation)
    if get_origin(annotation) is Literal:
        return "one of " + ", ".join(map(str, get_args(annotation)))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "a table"
    if get_origin(annotation) in (Union, types.UnionType):
        kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
        words = dict.fromkeys(map(_kind, kinds))
        arrays = " or ".join(each.removeprefix("an array ") for each in words if each.startswith("an array of "))
        others = [each for each in words if not each.startswith("an array of ")]
        return " or ".join([f"an array {arrays}"] * bool(arrays) + others)
    return f"{plain(annotation)} {_range(metadata)}".strip()


def default(field: FieldInfo) -> str:
    """A field's default as it stands in a file; "" where there is none."""
    if field.is_required() or (field.default is None and not any(isinstance(i, Takes) for i in field.metadata)):
        return ""
    value = field.get_default(call_default_factory=True)
    for item in field.metadata:
        if isinstance(item, Takes):
            return show_value(item.write(value))
    return show_value(value)
