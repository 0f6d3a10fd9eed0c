"""LiveModel.predict: 28 numbers through a 64-64 network; one dict against NumPy, arrays in two threads against one.

Measured on the scorer a LiveModel calls; the check for a fork and two attribute reads come on top. No broker. The
threads need two idle cores.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

import numpy as np
from publisher import example_manifest
from small_model import SmallModel

from streamtrain.clients.scorer import Scorer
from streamtrain.columns.served import Served
from streamtrain.compute import snapshot

FIGURES = 2  # lines of a whole run

NUMBERS = 28
BAR_US = 100.0  # p99
THREADS_BAR = 1.7
ARRAY_ROWS = 1_000
TURNS = 5
FIGURES = 3


def percentiles_us(
    predict: Callable[[dict[str, float]], Any], row: dict[str, float], seconds: float
) -> tuple[float, float]:
    took: list[int] = []
    for _ in range(100):
        predict(row)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        begun = time.perf_counter_ns()
        predict(row)
        took.append(time.perf_counter_ns() - begun)
    p50, p99 = np.percentile(took, [50, 99]) / 1000
    return float(p50), float(p99)


def calls_per_second(predict: Callable[[Any], Any], given: Any, threads: int, seconds: float) -> float:
    """Of all threads together, by the wall's clock."""
    counts = [0] * threads
    begin = threading.Barrier(threads)

    def work(at: int) -> None:
        predict(given)
        begin.wait()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            predict(given)
            counts[at] += 1

    workers = [threading.Thread(target=work, args=(at,)) for at in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts) / seconds


def in_threads(scorer: Scorer, names: list[str], seconds: float) -> None:
    """The best of the turns: what else the machine does only takes away."""
    given = {name: np.linspace(-1, 1, ARRAY_ROWS, dtype=np.float32) for name in names}
    turns = [
        [calls_per_second(scorer.predict, given, threads, seconds / TURNS / 2) for threads in (1, 2)]
        for _ in range(TURNS)
    ]
    one, two = max(turns, key=lambda turn: turn[1] / turn[0])
    figure = {"bench": "live_model_arrays_of_1000_two_threads", "ours": two, "rival": one, "ratio": two / one}
    print(json.dumps({**figure, "bar": THREADS_BAR, "unit": "calls/s"}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    seconds = parser.parse_args().seconds
    columns: dict[str, Any] = {f"x{at}": {} for at in range(NUMBERS)} | {"y": {"role": "label"}}
    model = SmallModel.make(columns, layers=(64, 64))
    manifest = example_manifest(1, model_spec=model.spec, schema=model.schema.to_dict())
    payload = model.payload(1)
    scorer = Scorer(Served.of(manifest, b"d" * 32, payload))
    arrays = snapshot.decode(payload)
    layers = [(arrays[f"{name}.weight"], arrays[f"{name}.bias"]) for name in ("dense0", "dense1", "output")]

    def in_numpy(row: dict[str, float]) -> dict[str, float]:
        x = np.array([[row[name] for name in names]], np.float32)
        for weight, bias in layers[:-1]:
            x = np.maximum(x @ weight + bias, 0)
        return {"prediction": float(1 / (1 + np.exp(-(x @ layers[-1][0] + layers[-1][1])[0, 0])))}

    names = [name for name in columns if name != "y"]
    row = {name: at / 30 for at, name in enumerate(names)}
    assert abs(scorer.predict(row)["prediction"] - in_numpy(row)["prediction"]) < 1e-5
    ours, rival = percentiles_us(scorer.predict, row, seconds / 3), percentiles_us(in_numpy, row, seconds / 3)
    for name, mine, theirs in (("p50", ours[0], rival[0]), ("p99", ours[1], rival[1])):
        figure = {"bench": f"live_model_one_dict_{name}", "ours": mine, "rival": theirs, "ratio": theirs / mine}
        print(json.dumps({**figure, "bar": BAR_US, "unit": "us"}))
    in_threads(scorer, names, seconds / 3)


if __name__ == "__main__":
    main()
