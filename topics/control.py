"""The control topic: the job's runs, how each ended, and the newest snapshot. Compacted; each entry has its own key.

A run writes its entry in its first transaction and its end in its last; `newest` is in every publication's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TypeVar

from streamtrain.errors import CheckFailed
from streamtrain.topics.documents import Document, cut, key_of
from streamtrain.topics.manifest import Run
from streamtrain.topics.topic import Message, Topic
from streamtrain.topics.wire import DIGEST_BYTES, HEX_128_BIT, Reader, pack

HELP = "which run holds the job, its runs and their ends, and the newest snapshot"
WIRE_VERSION = 3
TOPIC = Topic(
    key="control",
    config={
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.1",
        "segment.bytes": str(1024 * 1024),  # a start reads the topic whole, and only closed segments are compacted
        "segment.ms": "600000",
    },
    fixed_partitions=True,
    loses="how earlier runs ended",
    renameable=False,
    wire_version=WIRE_VERSION,
    written="alone",
)
NEWEST_KEY = b"newest"
MODES = ("one", "many")
_RUN, _END = b"run/", b"end/"
_NUMBER = re.compile(rb"[1-9][0-9]{0,18}")  # without leading zeros: one key a run
LEAP = 2**32  # a run or version that is so far above the one before was not counted by a trainer


def transactional_id(job: str) -> str:
    """The id by which a trainer writes; a program of the user's that is named like the job keeps its own."""
    return f"streamtrain.{job}"


@dataclass(frozen=True)
class RunEntry:
    """One life of a trainer, as its first transaction announces it."""

    run: Run
    job: str
    host: str
    process: int  # the coordinator's, on its host
    started_ms: int
    build: str
    mode: str = "one"  # "many": other hosts train the job too, and this run publishes what they contribute


@dataclass(frozen=True)
class RunEnd:
    """The end of a run, written by a run that could still do so; a killed or replaced run cannot.

    Its exit code is 1 where another run followed.
    """

    run: Run
    exit_code: int
    reason: str
    ended_ms: int


E = TypeVar("E", RunEntry, RunEnd)


@dataclass(frozen=True)
class Newest:
    """The snapshot published last: what the newest manifest of the snapshots topic must be."""

    version: int
    digest: bytes  # of its manifest
    lineage: str  # 128 bits, hex


@dataclass
class Control:
    """The state that the topic's messages, taken in order, amount to. Runs and ends are by the run's number."""

    runs: dict[int, RunEntry] = field(default_factory=dict)
    ends: dict[int, RunEnd] = field(default_factory=dict)
    newest: Newest | None = None

    @property
    def holder(self) -> RunEntry | None:
        """The run that holds the job, or held it last."""
        return self.runs[max(self.runs)] if self.runs else None

    def leap(self) -> bytes | None:
        """The key of a run whose number no trainer can have counted up to."""
        numbers = sorted(self.runs)
        pairs = zip([0, *numbers], numbers, strict=False)
        return next((b"%s%d" % (_RUN, number) for before, number in pairs if number - before > LEAP), None)

    def take(self, key: bytes | None, value: bytes | None) -> RunEntry | RunEnd | Newest | None:
        """Takes the next message and gives what it says; keys it does not know are others', and tombstones say nothing.

        CheckFailed says what is wrong with a value.
        """
        if key == NEWEST_KEY:
            self.newest = None if value is None else decode_newest(value)
            return self.newest
        if key is not None and key.startswith(_RUN):
            return _put(self.runs, key, value, decode_run)
        if key is not None and key.startswith(_END):
            return _put(self.ends, key, value, decode_end)
        return None


def _put(entries: dict[int, E], key: bytes, value: bytes | None, decode: Callable[[bytes], E]) -> E | None:
    digits = key.partition(b"/")[2]
    number = int(digits) if _NUMBER.fullmatch(digits) else None
    if value is None:
        entries.pop(number or 0, None)  # a key without a number was never an entry
        return None
    if number is None:
        raise CheckFailed(f"{cut(key)}: expected a run's number in the key")
    entry = decode(value)
    if entry.run.number != number:
        raise CheckFailed(f"{cut(key)}: expected the entry of that run, got {entry.run.number}'s")
    entries[number] = entry
    return entry


