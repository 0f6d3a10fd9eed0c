"""A linear model of sparse rows, 80 pairs of 2^22 features each, logistic loss and AdaGrad: steps of 32 and 256 rows
over slots in memory, and rows of msgpack decoded and trained, against Vowpal Wabbit over its own cache (extra `test`).

In processor time, the least of many runs in turns: a core's work. VW's is that of two threads, one of which decodes.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

from slots import RowSlot

from streamtrain import Job, _native
from streamtrain.compute.model import Model, aligned

SMOKE = ["--seconds", "1", "--rows", "4096"]
BAR = 3.0
BITS, PAIRS, ROWS = 22, 80, (256, 32)
PASSES = 4
JOB = {
    "records": {"format": "msgpack"},
    "columns": {
        "wide": {"kind": "sparse", "buckets": 1 << BITS, "most": 4096},
        "late": {"role": "label", "classes": ["-1", "1"]},
    },
    "model": {"layers": [], "loss": "binary_cross_entropy"}, "optimizer": {"name": "adagrad", "learning_rate": 0.5},
}  # fmt: skip


def rows(count: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Indexes and values [count, PAIRS], some far more frequent than others, and labels that can be learned."""
    random = np.random.default_rng(0)
    index = ((1 << BITS) * random.random((count, PAIRS)) ** 3).astype(np.int64)
    value = random.uniform(0.01, 0.2, (count, PAIRS)).astype(np.float32)
    return index, value, np.where((index % 7 - 3).sum(1) > 0, 1, -1)


class Ours:
    """Rows in slots of `batch`, and as records; a plan over a state of its own."""

    def __init__(self, table: tuple[Any, Any, Any], batch: int) -> None:
        job = Job.from_tables({**JOB, "train": {"batch_rows": batch}})
        self.model, self.batch = Model(job.model_spec()), batch
        self.slots = [RowSlot(job.schema, batch, "msgpack") for _ in range(len(table[2]) // batch)]
        self.records = [
            msgpack.packb({"wide": [*zip(*pairs, strict=True)], "late": str(label)}, use_single_float=True)
            for *pairs, label in zip(*(each.tolist() for each in table), strict=True)
        ]
        self.state = self.model.initial_state(1)
        base, share = (aligned(self.model.statistics_bytes) for _ in range(2))
        self.plan = self.model.compile("cpu", self.slots[0].layout, self.state, base, share)
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

    def __init__(self, table: tuple[Any, Any, Any], folder: Path) -> None:
        text = folder / "rows.vw"
        with text.open("w") as file:
            for index, value, label in zip(*table, strict=True):
                pairs = " ".join(f"{at}:{by:.4f}" for at, by in zip(index, value, strict=True))
                file.write(f"{label} | {pairs}\n")
        self.command = [sys.executable, "-m", "vowpalwabbit", "--quiet", "-b", str(BITS), "--loss_function", "logistic",
                        "--noconstant", "--cache_file", str(folder / "rows.cache")]  # fmt: skip
        subprocess.run([*self.command, "-d", str(text)], check=True)
        text.write_text("")

    def passes(self, count: int) -> float:
        """Processor seconds of so many passes over the cache, of a process."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*self.command, "--passes", str(count), "--holdout_off"], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def seconds_of(call: Callable[[], None]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def least(sides: dict[str, Callable[[], float]], seconds: float) -> dict[str, float]:
    """Of each side's measurements, taken in turns."""
    found = dict.fromkeys(sides, float("inf"))
    end, turns = time.perf_counter() + seconds, 0
    while time.perf_counter() < end or turns < 2:
        for name, measure in sides.items():
            found[name] = min(found[name], measure())
        turns += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rows", type=int, default=32768)
    options = parser.parse_args()
    if importlib.util.find_spec("vowpalwabbit") is None:
        print(json.dumps({"bench": "sparse linear", "skipped": "vowpalwabbit is not installed (extra test)"}))
        return
    isa = _native.select_isa(os.environ.get("STREAMTRAIN_ISA", "auto"))
    with tempfile.TemporaryDirectory() as folder:
        table = rows(options.rows)
        vowpal = Vowpal(table, Path(folder))
        ours = {batch: Ours(table, batch) for batch in ROWS}
        sides: dict[str, Callable[[], float]] = {
            "one pass": lambda: vowpal.passes(1), "more passes": lambda: vowpal.passes(1 + PASSES)
        }
        for batch, its in ours.items():
            sides[f"step {batch} rows"] = lambda its=its: seconds_of(its.stepped)
        sides[f"decode and step {ROWS[0]} rows"] = lambda: seconds_of(ours[ROWS[0]].decoded)
        best = least(sides, options.seconds)
        begun, ended = best.pop("one pass"), best.pop("more passes")
        rival = options.rows * PASSES / max(ended - begun, 1e-9)   # without a process's start and end
        for name, seconds in best.items():
            mine = options.rows / seconds
            print(json.dumps({
                "bench": f"sparse linear {name} {isa}", "ours": round(mine), "rival": round(rival),
                "ratio": round(mine / rival, 2), "bar": BAR if name.startswith("step") else None,
                "unit": f"rows/s of {PAIRS} pairs, Vowpal Wabbit's cache",
            }), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
