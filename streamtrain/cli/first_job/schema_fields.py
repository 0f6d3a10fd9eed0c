"""The fields of a registry's schema, whatever its format: what they are, and where they stand in a row."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from streamtrain.cli.first_job.cells import UNIT_OF
from streamtrain.columns.formats.avro_schema import MOMENTS, Rows, Type, kind_of, logical_of, rows_of
from streamtrain.columns.formats.protobuf_schema import Field as ProtoField
from streamtrain.columns.formats.protobuf_schema import Message, Messages, messages_of
from streamtrain.columns.paths import Path
from streamtrain.errors import UserMistake

DEEPEST = 8  # objects within each other
FRACTION, WHOLE, BOOLEAN, TEXT, TIME, UUID = "fraction", "whole number", "boolean", "text", "time", "uuid"
LIST, MAPPING = "list", "map"
_AVRO = {"int": WHOLE, "long": WHOLE, "float": FRACTION, "double": FRACTION, "boolean": BOOLEAN, "string": TEXT}
_AVRO_LOGICAL = {"decimal": FRACTION, "uuid": UUID, **dict.fromkeys(MOMENTS.keys() - {"date"}, TIME)}
_JSON = {"integer": WHOLE, "number": FRACTION, "boolean": BOOLEAN, "string": TEXT}
_JSON_FORMATS = {"date-time": TIME, "uuid": UUID}
_PROTO = {"bool": BOOLEAN, "string": TEXT, "timestamp": TIME, "double": FRACTION, "float": FRACTION}


@dataclass(frozen=True)
class Field:
    """A field that is no object. `kind`: one of the words above, or what it is where no column can be made of it.

    of: the kind of a list's or a map's elements. symbols: of an enum. unit: of a time; "" of one that is a text.
    """

    path: Path
    kind: str
    optional: bool = False
    of: str = ""
    symbols: tuple[str, ...] = ()
    unit: str = ""
    name: str = ""  # of its column


def fields_of(registry_type: str, schema: str) -> list[Field]:
    """Returns the fields of a row. `registry_type`: what a registry calls the schema's format.

    Raises UserMistake where the schema is none of objects.
    """
    found = list(_READERS[registry_type](schema))
    names = {str(each.path[0]) for each in found if len(each.path) == 1}
    named = []
    for each in found:
        name = "_".join(map(str, each.path))
        while len(each.path) > 1 and name in names:
            name += "_"
        names.add(name)
        named.append(replace(each, name=name))
    return named


def _avro(schema: str) -> Iterator[Field]:
    rows = rows_of(schema)
    yield from _avro_record(rows, rows.row, (), False)


def _avro_record(rows: Rows, record: Mapping[str, Any], above: Path, optional: bool) -> Iterator[Field]:
    for field in record["fields"]:
        yield from _avro_field(rows, field["type"], (*above, field["name"]), optional)


def _avro_field(rows: Rows, given: Type, path: Path, optional: bool) -> Iterator[Field]:
    found = rows.resolved(given)
    if isinstance(found, list):
        branches = [each for each in found if each != "null"]
        if len(branches) == 1:
            yield from _avro_field(rows, branches[0], path, optional or len(branches) < len(found))
        else:
            yield Field(path, "a union of several types")
    elif kind_of(found) == "record" and isinstance(found, dict):
        if len(path) < DEEPEST:
            yield from _avro_record(rows, found, path, optional)
    elif kind_of(found) in ("array", "map") and isinstance(found, dict):
        inner = next(_avro_field(rows, found["items" if "items" in found else "values"], path, False), Field(path, ""))
        yield Field(path, LIST if kind_of(found) == "array" else "a map", optional, inner.kind)
    else:
        symbols = tuple(found["symbols"]) if isinstance(found, dict) and kind_of(found) == "enum" else ()
        kind = _AVRO_LOGICAL.get(logical_of(found)) or (TEXT if symbols else _AVRO.get(kind_of(found), kind_of(found)))
        unit = UNIT_OF.get(MOMENTS.get(logical_of(found), (0, 0)), "")
        yield Field(path, kind, optional, symbols=symbols, unit=unit)


def _json_schema(schema: str) -> Iterator[Field]:
    whole = json.loads(schema)
    if not isinstance(whole, dict):
        raise UserMistake("expected a JSON Schema of objects, got one of anything")
    yield from _json_object(whole, whole, (), False)


def _json_object(whole: Mapping[str, Any], given: Mapping[str, Any], above: Path, optional: bool) -> Iterator[Field]:
    required = given.get("required", [])
    properties = given.get("properties", {})
    for name, field in properties.items() if isinstance(properties, dict) else ():
        yield from _json_field(whole, field, (*above, name), optional or name not in required)


def _json_field(whole: Mapping[str, Any], given: Any, path: Path, optional: bool) -> Iterator[Field]:
    found, has_null = _json_type(whole, given)
    optional, kind = optional or has_null, str(found.get("type", "a value of any type"))
    if kind == "object" and "properties" in found:
        if len(path) < DEEPEST:
            yield from _json_object(whole, found, path, optional)
        return
    if kind in ("array", "object"):
        values = found.get("items" if kind == "array" else "additionalProperties")
        inner = next(_json_field(whole, values, path, False), Field(path, "")) if isinstance(values, dict) else None
        yield Field(path, LIST if kind == "array" else MAPPING, optional, "" if inner is None else inner.kind)
        return
    of_format = _JSON_FORMATS.get(str(found.get("format"))) if kind == "string" else None
    texts = found.get("enum")
    symbols = tuple(texts) if isinstance(texts, list) and all(isinstance(each, str) for each in texts) else ()
    kind = of_format or (TEXT if symbols else _JSON.get(kind, kind))
    yield Field(path, kind, optional, symbols=symbols)


def _json_type(whole: Mapping[str, Any], given: Any) -> tuple[Mapping[str, Any], bool]:
    """A schema without null and references, and whether it may be null; {} of one that is more than a type."""
    found, has_null = given if isinstance(given, dict) else {}, False
    for _ in range(DEEPEST):
        reference, branches = found.get("$ref"), found.get("oneOf", found.get("anyOf"))
        if isinstance(reference, str):
            found = _at(whole, reference)
        elif isinstance(branches, list):
            others = [each for each in branches if each != {"type": "null"}]
            has_null |= len(others) < len(branches)
            found = others[0] if len(others) == 1 and isinstance(others[0], dict) else {}
    types = found.get("type")
    if isinstance(types, list):
        others = [each for each in types if each != "null"]
        return {**found, "type": others[0] if len(others) == 1 else "a value of any type"}, "null" in types
    return found, has_null


def _at(whole: Mapping[str, Any], reference: str) -> dict[str, Any]:
    """Returns the schema that a local reference names; {} for any other reference."""
    found: Any = whole
    for step in reference.removeprefix("#/").split("/") if reference.startswith("#/") else ("",):
        found = found.get(step) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _protobuf(schema: str) -> Iterator[Field]:
    known = messages_of(schema)
    yield from _message(known, known.row(known.named(""))[0], (), False)


def _message(known: Messages, message: Message, above: Path, optional: bool) -> Iterator[Field]:
    for field in message.fields.values():
        yield from _proto_field(known, field, (*above, field.name), optional or field.presence)


def _proto_field(known: Messages, field: ProtoField, path: Path, optional: bool) -> Iterator[Field]:
    if field.repeated:
        inner = next(_proto_field(known, replace(field, repeated=False), path, False), Field(path, ""))
        yield Field(path, LIST, optional, "a message" if field.type == "message" else inner.kind)
    elif field.type == "message":
        if len(path) < DEEPEST:
            yield from _message(known, known.by_name[field.of], path, True)
    else:
        symbols = tuple(known.enums[field.of].values()) if field.type == "enum" else ()
        kind = TEXT if symbols else _PROTO.get(field.type, field.type if field.type == "bytes" else WHOLE)
        yield Field(path, kind, optional, symbols=symbols, unit="ms" if kind == TIME else "")


_READERS: dict[str, Callable[[str], Iterator[Field]]] = {"AVRO": _avro, "JSON": _json_schema, "PROTOBUF": _protobuf}
