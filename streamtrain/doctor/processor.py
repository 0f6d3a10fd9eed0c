"""The processor: its kind, its cores and which kernels run on it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from streamtrain import _native
from streamtrain.doctor.finding import Finding
from streamtrain.job.kafka_settings import KafkaSettings
from streamtrain.run.cores import usable_cores, usable_count

HELP = "the processor, its cores and instruction sets"
ORDER = 20


def look(kafka: KafkaSettings | None) -> Iterator[Finding]:
    yield Finding("processor", _name())
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


def _name() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = {line.partition(":")[2].strip() for line in lines if line.startswith("model name")}
    return ", ".join(sorted(names)) or os.uname().machine
