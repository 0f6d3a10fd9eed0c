"""A message's fields → plain values by name, slowly: the meaning that the native reader is tested against."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streamtrain.columns.formats._protobuf_columns import WHOLE
from streamtrain.columns.formats._protobuf_wire import LENGTH, Wire, fields
from streamtrain.columns.formats.parsed import Binary, BrokenRecord, Moment, Pairs, Unusable
from streamtrain.columns.formats.protobuf_schema import Field, Message, Messages
from tests.oracles.plain_cells import Symbol
from tests.oracles.protobuf_wire import float_of, unzigzag

UNREAD = "\0"  # before the name of a field that the job's schema has not
_MOST_SECONDS, _LEAST_SECONDS = 253_402_300_799, -62_135_596_800  # years 1 to 9999
_DEEPEST = 64  # messages within each other; as native/decode/formats/protobuf.h


class Reading:
    """One record; `field`: that of the row that is being read."""

    def __init__(self, record: bytes, known: Messages) -> None:
        self.wire, self._known, self.field = Wire(record), known, ""

    def row(self, message: Message, end: int) -> Pairs:
        state = _State(message, self._known)
        self._fields(state, end, 0)
        self.field = ""
        return Pairs([*state.pairs(), *state.lists()])

    def past_length(self, end: int) -> int:
        """Returns where the next bytes end, by the length before them."""
        size = self.wire.varint(end)
        if size > end - self.wire.at:
            raise BrokenRecord(f"a length of {size}, {end - self.wire.at} bytes follow")
        return self.wire.at + size

    def _fields(self, state: _State, end: int, depth: int) -> None:
        while self.wire.more(end):
            if depth == 0:
                self.field = ""
            number, wire = self.wire.tag(end)
            field = state.message.fields.get(number)
            if field is None:
                self.wire.value(wire, end)
                continue
            if depth == 0:
                self.field = field.name.lstrip(UNREAD)
            if wire == LENGTH and field.type == "message" and not field.repeated:
                inner = state.inner(field)
                behind = self.past_length(end)
                if depth == _DEEPEST:
                    raise BrokenRecord("messages nested too deep")
                self._fields(inner, behind, depth + 1)
                state.put(field, inner.pairs())
                continue
            value = self.wire.value(wire, end)
            if field.repeated and field.type not in WHOLE:
                state.add(field, self._several(field, wire, value))
            else:
                state.put(field, self._cell(field, wire, value))

    def _several(self, field: Field, wire: int, value: int | bytes) -> list[Any] | Unusable:
        """Returns the values of one occurrence of a field: one value, or a packed run of them."""
        if wire == field.wire:
            return [self._cell(field, wire, value)]
        if not isinstance(value, bytes) or wire != LENGTH:
            return Unusable(f"wire type {wire}")
        run, found = Wire(value), []
        try:
            while run.more(len(value)):
                found.append(self._cell(field, field.wire, run.value(field.wire, len(value))))
        except BrokenRecord as broken:
            return Unusable(f"many values, {broken}")
        return found

    def _cell(self, field: Field, wire: int, value: int | bytes) -> Any:
        if field.repeated and field.type in WHOLE:
            return Unusable("many values")
        if wire != field.wire or field.type == "message":
            return Unusable(f"wire type {wire}")
        if isinstance(value, int):
            return _number(field, value, self._known.enums.get(field.of, {}))
        return _bytes(field, value)


class _State:
    """The values of a message read so far. A message that comes in parts has the values of all of them."""

    def __init__(self, message: Message, known: Messages) -> None:
        self.message, self._known = message, known
        self._given = Pairs()
        self._inner: dict[int, _State] = {}
        self._many: dict[str, list[Any] | Unusable] = {}

    def inner(self, field: Field) -> _State:
        return self._inner.setdefault(field.number, _State(self._known.by_name[field.of], self._known))

    def put(self, field: Field, value: Any) -> None:
        """Adds the value of a field. Of the fields in a oneof, only the last to come is kept."""
        self._given.append((field.name, value))
        if isinstance(value, Unusable):
            self._inner.pop(field.number, None)
        for other in self.message.fields.values():
            if field.oneof and other.oneof == field.oneof and other is not field:
                self._given.append((other.name, None))
                self._inner.pop(other.number, None)

    def add(self, field: Field, values: list[Any] | Unusable) -> None:
        """Adds values to the earlier ones of a repeated field."""
        known = self._many.setdefault(field.name, [])
        if isinstance(values, Unusable) or isinstance(known, Unusable):
            self._many[field.name] = values if isinstance(values, Unusable) else known
        else:
            known += values

    def lists(self) -> Pairs:
        """Repeated fields, in the messages within as well: they are cells when the row has been read."""
        found = Pairs()
        for number, field in sorted(self.message.fields.items()):
            if field.name in self._many:
                found.append((field.name, self._many[field.name]))
            elif number in self._inner and (inner := self._inner[number].lists()):
                found.append((field.name, inner))
        return found

    def pairs(self) -> Pairs:
        """With what its schema lets go unwritten."""
        names = {name for name, _ in self._given}
        silent = [field for field in self.message.fields.values()
                  if not field.presence and not field.repeated and field.name not in names]  # fmt: skip
        return Pairs([*self._given, *((field.name, self._silent(field)) for field in silent)])

    def _silent(self, field: Field) -> Any:
        if field.type in ("string", "bytes"):
            return None
        if field.type == "enum":
            return Symbol(0, self._known.enums[field.of].get(0, ""))
        return 0.0 if field.type in ("float", "double") else False if field.type == "bool" else 0


def _number(field: Field, raw: int, names: Any) -> Any:
    kind = field.type
    if kind == "bool":
        return raw != 0
    if kind in ("sint32", "sint64"):
        return unzigzag(raw & 0xFFFFFFFF if kind == "sint32" else raw)
    bits = 64 if kind.endswith("64") else 32
    raw &= (1 << bits) - 1
    number = raw - (1 << bits) if raw >> (bits - 1) and not kind.startswith("uint") else raw
    return Symbol(number, names.get(number, "")) if kind == "enum" else number


def _bytes(field: Field, raw: bytes) -> Any:
    if field.type == "string":
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return Unusable("text that is not UTF-8")
    if field.type == "bytes":
        return Binary("bytes", raw)
    if field.type == "timestamp":
        return _timestamp(raw)
    if field.type in ("float", "double"):
        return float_of(raw)
    return int.from_bytes(raw, "little", signed=field.type.startswith("s"))


def _timestamp(raw: bytes) -> Any:
    """Milliseconds, whole, of what holds seconds (1) and nanoseconds (2)."""
    found = {1: 0, 2: 0}
    good = True
    for number, _, value in fields(raw):
        if number in found and isinstance(value, int):
            found[number] = value - (1 << 64) if value >> 63 else value
        elif number in found:
            good = False
    seconds, nanos = found[1], found[2]
    if not good or not _LEAST_SECONDS <= seconds <= _MOST_SECONDS or not 0 <= nanos < 1_000_000_000:
        return Unusable(f"a Timestamp of {seconds} s and {nanos} ns")
    return Moment(seconds * 1000 + nanos // 1_000_000, (1, 1))


def resolved(written: Messages, known: Messages, writer: Message, reader: Message) -> Messages:
    """A writer's messages with the reader's names, by number; what the reader has not is UNREAD."""
    by_name = dict(written.by_name)
    waiting = [(writer, reader)]
    seen = set()
    while waiting:
        theirs, ours = waiting.pop()
        if theirs.name in seen:
            continue
        seen.add(theirs.name)
        fields_ = {}
        for number, field in theirs.fields.items():
            own = ours.fields.get(number)
            fields_[number] = replace(field, name=own.name if own else UNREAD + field.name)
            if own and field.type == own.type == "message":
                waiting.append((written.by_name[field.of], known.by_name[own.of]))
        by_name[theirs.name] = replace(theirs, fields=fields_)
    return Messages(by_name, written.enums)
