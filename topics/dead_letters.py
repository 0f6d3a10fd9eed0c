"""The dead-letters topic: a record, or some of its rows, that could not be decoded or trained, with the reason.

One message per record and publication. The value is the record's bytes, once; everything else is in the headers.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from streamtrain import _native
from streamtrain.errors import CheckFailed
from streamtrain.topics.documents import Document, cut
from streamtrain.topics.topic import RESERVED_HEADER_PREFIX, Message, Topic

HELP = "records that could not be decoded or trained, with the reason"
TOPIC = Topic(
    key="dead_letters",
    config={"cleanup.policy": "delete", "max.message.bytes": "1048588"},
    written="shared",
)
VALUE_BYTES = 512_000  # a longer record goes by reference: its topic, partition and offset say where it is
_ROWS_BYTES = 128_000  # of the rows header; with the value and a key well below a message
_TEXT_BYTES = 1_000  # of a path or a reason
KEY_BYTES = _native.DEAD_LETTER_KEY_BYTES  # a record with a longer key goes by reference too
_WIRE = b"1"
Value = TypeVar("Value", bytes, bytes | None)
_HEADERS = {
    name: RESERVED_HEADER_PREFIX + name
    for name in (
        "wire", "topic", "partition", "offset", "path", "reason", "rows", "run", "round", "bytes", "until",
        "rows-left-out", "around-left-out",
    )
}  # fmt: skip
_encode_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode  # made anew it is half of the time


MAX_CAUSES = 50  # counted apart; the rest are OTHER
OTHER = "other"
_INDEX = re.compile(r"(?<=\[)\d+(?=\])")
_FOUND = re.compile(r", got .*|(?<= at byte )\d+|(?<= at \[)\d+(?=\])", re.DOTALL)


def cause(path: str, reason: str) -> str:
    """A path and a reason without what the data put in: `$[*].a: expected number`."""
    return f"{_INDEX.sub('*', path)}: {_FOUND.sub(_without, reason)}"


def _without(found: re.Match[str]) -> str:
    return "" if found[0].startswith(",") else "*"


@dataclass(frozen=True)
class DeadRange:
    """Rows [row_from, row_to) of the record; an undecodable remainder is one row."""

    row_from: int
    row_to: int
    path: str
    reason: str


@dataclass(frozen=True)
class DeadLetter:
    """`value` None: by reference, as where not all that stood around the record finds its place here.

    `until` (offset, row): all records from `offset` to there, as of a rejected batch.
    """

    topic: str
    partition: int
    offset: int
    rows: tuple[DeadRange, ...]
    run: int
    round: int
    key: bytes | None = None
    value: bytes | None = None
    value_bytes: int = 0  # of the record, also where `value` is left out
    until: tuple[int, int] | None = None
    rows_left_out: int = 0  # of `rows`, because the header was full
    headers: tuple[tuple[str, bytes], ...] = ()  # the record's own, but for those with our reserved prefix
    around_left_out: int = 0  # of its key and headers: too large

    @property
    def row_count(self) -> int:
        return sum(part.row_to - part.row_from for part in self.rows) + self.rows_left_out


class Causes:
    """Rows by cause, of MAX_CAUSES at most; `letters`: in how many dead letters each is."""

    def __init__(self) -> None:
        self.rows: Counter[str] = Counter()
        self.letters: Counter[str] = Counter()
        self._first: dict[str, str] = {}  # what was found first

    def add(self, letter: DeadLetter) -> None:
        seen = set()
        for part in letter.rows:
            name = self._name(cause(part.path, part.reason))
            self._first.setdefault(name, part.reason.partition(", got ")[2])
            self.rows[name] += part.row_to - part.row_from
            seen.add(name)
        if letter.rows_left_out:
            self.rows[OTHER] += letter.rows_left_out
            seen.add(OTHER)
        self.letters.update(seen)

    def update(self, other: Causes) -> None:
        for name, rows in other.rows.items():
            known = self._name(name)
            self._first.setdefault(known, other._first.get(name, ""))
            self.rows[known] += rows
            self.letters[known] += other.letters[name]

    def most_common(self, count: int) -> dict[str, int]:
        """The most frequent, the rest of them together."""
        found = Counter(dict(self.rows.most_common(count)))
        if rest := self.rows.total() - found.total():
            found[OTHER] += rest
        return dict(found)

    def describe(self) -> str:
        """`3 x $.a: expected number, the first got "x"; 2 x …`, the five most frequent."""
        found = ((rows, name, self._first.get(name)) for name, rows in self.rows.most_common(5))
        return "; ".join(f"{rows} x {name}{f', the first got {first}' if first else ''}" for rows, name, first in found)

    def _name(self, name: str) -> str:
        return name if name in self.rows or len(self.rows) < MAX_CAUSES else OTHER


def message(letter: DeadLetter) -> Message:
    """The message for `letter`; what is too long goes by reference, is cut or counted, so that it always fits."""
    assert letter.rows
    rows, left_out = _rows_header(_merge(letter.rows))
    left_out += letter.rows_left_out
    key = letter.key if letter.key is not None and len(letter.key) <= KEY_BYTES else None
    around_left_out = letter.around_left_out + (key != letter.key)
    whole = letter.value is not None and len(letter.value) <= VALUE_BYTES and not around_left_out
    first = letter.rows[0]
    texts = {
        "wire": _WIRE,
        "topic": letter.topic.encode(),
        "partition": str(letter.partition).encode(),
        "offset": str(letter.offset).encode(),
        "path": _cut(first.path).encode(),
        "reason": _cut(first.reason).encode(),
        "rows": rows,
        "run": str(letter.run).encode(),
        "round": str(letter.round).encode(),
        "bytes": str(letter.value_bytes if letter.value is None else len(letter.value)).encode(),
    }
    if letter.until is not None:
        texts["until"] = _json(list(letter.until))
    if left_out:
        texts["rows-left-out"] = str(left_out).encode()
    if around_left_out:
        texts["around-left-out"] = str(around_left_out).encode()
    ours = tuple((_HEADERS[name], text) for name, text in texts.items())
    return Message(key, letter.value if whole else None, (*own_headers(letter.headers), *ours))


def own_headers(headers: Iterable[tuple[str, Value]]) -> tuple[tuple[str, Value], ...]:
    """Headers of the record: what has our prefix would be taken for ours."""
    return tuple((name, value) for name, value in headers if not name.startswith(RESERVED_HEADER_PREFIX))


def _merge(rows: Sequence[DeadRange]) -> list[DeadRange]:
    """Neighbouring ranges with one path and reason as one."""
    merged: list[DeadRange] = []
    for part in rows:
        last = merged[-1] if merged else None
        if last and (last.row_to, last.path, last.reason) == (part.row_from, part.path, part.reason):
            merged[-1] = DeadRange(last.row_from, part.row_to, last.path, last.reason)
        else:
            merged.append(part)
    return merged


def _rows_header(rows: Sequence[DeadRange]) -> tuple[bytes, int]:
    """`[[from, to, path, reason], …]` and the rows that found no place in it."""
    parts: list[bytes] = []
    used = 2
    for at, part in enumerate(rows):
        text = _json([part.row_from, part.row_to, _cut(part.path), _cut(part.reason)])
        if used + len(text) + 1 > _ROWS_BYTES:
            return b"[" + b",".join(parts) + b"]", sum(left.row_to - left.row_from for left in rows[at:])
        parts.append(text)
        used += len(text) + 1
    return b"[" + b",".join(parts) + b"]", 0


def _json(value: object) -> bytes:
    return _encode_json(value).encode("utf-8", "replace")


def _cut(text: str) -> str:
    raw = text.encode("utf-8", "replace")
    return raw.decode() if len(raw) <= _TEXT_BYTES else raw[:_TEXT_BYTES].decode("utf-8", "ignore") + "…"


def decode(key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes]]) -> DeadLetter:
    """The dead letter in a message; CheckFailed says what is wrong with other messages."""
    found = dict(headers)
    wire = found.get("streamtrain-wire")
    if wire != _WIRE:
        raise CheckFailed(f"dead letter: expected header streamtrain-wire {_WIRE!r}, got {wire!r}")

    def number(name: str, default: int | None = None) -> int:
        raw = found.get(f"streamtrain-{name}")
        if raw is None and default is not None:
            return default
        if raw is None or not raw.isdigit() or len(raw) > 19:
            raise CheckFailed(f"dead letter: expected a whole number in header streamtrain-{name}, got {raw!r}")
        return int(raw)

    until = found.get("streamtrain-until")
    return DeadLetter(
        topic=found.get("streamtrain-topic", b"").decode("utf-8", "replace"),
        partition=number("partition"),
        offset=number("offset"),
        rows=_decode_rows(found.get("streamtrain-rows", b"")),
        run=number("run"),
        round=number("round"),
        key=key,
        value=value,
        value_bytes=number("bytes"),
        until=None if until is None else _decode_until(until),
        rows_left_out=number("rows-left-out", 0),
        headers=own_headers(headers),
        around_left_out=number("around-left-out", 0),
    )


def _load(raw: bytes, name: str) -> object:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as cause:
        raise CheckFailed(f"dead letter: expected JSON in header streamtrain-{name}, got {raw[:80]!r}") from cause


def _decode_until(raw: bytes) -> tuple[int, int]:
    match _load(raw, "until"):
        case [int(offset), int(row)] if offset >= 0 and row >= 0:
            return offset, row
    raise CheckFailed(f"dead letter: expected [offset, row] in header streamtrain-until, got {raw[:80]!r}")


def _decode_rows(raw: bytes) -> tuple[DeadRange, ...]:
    parts = _load(raw, "rows")
    ranges: list[DeadRange] = []
    for part in parts if isinstance(parts, list) else []:
        match part:
            case [int(row_from), int(row_to), str(path), str(reason)] if 0 <= row_from <= row_to:
                ranges.append(DeadRange(row_from, row_to, path, reason))
            case _:
                raise CheckFailed(
                    f"dead letter: header streamtrain-rows: expected [from, to, path, reason], got {part!r:.80}"
                )
    if not ranges:
        raise CheckFailed(f"dead letter: header streamtrain-rows: expected a list of rows, got {raw[:80]!r}")
    return tuple(ranges)


def document(message: Message) -> Document:
    """Returns what `read` shows of a message; CheckFailed as decode()."""
    letter = decode(message.key, None if message.value is None else bytes(message.value), message.headers)
    return {
        "topic": letter.topic,
        "record_partition": letter.partition,
        "record_offset": letter.offset,
        "until": None if letter.until is None else list(letter.until),
        "run": letter.run,
        "round": letter.round,
        "rows": [
            {"from": part.row_from, "to": part.row_to, "path": part.path, "reason": part.reason} for part in letter.rows
        ],
        "rows_left_out": letter.rows_left_out,
        "value_bytes": letter.value_bytes,
        "value": cut(letter.value),
    }


def line(document: Document) -> str:
    reasons = "; ".join(
        f"rows {row['from']}..{row['to'] - 1} {row['path']}: {row['reason']}" for row in document["rows"]
    )
    return f"  {document['topic']}[{document['record_partition']}]@{document['record_offset']}  {reasons}"
