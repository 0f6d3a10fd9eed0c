"""Which streamtrain, and what it runs on."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from streamtrain.build import build_digest
from streamtrain.doctor.finding import Finding
from streamtrain.job.kafka_settings import KafkaSettings

HELP = "versions of streamtrain, Python, the system, librdkafka and of optional packages"
ORDER = 10
LIBRARIES = ("confluent-kafka", "numpy", "pydantic", "typer")
OPTIONAL = (
    "torch", "pyarrow", "cupy-cuda12x", "cupy-cuda13x", "nicegui", "opencv-python-headless", "simplejpeg", "soundfile",
)  # fmt: skip


def look(kafka: KafkaSettings | None) -> Iterator[Finding]:
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
