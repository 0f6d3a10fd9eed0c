"""Protobuf's wire, written and read by hand."""

from __future__ import annotations

import struct

from streamtrain.columns.formats._protobuf_wire import LENGTH


def varint(value: int) -> bytes:
    """A number from 0 up, or one of 64 bits below it."""
    raw = value & (1 << 64) - 1
    data = bytearray()
    while raw >= 0x80:
        data.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes([*data, raw])


def zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


def unzigzag(raw: int) -> int:
    return (raw >> 1) ^ -(raw & 1)


def tag(number: int, wire: int) -> bytes:
    return varint(number << 3 | wire)


def sized(number: int, payload: bytes) -> bytes:
    """A field of a length and its bytes."""
    return tag(number, LENGTH) + varint(len(payload)) + payload


def float_of(raw: bytes) -> float:
    return float(struct.unpack("<f" if len(raw) == 4 else "<d", raw)[0])
