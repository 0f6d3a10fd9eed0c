"""What a first job learns: the file `init` writes for a CSV, unedited, over the CSV's rows, each scored before it is
learned; beside the same network in PyTorch, and River's linear model. Loss is log loss, or RMSE of a number.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from learning_rivals import Decoded, decoded, pytorch, river
from learning_run import trained
from learning_streams import STREAMS, Stream

from streamtrain.files.reading import read_rows
from streamtrain.files.wanted import Wanted
from streamtrain.job import Job

SMOKE = ["tiny", "--seeds", "1", "--rows", "200"]
SEEDS = 5


def first_job(path: Path, label: str) -> Path:
    """The job file that `streamtrain init` writes for the CSV."""
    job, command = path.with_suffix(".toml"), str(Path(sys.executable).parent / "streamtrain")
    subprocess.run([command, "init", job, "--from", path, "--label", label], check=True, stdout=subprocess.DEVNULL)
    return job


def records_of(job: Job, path: Path, rows: int | None) -> list[bytes]:
    """The CSV's rows as `produce` sends them, one a record."""
    found = islice(map(Wanted(job.schema).row, read_rows(str(path))), rows)
    return [json.dumps(row).encode() for row in found]


def loss(figures: dict[str, float], prefix: str = "") -> float:
    return figures[prefix + ("rmse" if "rmse" in figures else "log_loss")]


def rivals(stream: Stream, job: Job, data: Decoded, seeds: int) -> dict[str, float]:
    """The median loss of each rival that has a bar and is installed."""
    sides: dict[str, Callable[[int], float]] = {
        "PyTorch": lambda seed: pytorch(job, data, seed), "River": lambda seed: river(job, data),
    }  # fmt: skip
    counts = {"PyTorch": ("torch", seeds), "River": ("river", 1)}   # River's has no seed
    return {
        name: statistics.median(sides[name](seed) for seed in range(counts[name][1]))
        for name in stream.bars if importlib.util.find_spec(counts[name][0])
    }  # fmt: skip


def measure(
    stream: Stream, folder: Path, seeds: int, rows: int | None, with_rivals: bool, sets: Sequence[str] = ()
) -> None:
    """A line for each bar of the stream, and one for the constant prediction."""
    path = stream.write(folder)
    if path is None:
        print(f"{stream.name}: its data is not at hand; left out", file=sys.stderr)
        return
    file = first_job(path, stream.label)
    records = records_of(Job.load(file), path, rows)
    found = [trained(Job.load(file, sets=[f"train.seed={seed}", *sets]), records) for seed in range(seeds)]
    ours, constant = statistics.median(map(loss, found)), loss(found[0], "constant_")
    against = {"constant": (constant, 1.0)}
    if with_rivals:
        others = rivals(stream, Job.load(file), decoded(Job.load(file), records), seeds)
        against |= {name: (other, stream.bars[name]) for name, other in others.items()}
    if stream.most is not None:
        against["bar"] = (stream.most, 1.0)
    for name, (other, bar) in against.items():
        ratio = ours / other if other else math.inf
        print(json.dumps({
            "bench": f"learning {stream.name} / {name}", "ours": round(ours, 5), "rival": round(other, 5),
            "ratio": round(ratio, 4), "bar": bar, "unit": "rmse" if "rmse" in found[0] else "log loss",
            "updates": found[0]["updates"], "rows": int(found[0]["weight"]),
        }), flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("streams", nargs="*", help="their names; all if none")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--rows", type=int, help="the first so many of each stream")
    parser.add_argument("--alone", action="store_true", help="without rivals")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="another setting for ours")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="streamtrain-bench-") as folder:
        for stream in STREAMS:
            if not options.streams or stream.name in options.streams:
                measure(stream, Path(folder), options.seeds, options.rows, not options.alone, options.set)


if __name__ == "__main__":
    main()
