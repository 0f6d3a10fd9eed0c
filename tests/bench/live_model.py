"""LiveModel.predict: 28 numbers through a 64-64 network; one dict against NumPy, arrays in two threads against one.

Measured on the scorer a LiveModel calls; the check for a fork and two attribute reads come on top. No broker. The
threads need two idle cores.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from publisher import example_manifest
from small_model import SmallModel

from streamtrain.clients.scorer import Scorer
from streamtrain.columns.served import Served
from streamtrain.compute import snapshot
from tests.bench.harness import LIMIT, Line, Run, Sides, bench, once

NUMBERS, ARRAY_ROWS, TURNS = 28, 1_000, 5
COLUMNS: dict[str, Any] = {f"x{at}": {} for at in range(NUMBERS)} | {"y": {"role": "label"}}
NAMES = [name for name in COLUMNS if name != "y"]
Row = dict[str, float]


def percentiles_us(predict: Callable[[Row], Any], row: Row, seconds: float) -> dict[str, float]:
    took: list[int] = []
    for _ in range(100):
        predict(row)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        begun = time.perf_counter_ns()
        predict(row)
        took.append(time.perf_counter_ns() - begun)
    return {f"p{at}": float(np.percentile(took, at)) / 1000 for at in (50, 99)}


def calls_per_second(predict: Callable[[Any], Any], rows: Any, threads: int, seconds: float) -> float:
    """Calls a second of all threads together, by the wall's clock."""
    counts = [0] * threads
    begin = threading.Barrier(threads)

    def work(at: int) -> None:
        predict(rows)
        begin.wait()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            predict(rows)
            counts[at] += 1

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    return sum(counts) / seconds


def layers_of(parameters: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    return [(parameters[f"{name}.weight"], parameters[f"{name}.bias"]) for name in ("dense0", "dense1", "output")]


def logits(layers: list[tuple[Any, Any]], x: Any) -> Any:
    """The network 28-64-64-1 by hand."""
    for weight, bias in layers[:-1]:
        x = np.maximum(x @ weight + bias, 0)
    return x @ layers[-1][0] + layers[-1][1]


@bench(
    "live_model",
    [
        Line("one dict, p50", "scorer:p50", "NumPy by hand:p50", 100.0, LIMIT, inverse=True, unit="us"),
        Line("one dict, p99", "scorer:p99", "NumPy by hand:p99", 100.0, LIMIT, inverse=True, unit="us"),
        Line("arrays of 1,000, two threads", "two threads", "one thread", 1.7),
    ],
    once, "calls/s", seconds=3.0,
)  # fmt: skip
def live_model(run: Run) -> Sides:
    """LiveModel's scorer, without a broker: one dict against NumPy by hand, arrays in two threads against one (best
    turn)."""
    model = SmallModel.make(COLUMNS, layers=(64, 64))
    payload = model.payload(1)
    manifest = example_manifest(1, model_spec=model.spec, schema=model.schema.to_dict())
    scorer = Scorer(Served.of(manifest, b"d" * 32, payload))
    row, layers = {name: at / 30 for at, name in enumerate(NAMES)}, layers_of(snapshot.decode(payload))

    def by_numpy(row: Row) -> Row:
        x = np.array([[row[name] for name in NAMES]], np.float32)
        return {"prediction": float(1 / (1 + np.exp(-logits(layers, x)[0, 0])))}

    assert abs(scorer.predict(row)["prediction"] - by_numpy(row)["prediction"]) < 1e-5
    rows, each_s = {name: np.linspace(-1, 1, ARRAY_ROWS, dtype=np.float32) for name in NAMES}, run.seconds / 3
    turns = [
        [calls_per_second(scorer.predict, rows, threads, each_s / TURNS / 2) for threads in (1, 2)]
        for _ in range(TURNS)
    ]
    one, two = max(turns, key=lambda turn: turn[1] / turn[0])
    return {
        "scorer": lambda: percentiles_us(scorer.predict, row, each_s), "one thread": one, "two threads": two,
        "NumPy by hand": lambda: percentiles_us(by_numpy, row, each_s),
    }  # fmt: skip
