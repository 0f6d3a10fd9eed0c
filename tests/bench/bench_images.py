"""JPEGs of 32 x 32 decoded into slots on all cores, against cv2.imdecode alone on one.

Prints one JSON line per figure: pictures a second of the clock, and of the process's CPU time, which a busy machine
does not falsify: there the bar is what one thread gives, less a tenth.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

import msgpack
import numpy as np
from slots import RowSlot

from streamtrain import _native
from streamtrain.columns import media
from streamtrain.columns.schema import Schema

FIGURES = 4  # lines of a whole run
SMOKE = ["--seconds", "1"]
BAR = 0.9  # for each thread
COUNT, ROWS = 1024, 256
SCHEMA = Schema.from_columns(
    {"photo": {"kind": "image", "size": [32, 32]}, "late": {"role": "label"}}, "binary_cross_entropy"
)


def per_second(call: Callable[[], int], seconds: float) -> tuple[float, float]:
    """The best of five windows, by the clock and by CPU time."""
    call()
    best = [0.0, 0.0]
    for _ in range(5):
        done, clock, cpu = 0, time.perf_counter(), time.process_time()
        while (spent := time.perf_counter() - clock) < seconds / 5:
            done += call()
        best = [max(best[0], done / spent), max(best[1], done / (time.process_time() - cpu))]
    return best[0], best[1]


def alone(raws: list[bytes]) -> int:
    import cv2

    for raw in raws:
        cv2.imdecode(np.frombuffer(raw, np.uint8), cv2.IMREAD_COLOR)
    return len(raws)


def ours(records: list[bytes]) -> Callable[[], int]:
    filler = _native.BatchFiller("msgpack", RowSlot(SCHEMA, ROWS).plan)

    def call() -> int:
        told = filler.count(records)
        assert told.trained == COUNT
        return told.trained

    return call


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20)
    seconds = parser.parse_args().seconds / FIGURES
    if importlib.util.find_spec("cv2") is None:
        return print(json.dumps({"skipped": "needs opencv-python-headless (extra images)"}))
    from pictures import labelled

    raws = [raw for raw, _ in labelled(COUNT)]
    rows: list[dict[str, Any]] = [{"photo": raw, "late": at % 2} for at, raw in enumerate(raws)]
    single = [msgpack.packb(row) for row in rows]
    packed = [msgpack.packb(rows[at : at + 64]) for at in range(0, COUNT, 64)]
    rival = per_second(lambda: alone(raws), seconds)
    for name, records in (("a picture a record", single), ("64 a record", packed)):
        found = per_second(ours(records), seconds)
        of_clock, of_cpu = ("clock", found[0], rival[0], media.threads()), ("CPU", found[1], rival[1], 1)
        for unit, mine, theirs, threads in (of_clock, of_cpu):
            figure = {
                "bench": f"JPEG 32 x 32, {name}, by {unit} time", "ours": round(mine), "rival": round(theirs),
                "ratio": round(mine / theirs, 2), "bar": round(BAR * threads, 2), "threads": media.threads(),
                "us_a_picture": round(1e6 / mine, 1), "unit": "pictures/s",
            }  # fmt: skip
            print(json.dumps(figure), flush=True)


if __name__ == "__main__":
    main()
