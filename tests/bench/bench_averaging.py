"""What W workers learn together beside one, of as many rows: 32 a batch, averaged every 4 batches. By the mean with W
times the learning rate, which `init` sets, and by the outer step. Loss is log loss, each row scored before it is
learned; the job is the one that `init` writes, its batches full-grown from the start. Beside it, what one worker learns
of batches that are W times as large: as many updates, and no mean of what went apart.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench_learning import first_job, loss, records_of
from learning_run import trained
from learning_streams import STREAMS

from streamtrain.job import Job

SMOKE = ["--rows", "500", "--seeds", "1", "--workers", "2"]
NAMES = ("flights", "elec2", "adult")
ROWS, SEEDS = 60_000, 3
WORKERS = (2, 4, 8)   # 4 and 8 are shown
BAR = 1.02            # of one worker's loss at most, with 2
BATCH_ROWS = 32
SHAPE = ('train.batch_growth="off"', "train.averaging_frequency=4")
WAYS: dict[str, tuple[str, ...]] = {   # how W workers make up for the mean, which goes as far as one of them
    "the mean, rate x W": (),
    "the outer step": (
        'train.averaging.name="outer_nesterov"', "train.averaging.rate=1.0", "train.averaging.momentum=0.2",
    ),
}  # fmt: skip


def median_loss(
    file: Path, records: Sequence[bytes], seeds: int, workers: int, sets: Sequence[str] = (), times: int = 1
) -> float:
    """Of `workers` with batches of `times` 32 rows, and as many times the learning rate."""
    rate = workers * times * Job.load(file).optimizer.learning_rate
    mine = [*SHAPE, f"train.batch_rows={times * BATCH_ROWS}", f"train.workers={workers}"]
    mine += [f"optimizer.learning_rate={rate}", *sets]
    return statistics.median(
        loss(trained(Job.load(file, sets=[*mine, f"train.seed={seed}"]), records)) for seed in range(seeds)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help="the first so many of each stream")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--workers", type=int, nargs="*", default=WORKERS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="streamtrain-bench-") as folder:
        for stream in (each for each in STREAMS if each.name in NAMES):
            path = stream.write(Path(folder))
            if path is None:
                print(f"{stream.name}: its data is not at hand; left out", file=sys.stderr)
                continue
            file = first_job(path, stream.label)
            records = records_of(Job.load(file), path, given.rows)
            alone = median_loss(file, records, given.seeds, 1)
            for workers in given.workers:
                larger = median_loss(file, records, given.seeds, 1, times=workers)
                for way, sets in WAYS.items():
                    ours = median_loss(file, records, given.seeds, workers, sets)
                    print(json.dumps({
                        "bench": f"{workers} workers {stream.name}, {way}", "ours": round(ours, 5),
                        "rival": round(alone, 5), "ratio": round(ours / alone, 4),
                        "larger_batches": round(larger / alone, 4), "bar": BAR if workers == 2 else None,
                        "unit": "log loss, of one worker; less is better",
                    }), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
