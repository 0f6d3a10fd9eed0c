"""Protobuf schemas in the one form that settings hold: messages and enums by full names, checked.

{"messages": [{"name", "index" (of those of the file itself: as a registry's frame has it), "fields": [{"name",
"number", "type", "of" (a message or an enum), "repeated", "presence", "oneof"}]}], "enums": [{"name", "values"}]}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from streamtrain.columns.formats._descriptor_set import file_messages, set_messages
from streamtrain.columns.formats._proto_text import text_messages
from streamtrain.columns.formats._protobuf_wire import FIXED32, FIXED64, LENGTH, VARINT
from streamtrain.columns.formats.parsed import BrokenRecord
from streamtrain.compute.options import Document
from streamtrain.registry import nearest

SCALARS = {
    "double": FIXED64, "float": FIXED32, "int32": VARINT, "int64": VARINT, "uint32": VARINT, "uint64": VARINT,
    "sint32": VARINT, "sint64": VARINT, "fixed32": FIXED32, "fixed64": FIXED64, "sfixed32": FIXED32,
    "sfixed64": FIXED64, "bool": VARINT, "string": LENGTH, "bytes": LENGTH,
}  # fmt: skip
TIMESTAMP = "google.protobuf.Timestamp"
_TYPES = {**SCALARS, "message": LENGTH, "enum": VARINT, "timestamp": LENGTH}
_MOST_NUMBER = (1 << 29) - 1
_KNOWN = """
syntax = "proto3"; package google.protobuf;
message Duration { int64 seconds = 1; int32 nanos = 2; }
message DoubleValue { double value = 1; } message FloatValue { float value = 1; }
message Int64Value { int64 value = 1; } message UInt64Value { uint64 value = 1; }
message Int32Value { int32 value = 1; } message UInt32Value { uint32 value = 1; }
message BoolValue { bool value = 1; } message StringValue { string value = 1; } message BytesValue { bytes value = 1; }
message Empty {}
"""


@dataclass(frozen=True)
class Field:
    """A field of a message. `presence`: readers see if it is missing; without it a missing one is 0, false or ""."""

    name: str
    number: int
    type: str
    of: str
    repeated: bool
    presence: bool
    oneof: str

    @property
    def wire(self) -> int:
        return _TYPES[self.type]


@dataclass(frozen=True)
class Message:
    """`index`: how a registry's frame names it; None of one that its file imports."""

    name: str
    index: tuple[int, ...] | None
    fields: Mapping[int, Field]

    @property
    def short(self) -> str:
        return self.name.rpartition(".")[2]


@dataclass(frozen=True)
class Messages:
    """All messages of a schema, and its enums' names by number."""

    by_name: Mapping[str, Message]
    enums: Mapping[str, Mapping[int, str]]

    def named(self, name: str) -> Message:
        """By its full name; "": the file's first. ValueError where there is none."""
        own = [message for message in self.by_name.values() if message.index is not None]
        if not name:
            return own[0]
        if name in self.by_name:
            return self.by_name[name]
        near = nearest(name, list(self.by_name))
        hint = f"; did you mean {near!r}?" if near else ""
        raise ValueError(f"a message of the schema, such as {own[0].name}{hint}")

    def at(self, index: tuple[int, ...]) -> Message | None:
        """By its place in a registry's frame."""
        return next((message for message in self.by_name.values() if message.index == index), None)

    def row(self, message: Message) -> tuple[Message, Field | None]:
        """The message that rows are; and the field that holds many, where a message has no other field than that."""
        inner = next(iter(message.fields.values()), None)
        if len(message.fields) != 1 or inner is None or not inner.repeated or inner.type != "message":
            return message, None
        return self.by_name[inner.of], inner


@lru_cache(64)
def messages_of(text: str) -> Messages:
    """Returns the messages of a schema text that `canonical` returned."""
    given = json.loads(text)
    by_name = {}
    for message in given["messages"]:
        index = tuple(message["index"]) if "index" in message else None
        found = [
            Field(each["name"], each["number"], each["type"], each.get("of", ""), each.get("repeated", False),
                  each.get("presence", False), each.get("oneof", ""))
            for each in message["fields"]
        ]  # fmt: skip
        by_name[message["name"]] = Message(message["name"], index, {each.number: each for each in found})
    enums = {enum["name"]: _names(enum["values"]) for enum in given["enums"]}
    return Messages(by_name, enums)


def _names(values: list[Any]) -> dict[int, str]:
    """By number, of two names of one the first."""
    names: dict[int, str] = {}
    for name, number in values:
        names.setdefault(number, name)
    return names


def canonical(text: str) -> str:
    """A .proto file's text, or this form's own, checked. ValueError says what is wrong with it, and where."""
    if not text.lstrip().startswith("{"):
        return _dumped(text_messages(text))
    try:
        given = json.loads(text)
    except ValueError as error:
        raise ValueError(f"no JSON: {error}") from None
    return _dumped(given)


def canonical_bytes(data: bytes) -> str:
    """Returns the text of a schema file.

    The file is text, or a serialized FileDescriptorSet, as protoc --descriptor_set_out writes it.
    """
    if data[:1] == b"\n":
        try:
            return _dumped(set_messages(data))
        except BrokenRecord:
            pass  # a text may begin so
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueError("neither UTF-8 nor a descriptor set (protoc --include_imports --descriptor_set_out)") from None


