"""LiveModel.predict of one dict: 28 numbers through a 64-64 network, against the same forward pass in NumPy.

Measured on the scorer a LiveModel calls; the check for a fork and two attribute reads come on top. No broker.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
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
from streamtrain.compute import snapshot
from streamtrain.kafka.chunks import Stored

FIGURES = 2  # lines of a whole run

NUMBERS = 28
BAR_US = 100.0  # p99


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    seconds = parser.parse_args().seconds
    columns: dict[str, Any] = {f"x{at}": {} for at in range(NUMBERS)} | {"y": {"role": "label"}}
    model = SmallModel.make(columns, layers=(64, 64))
    manifest = example_manifest(1, model_spec=model.spec, schema=model.schema.to_dict())
    payload = model.payload(1)
    scorer = Scorer(Stored(manifest, b"d" * 32, 0, payload, None))
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
    ours, rival = percentiles_us(scorer.predict, row, seconds / 2), percentiles_us(in_numpy, row, seconds / 2)
    for name, mine, theirs in (("p50", ours[0], rival[0]), ("p99", ours[1], rival[1])):
        figure = {"bench": f"live_model_one_dict_{name}", "ours": mine, "rival": theirs, "ratio": theirs / mine}
        print(json.dumps({**figure, "bar": BAR_US, "unit": "us"}))


if __name__ == "__main__":
    main()
