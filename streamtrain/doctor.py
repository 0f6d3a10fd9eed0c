"""The looks of `streamtrain doctor` at the machine and a Kafka, one after the other."""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from streamtrain import _native
from streamtrain.build import build_digest
from streamtrain.compute import backends
from streamtrain.errors import StreamtrainError
from streamtrain.job.kafka_settings import KafkaSettings
from streamtrain.kafka.admin import Admin
from streamtrain.run.cores import usable_cores, usable_count

State = Literal["ok", "warning", "wrong"]
LIBRARIES = ("confluent-kafka", "numpy", "pydantic", "typer")
OPTIONAL = (
    "torch", "pyarrow", "cupy-cuda12x", "cupy-cuda13x", "nicegui", "opencv-python-headless", "simplejpeg", "soundfile",
)  # fmt: skip
OPEN_FILES = 1024  # enough for a trainer, with room
SHARED_BYTES = 256 << 20
SLOW_S = 0.25  # for a broker's answer
_ERROR = 5  # TIME_ERROR of adjtimex(2): not synchronised
_TIMEX_BYTES = 512  # more than a struct timex has; all 0: nothing is changed


@dataclass(frozen=True)
class Finding:
    """`state`: ok; warning, it works but worse; wrong, it does not work. `do`: what would mend it."""

    what: str
    found: str
    state: State = "ok"
    do: str = ""


def look(kafka: KafkaSettings | None) -> Iterator[tuple[str, list[Finding]]]:
    """Yields the findings about each thing as soon as they are there. A look that fails is a finding.

    `kafka`: the settings of a Kafka to ask, None where there is none.
    """
    for name, each in LOOKS.items():
        try:
            yield name, list(each(kafka))
        except Exception as error:  # a doctor that falls ill helps nobody
            yield name, [Finding(name, f"could not be looked at: {type(error).__name__}: {error}", "warning")]


def _versions(kafka: KafkaSettings | None) -> Iterator[Finding]:
    yield Finding("streamtrain", build_digest())
    yield Finding("python", f"{platform.python_version()} ({platform.python_implementation()})")
    yield Finding("system", platform.platform())
    yield Finding("libraries", ", ".join(f"{name} {_version(name)}" for name in LIBRARIES))
    found = [f"{name} {number}" for name in OPTIONAL if (number := _version(name))]
    yield Finding("optional", ", ".join(found) or "none of the optional packages is installed")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _processor(kafka: KafkaSettings | None) -> Iterator[Finding]:
    yield Finding("processor", _processor_name())
    cores, count = usable_cores(), usable_count()
    limited = f", of which its control group lets it keep {count} busy" if count < len(cores) else ""
    yield Finding("cores", f"{len(cores)} of {os.cpu_count()} may be used{limited}")
    sets = _native.supported_isas()
    widest = sets[-1]
    text = f"{', '.join(sets)}; {widest} is used"
    if widest == "v2":
        yield Finding("instructions", text, "warning", "a processor with AVX2 (v3) is several times as fast")
    else:
        yield Finding("instructions", text)
    load, _, _ = os.getloadavg()
    found = f"{load:.1f} over {count} cores"
    yield Finding("load", found) if load <= count else Finding("load", found, "warning", "others keep it busy")


def _processor_name() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = {line.partition(":")[2].strip() for line in lines if line.startswith("model name")}
    return ", ".join(sorted(names)) or os.uname().machine


def _memory(kafka: KafkaSettings | None) -> Iterator[Finding]:
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    total, free = (int(lines[name].split()[0]) << 10 for name in ("MemTotal", "MemAvailable"))
    short = free < 1 << 30
    found = f"{_gib(free)} of {_gib(total)} are free"
    yield Finding("memory", found, "warning", "end something") if short else Finding("memory", found)
    yield from _limit("address space", resource.RLIMIT_AS, None)
    yield from _limit("open files", resource.RLIMIT_NOFILE, OPEN_FILES)
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


def _clock(kafka: KafkaSettings | None) -> Iterator[Finding]:
    now = time.strftime("%Y-%m-%d %H:%M:%S %Z")
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    except (OSError, AttributeError):
        state = -1
    if state < 0:
        yield Finding("clock", f"{now}, whether it is kept right is not known")
    elif state == _ERROR:
        yield Finding("clock", f"{now}, nothing keeps it right", "warning", "NTP: ages and delays are told by it")
    else:
        yield Finding("clock", f"{now}, kept right")


def _gpu(kafka: KafkaSettings | None) -> Iterator[Finding]:
    for name in backends.priority_names():
        reason = backends.get(name).answers()
        yield Finding(f"backend {name}", "can be used" if reason is None else f"cannot be used: {reason}")
    yield Finding("chosen", backends.choose())


def _kafka(kafka: KafkaSettings | None) -> Iterator[Finding]:
    if kafka is None:
        yield Finding("kafka", "not asked: give a job file or --bootstrap")
        return
    admin = Admin(kafka.bootstrap, {**kafka.common, **kafka.consumer})
    try:
        admin.broker_count()
    except StreamtrainError as error:
        yield Finding("kafka", str(error), "wrong", "start it, or mend the address or [kafka]")
        return
    begun_s = time.monotonic()
    count = admin.broker_count()
    took_s = time.monotonic() - begun_s
    found = f"{kafka.bootstrap} answers within {1000 * took_s:.1f} ms, {count} broker{'s' * (count != 1)}"
    slow = took_s > SLOW_S
    yield Finding("kafka", found, "warning" if slow else "ok", "every publication waits for it" if slow else "")
    yield Finding("topics", f"{len(admin.names()):,} are visible")


LOOKS = {
    "versions": _versions, "processor": _processor, "memory": _memory, "clock": _clock, "gpu": _gpu, "kafka": _kafka,
}  # fmt: skip
