"""Use and memory of NVIDIA's GPUs, by the library that comes with their driver (NVML API Reference).

Asked when somebody asks for the metrics; no CUDA context is made for it. Without the library there is no GPU.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

LIBRARY = "libnvidia-ml.so.1"
_NAME_BYTES = 96  # NVML_DEVICE_NAME_V2_BUFFER_SIZE
_MEMORY = ctypes.c_ulonglong * 3  # nvmlMemory_t: total, free, used
_UTILIZATION = ctypes.c_uint * 2  # nvmlUtilization_t, percent: the GPU's, the memory's


class Device(NamedTuple):
    name: str  # "0 NVIDIA H100 80GB HBM3"
    used: float  # share of the time in which a kernel ran, lately
    memory_used: int  # bytes, of all processes
    memory: int


class Devices(Collector):
    """A collector for the GPUs of this machine, whoever uses them."""

    def __init__(self, job: str, library: str = LIBRARY) -> None:
        self._job, self._library = job, library
        self._lock = threading.Lock()

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            found = devices(self._library)
        labels = ("job", "device")
        used = GaugeMetricFamily("streamtrain_gpu_utilization", "share of the time a GPU was busy", labels=labels)
        in_use = GaugeMetricFamily("streamtrain_gpu_memory_used_bytes", "memory of a GPU in use, by all", labels=labels)
        whole = GaugeMetricFamily("streamtrain_gpu_memory_bytes", "memory of a GPU", labels=labels)
        for device in found:
            for family, value in ((used, device.used), (in_use, device.memory_used), (whole, device.memory)):
                family.add_metric((self._job, device.name), value)
        yield from (used, in_use, whole)


@cache
def _opened(library: str) -> Any:
    """None where there is no GPU, or its driver does not answer."""
    try:
        found = ctypes.CDLL(library)
        return found if found.nvmlInit_v2() == 0 else None
    except (OSError, AttributeError):
        return None


def devices(library: str = LIBRARY) -> list[Device]:
    """Returns the GPUs that answer every query; [] without a GPU or its driver."""
    nvml, count = _opened(library), ctypes.c_uint()
    if nvml is None or nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)):
        return []
    found = []
    for at in range(count.value):
        handle, name = ctypes.c_void_p(), ctypes.create_string_buffer(_NAME_BYTES)
        memory, percent = _MEMORY(), _UTILIZATION()
        failed = (
            nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(at), ctypes.byref(handle))
            or nvml.nvmlDeviceGetName(handle, name, ctypes.c_uint(_NAME_BYTES))
            or nvml.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))
            or nvml.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(percent))
        )
        if not failed:
            label = f"{at} {name.value.decode(errors='replace')}"
            found.append(Device(label, percent[0] / 100, memory[2], memory[0]))
    return found
