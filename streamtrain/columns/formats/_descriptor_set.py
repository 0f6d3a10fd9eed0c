"""Messages of a serialized FileDescriptorSet or FileDescriptorProto, as protobuf_schema has them.

https://github.com/protocolbuffers/protobuf/blob/main/src/google/protobuf/descriptor.proto
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from streamtrain.columns.formats._protobuf_wire import fields
from streamtrain.columns.formats.parsed import BrokenRecord

_TYPES = {
    1: "double", 2: "float", 3: "int64", 4: "uint64", 5: "int32", 6: "fixed64", 7: "fixed32", 8: "bool", 9: "string",
    10: "group", 11: "message", 12: "bytes", 13: "uint32", 14: "enum", 15: "sfixed32", 16: "sfixed64", 17: "sint32",
    18: "sint64",
}  # fmt: skip
_REPEATED = 3
_IMPLICIT = 2  # FeatureSet.FieldPresence of editions
_DEEPEST = 64
_Values = defaultdict[int, list[Any]]


def set_messages(data: bytes) -> dict[str, Any]:
    """Returns the messages and enums of a descriptor set. Its last file is the one that protoc was called for.

    Raises BrokenRecord if the data is not a set.
    """
    files = _read(data)[1]
    if not files or not all(isinstance(each, bytes) for each in files):
        raise BrokenRecord("no file in it")
    parts = [_file(each, is_own=place == len(files) - 1) for place, each in enumerate(files)]
    return {name: [one for part in parts[::-1] for one in part[name]] for name in ("messages", "enums")}


def file_messages(data: bytes) -> dict[str, Any]:
    """Returns the messages and enums of one file."""
    return _file(data, is_own=True)


def _read(data: bytes) -> _Values:
    """A message's values by number."""
    found: _Values = defaultdict(list)
    for number, _, value in fields(data):
        found[number].append(value)
    return found


def _text(values: list[Any]) -> str:
    try:
        return values[-1].decode() if values else ""
    except (AttributeError, UnicodeDecodeError):
        raise BrokenRecord("a name that is no text") from None


def _number(values: list[Any], otherwise: int = 0) -> int:
    if values and not isinstance(values[-1], int):
        raise BrokenRecord("a number that is none")
    return values[-1] if values else otherwise


def _bytes(values: list[Any]) -> list[bytes]:
    if not all(isinstance(each, bytes) for each in values):
        raise BrokenRecord("a message that is none")
    return values


def _presence(options: list[Any], feature: int, otherwise: int) -> int:
    """Returns the field_presence that the options of an edition set; `otherwise` if they set none."""
    for each in _bytes(options):
        for features in _bytes(_read(each)[feature]):
            otherwise = _number(_read(features)[1], otherwise)
    return otherwise


class _File:
    def __init__(self, syntax: str, presence: int) -> None:
        self.is_proto3, self.is_edition, self.presence = syntax == "proto3", syntax == "editions", presence
        self.messages: list[dict[str, Any]] = []
        self.enums: list[dict[str, Any]] = []


def _file(data: bytes, is_own: bool) -> dict[str, Any]:
    given = _read(data)
    package = _text(given[2])
    file = _File(_text(given[12]), _presence(given[8], 50, 1))
    prefix = f"{package}." if package else ""
    for place, each in enumerate(_bytes(given[4])):
        _message(file, each, prefix, [place] if is_own else None, 0)
    for each in _bytes(given[5]):
        _enum(file, each, prefix)
    return {"messages": file.messages, "enums": file.enums}


def _message(file: _File, data: bytes, prefix: str, index: list[int] | None, depth: int) -> None:
    if depth > _DEEPEST:
        raise BrokenRecord("messages nested too deep")
    given = _read(data)
    name = prefix + _text(given[1])
    oneofs = [_text(_read(each)[1]) for each in _bytes(given[8])]
    message: dict[str, Any] = {"name": name, "fields": []}
    if index is not None:
        message["index"] = index
    file.messages.append(message)
    for each in _bytes(given[2]):
        message["fields"].append(_field(file, each, oneofs))
    for place, each in enumerate(_bytes(given[3])):
        _message(file, each, f"{name}.", None if index is None else [*index, place], depth + 1)
    for each in _bytes(given[4]):
        _enum(file, each, f"{name}.")


def _field(file: _File, data: bytes, oneofs: list[str]) -> dict[str, Any]:
    given = _read(data)
    kind, of = _TYPES.get(_number(given[5]), "no type"), _text(given[6]).removeprefix(".")
    if kind == "message" and of == "google.protobuf.Timestamp":
        kind, of = "timestamp", ""
    field: dict[str, Any] = {"name": _text(given[1]), "number": _number(given[3]), "type": kind}
    if kind in ("message", "enum"):
        field["of"] = of
    if _number(given[4]) == _REPEATED:
        return {**field, "repeated": True}
    in_oneof, is_optional = bool(given[9]), bool(_number(given[17]))
    has_presence = is_optional or not file.is_proto3
    if file.is_edition:
        has_presence = _presence(given[8], 21, file.presence) != _IMPLICIT
    if in_oneof or has_presence or kind in ("message", "timestamp"):
        field["presence"] = True
    if in_oneof and not is_optional:
        place = _number(given[9])
        field["oneof"] = oneofs[place] if place < len(oneofs) else str(place)
    return field


def _enum(file: _File, data: bytes, prefix: str) -> None:
    given = _read(data)
    values = []
    for each in _bytes(given[2]):
        value = _read(each)
        number = _number(value[2])
        values.append([_text(value[1]), number - (1 << 64) if number >> 63 else number])
    file.enums.append({"name": prefix + _text(given[1]), "values": values})
