"""Finds the librdkafka that the confluent-kafka wheel brings and hands its path to the native code."""

from __future__ import annotations

import functools
from pathlib import Path

import confluent_kafka

from streamtrain import _native
from streamtrain.errors import UserMistake


def find() -> Path:
    """Path of the librdkafka that `confluent_kafka` itself uses.

    Raises UserMistake when the process has none (a confluent-kafka linked statically).
    """
    package = Path(confluent_kafka.__file__).parent
    beside = sorted((package.parent / "confluent_kafka.libs").glob("librdkafka*.so*"))
    if beside:
        return beside[0]
    # Built from source: whatever library the extension linked is mapped into this process.
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = Path(line.split(maxsplit=5)[-1])
        if path.name.startswith("librdkafka") and ".so" in path.name:
            return path
    raise UserMistake(
        f"librdkafka: expected it in {package.parent / 'confluent_kafka.libs'} or mapped by confluent_kafka, "
        "found none; install the confluent-kafka wheel (pip install --only-binary confluent-kafka confluent-kafka)"
    )


@functools.cache
def load() -> str:
    """Loads the library for the native code, once per process; gives its version."""
    path = find()
    try:
        _native.kafka_load(str(path))
    except RuntimeError as error:
        raise UserMistake(str(error)) from None
    return _native.kafka_version()