def message(entry: RunEntry | RunEnd | Newest) -> Message:
    """Returns the message that a trainer writes for the entry."""
    if isinstance(entry, Newest):
        return newest_message(entry)
    return run_message(entry) if isinstance(entry, RunEntry) else end_message(entry)


def run_message(entry: RunEntry) -> Message:
    return Message(b"%s%d" % (_RUN, entry.run.number), encode_run(entry))


def end_message(end: RunEnd) -> Message:
    return Message(b"%s%d" % (_END, end.run.number), encode_end(end))


def newest_message(newest: Newest) -> Message:
    return Message(NEWEST_KEY, encode_newest(newest))


def encode_run(entry: RunEntry) -> bytes:
    return pack(
        {
            "wire": WIRE_VERSION,
            "job": entry.job,
            "run": _encode(entry.run),
            "host": entry.host,
            "process": entry.process,
            "started_ms": entry.started_ms,
            "build": entry.build,
            "mode": entry.mode,
        }
    )


def encode_end(end: RunEnd) -> bytes:
    return pack(
        {
            "wire": WIRE_VERSION,
            "run": _encode(end.run),
            "exit_code": end.exit_code,
            "reason": end.reason,
            "ended_ms": end.ended_ms,
        }
    )


def encode_newest(newest: Newest) -> bytes:
    return pack({"wire": WIRE_VERSION, "version": newest.version, "digest": newest.digest, "lineage": newest.lineage})


def decode_run(value: bytes) -> RunEntry:
    """The entry in `value`; CheckFailed says what is wrong with other bytes."""
    read = Reader.unpack(value, "run entry", WIRE_VERSION, CheckFailed)
    mode = read.text("mode")
    if mode not in MODES:
        read.fail("mode", " or ".join(MODES), mode)
    return RunEntry(
        run=_decode(read.child("run")),
        job=read.text("job"),
        host=read.text("host"),
        process=read.integer("process"),
        started_ms=read.integer("started_ms"),
        build=read.text("build"),
        mode=mode,
    )


def decode_end(value: bytes) -> RunEnd:
    """Returns the end of a run in `value`. CheckFailed says what is wrong with other bytes."""
    read = Reader.unpack(value, "end of a run", WIRE_VERSION, CheckFailed)
    return RunEnd(
        run=_decode(read.child("run")),
        exit_code=read.integer("exit_code", 0, 255),
        reason=read.text("reason"),
        ended_ms=read.integer("ended_ms"),
    )


def decode_newest(value: bytes) -> Newest:
    """Returns the newest snapshot in `value`. CheckFailed says what is wrong with other bytes."""
    read = Reader.unpack(value, "newest", WIRE_VERSION, CheckFailed)
    return Newest(
        version=read.integer("version", 1),
        digest=read.binary("digest", DIGEST_BYTES),
        lineage=read.hexadecimal("lineage", HEX_128_BIT),
    )


def _encode(run: Run) -> dict[str, object]:
    return {"number": run.number, "id": run.id}


def _decode(read: Reader) -> Run:
    return Run(read.integer("number", 1), read.hexadecimal("id", HEX_128_BIT))


def document(message: Message) -> Document:
    """Returns what `read` shows of a message: {"run": …}, {"end": …} or {"newest": …}. CheckFailed as
    Control.take()."""
    entry = Control().take(message.key, None if message.value is None else bytes(message.value))
    if entry is None:
        return {"tombstone": True} if message.value is None else {"value": cut(bytes(message.value))}
    if isinstance(entry, Newest):
        return {"newest": {**asdict(entry), "digest": entry.digest.hex()}}
    return {"run" if isinstance(entry, RunEntry) else "end": asdict(entry)}


def line(document: Document) -> str:
    match document:
        case {"run": run}:
            of_many = ", one of many hosts" if run["mode"] == "many" else ""
            said = f"run {run['run']['number']} began on {run['host']}, process {run['process']}{of_many}"
        case {"end": end}:
            said = f"run {end['run']['number']} ended with exit code {end['exit_code']}: {end['reason']}"
        case {"newest": newest}:
            said = f"the newest snapshot is {newest['version']}, {newest['digest'][:12]}"
        case _:
            said = f"{key_of(document).strip()} {'is taken back' if 'tombstone' in document else 'is none of ours'}"
    return f"  {said}"
