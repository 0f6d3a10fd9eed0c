"""The control topic: which run holds the job. Compacted; a run writes its entry in its first transaction."""

from __future__ import annotations

from dataclasses import dataclass

from streamtrain.errors import CheckFailed
from streamtrain.topics._topic import Message, Topic
from streamtrain.topics._wire import HEX_128_BIT, Reader, pack
from streamtrain.topics.snapshots import Run

WIRE_VERSION = 1
TOPIC = Topic(
    key="control",
    help="run entries: which run holds the job",
    config={"cleanup.policy": "compact"},
    fixed_partitions=True,
    renameable=False,
    wire_version=WIRE_VERSION,
)
RUN_KEY = b"run"


@dataclass(frozen=True)
class RunEntry:
    """One life of a trainer, as its first transaction announces it."""

    run: Run
    job: str
    host: str
    process: int  # the coordinator's, on its host
    started_ms: int
    build: str


def message(entry: RunEntry) -> Message:
    return Message(RUN_KEY, encode(entry))


def encode(entry: RunEntry) -> bytes:
    return pack(
        {
            "wire": WIRE_VERSION,
            "job": entry.job,
            "run": {"number": entry.run.number, "id": entry.run.id},
            "host": entry.host,
            "process": entry.process,
            "started_ms": entry.started_ms,
            "build": entry.build,
        }
    )


def decode(value: bytes) -> RunEntry:
    """The entry in `value`; CheckFailed says what is wrong with other bytes."""
    read = Reader.unpack(value, "run entry", WIRE_VERSION, CheckFailed)
    run = read.child("run")
    return RunEntry(
        run=Run(run.integer("number", 1), run.hexadecimal("id", HEX_128_BIT)),
        job=read.text("job"),
        host=read.text("host"),
        process=read.integer("process"),
        started_ms=read.integer("started_ms"),
        build=read.text("build"),
    )
