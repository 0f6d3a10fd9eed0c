"""A schema's messages → the text of a .proto file, for a registry."""

from __future__ import annotations

from collections.abc import Iterator

from streamtrain.columns.formats.protobuf_schema import Field, Message, Messages
from streamtrain.errors import UserMistake

_KNOWN = "google.protobuf."
_FILES = {"Timestamp": "timestamp", "Duration": "duration", "Empty": "empty"}  # the others are in wrappers.proto


def proto_text(known: Messages) -> str:
    """Returns the text of the file's own messages in their order.

    Raises UserMistake if they use types that other files define.
    """
    own = [message for message in known.by_name.values() if message.index is not None]
    other = next((each.name for each in known.by_name.values()
                  if each.index is None and not each.name.startswith(_KNOWN)), None)  # fmt: skip
    if other is not None:
        raise UserMistake(f"records.schema: it imports {other}: register it with its references beforehand")
    package = own[0].name.rpartition(".")[0]
    silent = any(not (field.presence or field.repeated) for message in own for field in message.fields.values())
    syntax = "proto3" if silent else "proto2"
    lines = [f'syntax = "{syntax}";', *([f"package {package};"] if package else []), *_imports(own)]
    for message in own:
        if len(message.index or ()) == 1:
            lines += _message(known, own, message, 0)
    placed = {message.name for message in own}
    for name, values in known.enums.items():
        if name.rpartition(".")[0] not in placed:
            lines += _enum(name, values, 0)
    return "\n".join(lines) + "\n"


def _imports(own: list[Message]) -> list[str]:
    used = {field.of or f"{_KNOWN}Timestamp" for message in own for field in message.fields.values()
            if field.of.startswith(_KNOWN) or field.type == "timestamp"}  # fmt: skip
    files = {_FILES.get(name.removeprefix(_KNOWN), "wrappers") for name in used}
    return [f'import "google/protobuf/{name}.proto";' for name in sorted(files)]


def _message(known: Messages, own: list[Message], message: Message, depth: int) -> Iterator[str]:
    pad = "  " * depth
    yield f"{pad}message {message.short} {{"
    for inner in own:
        if inner.index and message.index and inner.index[:-1] == message.index:
            yield from _message(known, own, inner, depth + 1)
    for name, values in known.enums.items():
        if name.rpartition(".")[0] == message.name:
            yield from _enum(name, values, depth + 1)
    oneofs = dict.fromkeys(field.oneof for field in message.fields.values() if field.oneof)
    for field in message.fields.values():
        if not field.oneof:
            label = "repeated " if field.repeated else "optional " if field.presence else ""
            yield f"{pad}  {label}{_field(field)}"
    for oneof in oneofs:
        yield f"{pad}  oneof {oneof} {{"
        yield from (f"{pad}    {_field(field)}" for field in message.fields.values() if field.oneof == oneof)
        yield f"{pad}  }}"
    yield f"{pad}}}"


def _field(field: Field) -> str:
    kind = f".{_KNOWN}Timestamp" if field.type == "timestamp" else f".{field.of}" if field.of else field.type
    return f"{kind} {field.name} = {field.number};"


def _enum(name: str, values: object, depth: int) -> Iterator[str]:
    pad = "  " * depth
    assert isinstance(values, dict)
    yield f"{pad}enum {name.rpartition('.')[2]} {{"
    yield from (f"{pad}  {value} = {number};" for number, value in values.items())
    yield f"{pad}}}"