def canonical_files(files: list[str | bytes]) -> str:
    """Returns the schema of a file, given as text or as its serialized FileDescriptorProto.

    It comes last, after the files that it imports.
    """
    known: dict[str, list[dict[str, Any]]] = {"messages": [], "enums": []}
    for file in files:
        given = text_messages(file, known) if isinstance(file, str) else _described(file)
        imported = [{**each, "index": None} for each in known["messages"]]
        known = {"messages": [*given["messages"], *imported], "enums": [*given["enums"], *known["enums"]]}
    return _dumped(known)


def _described(data: bytes) -> dict[str, Any]:
    try:
        return file_messages(data)
    except BrokenRecord as error:
        raise ValueError(f"no file descriptor: {error}") from None


def _dumped(given: Any) -> str:
    known = text_messages(_KNOWN)
    messages = [*_list(given, "messages"), *({**each, "index": None} for each in known["messages"])]
    by_name: dict[str, dict[str, Any]] = {}
    for each in messages:
        by_name.setdefault(_name(each, "a message"), each)
    enums = {_name(each, "an enum"): each for each in _list(given, "enums")}
    own = [name for name, each in by_name.items() if each.get("index") is not None]
    if not own:
        raise ValueError("expected a message, got none")
    checked: dict[str, dict[str, Any]] = {}
    used: set[str] = set()
    waiting = own[::-1]
    while waiting:
        name = waiting.pop()
        if name in checked:
            continue
        checked[name] = _message(by_name[name], by_name, enums)
        inner = [each["of"] for each in checked[name]["fields"] if "of" in each]
        used |= {each for each in inner if each in enums}
        waiting += [each for each in inner[::-1] if each in by_name]
    ordered = [checked[name] for name in own] + [checked[name] for name in sorted(set(checked) - set(own))]
    document = {"messages": ordered, "enums": [_enum(enums[name]) for name in sorted(used)]}
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _list(given: Any, name: str) -> list[dict[str, Any]]:
    found = given.get(name) if isinstance(given, dict) else None
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ValueError(f"expected a list of {name}")
    return found


def _name(given: dict[str, Any], what: str) -> str:
    name = given.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError(f"expected {what}'s name, got {name!r}")
    return name


def _message(given: dict[str, Any], messages: dict[str, Any], enums: dict[str, Any]) -> dict[str, Any]:
    name, fields, numbers = str(given["name"]), {}, set()
    for each in _list(given, "fields"):
        field = _field(each, name, messages, enums)
        if field["name"] in fields or field["number"] in numbers:
            raise ValueError(f"{name}.{field['name']}: its name or its number is another field's too")
        fields[field["name"]] = field
        numbers.add(field["number"])
    index = given.get("index")
    if index is not None and not (isinstance(index, list) and index and all(type(each) is int for each in index)):
        raise ValueError(f"{name}: expected its place in the file, got {index!r}")
    return {"name": name, **({} if index is None else {"index": index}), "fields": list(fields.values())}


def _field(given: dict[str, Any], within: str, messages: dict[str, Any], enums: dict[str, Any]) -> dict[str, Any]:
    name = f"{within}.{_name(given, 'a field')}"
    number, kind, of = given.get("number"), given.get("type"), given.get("of")
    if type(number) is not int or not 1 <= number <= _MOST_NUMBER:
        raise ValueError(f"{name}: expected a number from 1 to {_MOST_NUMBER}, got {number!r}")
    if kind not in _TYPES:
        raise ValueError(f"{name}: expected a type, got {kind!r}")
    field = {"name": given["name"], "number": number, "type": kind}
    if kind in ("message", "enum"):
        if of not in (messages if kind == "message" else enums):
            raise ValueError(f"{name}: its type {of!r} is nowhere defined (protoc: --include_imports)")
        field["of"] = of
    flags = {key: True for key in ("repeated", "presence") if given.get(key)}
    oneof = given.get("oneof")
    return {**field, **flags, **({"oneof": oneof} if isinstance(oneof, str) and oneof else {})}


def _enum(given: dict[str, Any]) -> dict[str, Any]:
    values = given.get("values")
    good = isinstance(values, list) and all(
        isinstance(each, list) and len(each) == 2 and isinstance(each[0], str) and each[0] and type(each[1]) is int
        and -(1 << 31) <= each[1] < 1 << 31 for each in values
    )  # fmt: skip
    if not good or not values:
        raise ValueError(f"expected the values of {given['name']}")
    return {"name": given["name"], "values": values}


def _is_text(given: str) -> bool:
    return "{" in given


SCHEMA = Document(
    default="",
    what="a Protobuf schema (a descriptor set, or a .proto)",
    is_text=_is_text,
    reading=canonical,
    of_file=canonical_bytes,
    help="of the records: a message, or one that has no other field than many of it; the file's name, as seen from "
    "the job file: protoc's --descriptor_set_out with --include_imports, or a .proto that imports nothing; "
    "with [registry] the newest of the topic's subject where it is not given",
)
