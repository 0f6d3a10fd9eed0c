"""The C++ consumer that decodes nothing: its build, and one run of it."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from pathlib import Path

from streamtrain.kafka import library
from streamtrain.kafka.settings import Purpose, client_settings

HERE = Path(__file__).parent
NATIVE = HERE.parents[1] / "native"
SOURCES = [HERE / "raw_consume.cpp", *(NATIVE / "kafka" / f"{name}.cpp" for name in ("client", "consumer", "library"))]


@functools.cache
def _built() -> str:
    program = str(Path(tempfile.mkdtemp(prefix="streamtrain-bench-")) / "raw_consume")
    command = ["g++", "-std=c++20", "-O2", "-I", str(NATIVE), *map(str, SOURCES), "-o", program, "-ldl", "-pthread"]
    subprocess.run(command, check=True)
    return program


def raw_consume(bootstrap: str, topic: str, partitions: int, count: int) -> tuple[int, int, float]:
    """(messages, bytes, seconds from the first arrival) of reading `count` messages with the ingest's own settings."""
    settings = client_settings(Purpose.INGEST, {"bootstrap.servers": bootstrap}, {"group.id": "raw"})
    given = [f"{name}={value}" for name, value in settings.items()]
    command = [_built(), str(library.find()), topic, str(partitions), str(count), *given]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    messages, size, seconds = done.stdout.split()
    return int(messages), int(size), float(seconds)
