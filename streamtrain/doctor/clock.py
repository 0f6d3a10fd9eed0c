"""The clock: snapshots and dead letters tell its time."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator

from streamtrain.doctor.finding import Finding
from streamtrain.job.kafka_settings import KafkaSettings

HELP = "the clock and whether something keeps it right"
ORDER = 40
_ERROR = 5  # TIME_ERROR of adjtimex(2): not synchronised
_BYTES = 512  # more than a struct timex has; all 0: nothing is changed


def look(kafka: KafkaSettings | None) -> Iterator[Finding]:
    now = time.strftime("%Y-%m-%d %H:%M:%S %Z")
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.create_string_buffer(_BYTES))
    except (OSError, AttributeError):
        state = -1
    if state < 0:
        yield Finding("clock", f"{now}, whether it is kept right is not known")
    elif state == _ERROR:
        yield Finding("clock", f"{now}, nothing keeps it right", "warning", "NTP: ages and delays are told by it")
    else:
        yield Finding("clock", f"{now}, kept right")
