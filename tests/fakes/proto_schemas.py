"""Protobuf schemas of rows that tests share, as Google's own package has them: descriptors, messages, bytes."""

from __future__ import annotations

from typing import Any

from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    message_factory,
    timestamp_pb2,
    wrappers_pb2,
)

from streamtrain.columns.formats.protobuf_schema import canonical

_TYPES = descriptor_pb2.FieldDescriptorProto
_KNOWN = (timestamp_pb2, duration_pb2, wrappers_pb2)


def proto(text: str, **options: Any) -> dict[str, Any]:
    """The format of a .proto's text; proto3 where it does not say."""
    whole = text if "syntax" in text or "edition" in text else f'syntax = "proto3"; {text}'
    return {"name": "protobuf", "schema": canonical(whole), **options}


class File:
    """One file, built field by field without protoc; `message(name)` gives its Python class."""

    def __init__(self, name: str, package: str = "", syntax: str = "proto3") -> None:
        self.proto = descriptor_pb2.FileDescriptorProto(name=name, package=package, syntax=syntax)
        self._prefix = f".{package}." if package else "."

    def add(self, name: str, *fields: tuple[Any, ...], within: Any = None) -> Any:
        """A message of (name, number, type, flags...): flags "optional", "repeated", "oneof:NAME"; a type in full
        begins with "." (a message) or "=" (an enum)."""
        descriptor = (within.nested_type if within is not None else self.proto.message_type).add(name=name)
        for field, number, kind, *flags in fields:
            each = descriptor.field.add(name=field, number=number, label=_TYPES.LABEL_OPTIONAL)
            if kind[0] in ".=":
                each.type = _TYPES.TYPE_MESSAGE if kind[0] == "." else _TYPES.TYPE_ENUM
                each.type_name = kind if kind[0] == "." else self._prefix + kind[1:]
            else:
                each.type = getattr(_TYPES, f"TYPE_{kind.upper()}")
            for flag in flags:
                if flag == "repeated":
                    each.label = _TYPES.LABEL_REPEATED
                elif flag.startswith("oneof:"):
                    names = [oneof.name for oneof in descriptor.oneof_decl]
                    if flag[6:] not in names:
                        descriptor.oneof_decl.add(name=flag[6:])
                        names.append(flag[6:])
                    each.oneof_index = names.index(flag[6:])
        for each, (_, _, _, *flags) in zip(descriptor.field, fields, strict=True):
            if "optional" in flags and self.proto.syntax == "proto3":  # a oneof of its own, behind the others
                each.proto3_optional = True
                descriptor.oneof_decl.add(name=f"_{each.name}")
                each.oneof_index = len(descriptor.oneof_decl) - 1
        return descriptor

    def enum(self, name: str, **values: int) -> None:
        descriptor = self.proto.enum_type.add(name=name)
        for value, number in values.items():
            descriptor.value.add(name=value, number=number)

    def importing(self) -> File:
        self.proto.dependency.extend(known.DESCRIPTOR.name for known in _KNOWN)
        return self

    def set_bytes(self) -> bytes:
        """The output of protoc --include_imports --descriptor_set_out."""
        found = descriptor_pb2.FileDescriptorSet()
        for name in self.proto.dependency:
            known = next(each for each in _KNOWN if each.DESCRIPTOR.name == name)
            known.DESCRIPTOR.CopyToProto(found.file.add())
        found.file.add().CopyFrom(self.proto)
        return found.SerializeToString()

    def message(self, name: str) -> Any:
        """The class of a message by its full name."""
        pool = descriptor_pool.DescriptorPool()
        for known in _KNOWN:
            pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
        pool.AddSerializedFile(self.proto.SerializeToString())
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
