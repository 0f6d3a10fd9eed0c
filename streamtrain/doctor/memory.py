"""Memory, and what a process may have of it and of open files."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

from streamtrain.doctor.finding import Finding, State
from streamtrain.job.kafka_settings import KafkaSettings

HELP = "memory, shared memory, open files and other limits"
ORDER = 30
FILES = 1024  # enough for a trainer, with room
SHARED_BYTES = 256 << 20


def look(kafka: KafkaSettings | None) -> Iterator[Finding]:
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    total, free = (int(lines[name].split()[0]) << 10 for name in ("MemTotal", "MemAvailable"))
    short = free < 1 << 30
    found = f"{_gib(free)} of {_gib(total)} are free"
    yield Finding("memory", found, "warning", "end something") if short else Finding("memory", found)
    yield from _limit("address space", resource.RLIMIT_AS, None)
    yield from _limit("open files", resource.RLIMIT_NOFILE, FILES)
    yield from _limit("processes", resource.RLIMIT_NPROC, 256)
    yield _shared()


def _limit(what: str, kind: int, least: int | None) -> Iterator[Finding]:
    soft, _ = resource.getrlimit(kind)
    if soft == resource.RLIM_INFINITY:
        yield Finding(what, "not limited")
    elif least is None:
        yield Finding(what, f"limited to {soft:,} bytes", "warning", "ulimit -v unlimited")
    elif soft < least:
        state: State = "warning" if soft >= least // 4 else "wrong"
        yield Finding(what, f"limited to {soft:,}", state, f"raise it to {least:,}")
    else:
        yield Finding(what, f"limited to {soft:,}")


def _shared() -> Finding:
    """A trainer's processes share an anonymous file: what it costs is memory, not room in /dev/shm."""
    try:
        handle = os.memfd_create("streamtrain-doctor")
    except OSError as error:
        return Finding("shared memory", f"memfd_create: {error.strerror}", "wrong", "a sandbox that allows it")
    try:
        os.posix_fallocate(handle, 0, SHARED_BYTES)
    except OSError as error:
        found = f"256 MiB could not be had: {error.strerror}"
        return Finding("shared memory", found, "wrong", "more memory for this process")
    finally:
        os.close(handle)
    return Finding("shared memory", "256 MiB could be had")


def _gib(count: int) -> str:
    return f"{count / (1 << 30):.1f} GiB"
