"""A linear model of sparse rows: 80 pairs of 2^22 features each, logistic loss, AdaGrad."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
from slots import RowSlot

from streamtrain import Job
from streamtrain.compute.model import Model, aligned
from tests.bench.harness import Line, Run, Sides, bench, least_times, once

CACHE = "Vowpal Wabbit's cache"
BITS, PAIRS, PASSES = 22, 80, 4
JOB = {
    "records": {"format": "msgpack"},
    "columns": {
        "wide": {"kind": "sparse", "buckets": 1 << BITS, "most": 4096},
        "late": {"role": "label", "classes": ["-1", "1"]},
    },
    "model": {"layers": [], "loss": "binary_cross_entropy"}, "optimizer": {"name": "adagrad", "learning_rate": 0.5},
}  # fmt: skip
Table = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]


def table(count: int) -> Table:
    """Indexes and values [count, PAIRS], some far more frequent than others, and labels that can be learned."""
    random = np.random.default_rng(0)
    index = ((1 << BITS) * random.random((count, PAIRS)) ** 3).astype(np.int64)
    value = random.uniform(0.01, 0.2, (count, PAIRS)).astype(np.float32)
    return index, value, np.where((index % 7 - 3).sum(1) > 0, 1, -1)


class Ours:
    """Rows in slots of `batch`, and as records; a plan over a state of its own."""

    def __init__(self, rows: Table, batch: int) -> None:
        job = Job.from_tables({**JOB, "train": {"batch_rows": batch}})
        model, self.batch = Model(job.model_spec()), batch
        self.slots = [RowSlot(job.schema, batch, "msgpack") for _ in range(len(rows[2]) // batch)]
        self.records = [
            msgpack.packb({"wide": [*zip(*pairs, strict=True)], "late": str(label)}, use_single_float=True)
            for *pairs, label in zip(*(each.tolist() for each in rows), strict=True)
        ]
        self.memories = [model.initial_state(1), *(aligned(model.statistics_bytes) for _ in range(2))]
        self.plan = model.compile("cpu", self.slots[0].layout, *self.memories)
        self.plan.step.learning_rate, self.plan.step.number = 0.5, 100
        self.decoded()

    def decoded(self) -> None:
        """Every slot filled and trained, one after the other."""
        for at, slot in enumerate(self.slots):
            slot.filler.open(slot.slot)
            for record in self.records[at * self.batch : (at + 1) * self.batch]:
                slot.filler.fill(record)
            assert slot.filler.close() == self.batch
            self.plan.train(int(slot.slot.ctypes.data))

    def stepped(self) -> None:
        for slot in self.slots:
            self.plan.train(int(slot.slot.ctypes.data))


class Vowpal:
    """VW's command over a cache that its first run has written."""

    def __init__(self, rows: Table, folder: Path) -> None:
        text = folder / "rows.vw"
        with text.open("w") as file:
            for index, value, label in zip(*rows, strict=True):
                pairs = " ".join(f"{at}:{by:.4f}" for at, by in zip(index, value, strict=True))
                file.write(f"{label} | {pairs}\n")
        self.command = [sys.executable, "-m", "vowpalwabbit", "--quiet", "-b", str(BITS), "--loss_function", "logistic",
                        "--noconstant", "--cache_file", str(folder / "rows.cache")]  # fmt: skip
        subprocess.run([*self.command, "-d", str(text)], check=True)
        text.write_text("")

    def passes(self, count: int) -> None:
        """Passes over the cache, in one process."""
        subprocess.run([*self.command, "--passes", str(count), "--holdout_off"], check=True)


def cpu_s() -> float:
    """Processor seconds of this process and of those that it has waited for."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


@bench(
    "sparse_linear",
    [
        Line("step of 256 rows", "step 256", CACHE, 3.0),
        Line("step of 32 rows", "step 32", CACHE, 3.0),
        Line("decode and step of 256 rows", "decode 256", CACHE),
    ],
    once, f"rows/s of {PAIRS} pairs", {"rows": 4096}, ("vowpalwabbit",), seconds=30.0, rows=32768,
)  # fmt: skip
def sparse_linear(run: Run) -> Sides:
    """Steps over slots in memory, and rows of msgpack decoded and trained, against Vowpal Wabbit over its own cache.
    The least processor time of many runs; Vowpal Wabbit's is that of two threads."""
    rows = table(run.rows)
    vowpal = Vowpal(rows, run.folder)
    large, small = Ours(rows, 256), Ours(rows, 32)
    calls = {
        "one pass": lambda: vowpal.passes(1), "more passes": lambda: vowpal.passes(1 + PASSES),
        "step 256": large.stepped, "step 32": small.stepped, "decode 256": large.decoded,
    }  # fmt: skip
    best = least_times(calls, run.seconds, cpu_s, turns=2)
    begun, ended = best.pop("one pass"), best.pop("more passes")
    rival = run.rows * PASSES / max(ended - begun, 1e-9)  # without a process's start and end
    return {CACHE: rival, **{name: run.rows / seconds for name, seconds in best.items()}}
