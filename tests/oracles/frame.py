"""A registry's frame, slowly: where a record says what schema it is of. native/decode/schema_frame.h reads it."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from typing import NamedTuple

from streamtrain.columns.formats.parsed import BrokenRecord

Ask = Callable[[str], tuple[str, str] | None]  # a schema's text by its name, or "" and why there is none
_ID_BYTES, _GUID_BYTES = 5, 17


def prefix(frame: str, schema_id: int) -> bytes:
    """Returns the bytes that a registry's serializers write before a datum: 0 and the schema's id."""
    return b"\0" + struct.pack(">I", schema_id) if frame == "registry" else b""


class Frame(NamedTuple):
    """A schema's name, what follows it where it stands, and whether that is a header; then the value is the datum."""

    name: str
    behind: bytes
    in_header: bool

    def answer(self, ask: Ask | None) -> tuple[str, str]:
        """The schema's text, or "" and why there is none."""
        return (ask(self.name) if ask is not None else None) or ("", "its schema is not known yet")


def frame_of(record: bytes, header: bytes | None) -> Frame:
    """Returns the frame that serializers write into a header, or else before the value.

    Raises BrokenRecord if there is none."""
    given = record if header is None else header
    if given[:1] == b"\0" and len(given) >= _ID_BYTES:
        name, size = str(int.from_bytes(given[1:_ID_BYTES], "big")), _ID_BYTES
    elif given[:1] == b"\1" and len(given) >= _GUID_BYTES:
        name, size = str(uuid.UUID(bytes=given[1:_GUID_BYTES])), _GUID_BYTES
    else:
        raise BrokenRecord("no registry's frame")
    return Frame(name, given[size:], header is not None)


def datum_of(record: bytes, header: bytes | None, ask: Ask | None) -> tuple[bytes, str]:
    """Returns the datum and its schema, for a frame that holds only the schema's name.

    Raises BrokenRecord if there is no such frame, or if it names no known schema.
    """
    frame = frame_of(record, header)
    if frame.in_header and frame.behind:
        raise BrokenRecord("more behind the schema's name")
    text, why_not = frame.answer(ask)
    if why_not:
        raise BrokenRecord(why_not)
    return record if frame.in_header else frame.behind, text
