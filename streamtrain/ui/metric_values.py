"""A reader of a process's /metrics for the pages: the metric names, and a parser that groups values by job."""

from __future__ import annotations

import math
from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

from streamtrain.errors import CheckFailed

# each by the label that tells its values apart, beside the job; "" where there is one value. One without a job is of
# each that is told of, as the processes of `serve` are
CPU_S = "streamtrain_process_cpu_seconds_total"
PSS_BYTES = "streamtrain_process_pss_bytes"
GPU_USED = "streamtrain_gpu_utilization"
GPU_MEMORY_USED_BYTES = "streamtrain_gpu_memory_used_bytes"
GPU_BYTES = "streamtrain_gpu_memory_bytes"
RING_USED, RING = "streamtrain_ring_slots_used", "streamtrain_ring_slots"
TRANSACTIONS_S, TRANSACTIONS = "streamtrain_transaction_seconds_sum", "streamtrain_transaction_seconds_count"
ROUND_S = "streamtrain_round_seconds"
ROWS_PER_S = "streamtrain_rows_per_second"
READY, VERSION, LAG = "streamtrain_ready", "streamtrain_snapshot_version", "streamtrain_lag_offsets"
REQUESTS, SERVING = "streamtrain_requests_total", "streamtrain_serving_processes"
NAMES = {
    CPU_S: "process", PSS_BYTES: "process", GPU_USED: "device", GPU_MEMORY_USED_BYTES: "device", GPU_BYTES: "device",
    RING_USED: "", RING: "", TRANSACTIONS_S: "", TRANSACTIONS: "", ROUND_S: "", ROWS_PER_S: "", READY: "", VERSION: "",
    LAG: "partition", REQUESTS: "", SERVING: "",
}  # fmt: skip
Values = Mapping[str, Mapping[str, float]]  # by name, by its label's value
MOST_VALUES = 256  # of one name


def read(text: str) -> Mapping[str, Values]:
    """By job. Raises CheckFailed where it is none of Prometheus' text, or tells of no job."""
    relevant = "\n".join(line for line in text.splitlines() if line.startswith(tuple(NAMES)))
    found: dict[str, dict[str, dict[str, float]]] = {"": {}}
    try:
        samples = [each for family in text_string_to_metric_families(f"{relevant}\n") for each in family.samples]
    except (ValueError, KeyError, IndexError) as error:
        raise CheckFailed(f"expected metrics as Prometheus reads them, got {str(error)[:80]}") from None
    for name, labels, value, *_ in samples:
        if name in NAMES and math.isfinite(value):
            values = found.setdefault(labels.get("job", ""), {}).setdefault(name, {})
            if len(values) < MOST_VALUES:
                values[labels.get(NAMES[name], "")] = value
    of_all = found.pop("")
    if not found:
        raise CheckFailed("expected the metrics of a trainer, a predictor or `streamtrain serve`, got none of them")
    return {job: {**of_all, **values} for job, values in found.items()}


def one(values: Values, name: str) -> float | None:
    """The value of a metric that has one."""
    return values.get(name, {}).get("")
