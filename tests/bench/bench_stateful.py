"""One training step with six transforms with state beside the same without them, on the flights' columns; one core, by
process time. A round's end is not in it: bench_average.py has that of any state.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "fakes")]

from bench_transforms import COLUMNS, LOSS, flights
from slots import RowSlot, set_rows

from streamtrain.columns.schema import Schema
from streamtrain.compute.model import Model, aligned

TRANSFORMS: dict[str, Any] = {
    "carrier_rate": {"target_mean": "carrier"},
    "dest_often": {"count": "dest"},
    "dest_usual": {"rare_to_other": "dest", "embed": 2},
    "delay_bin": {"quantile_bins": "dep_delay", "bins": 16, "embed": 2},
    "delay_robust": {"robust_scale": "dep_delay"},
    "far": {"min_max": "distance"},
}
LAYERS = [{"dense": 64, "activation": "relu"}, {"dense": 32, "activation": "relu"}]
BAR = 0.8
ROWS = (32, 256, 1024)
CALLS = 20
FIGURES = 3  # lines of a whole run
SMOKE = ["--seconds", "1"]


def step(schema: Schema, rows: int) -> Callable[[], object]:
    """A step on so many flights, decoded as a job's."""
    given = flights(rows)
    slot = RowSlot(schema, rows)
    assert [count for count, _ in slot.batches(given)] == [rows]
    set_rows(slot.slot, rows)
    spec = {"input": schema.engine_inputs(), "layers": LAYERS, "loss": LOSS, "optimizer": {"name": "adam"}}
    model = Model(spec)
    state, base, share = model.initial_state(1), *(aligned(model.statistics_bytes) for _ in range(2))
    base[:] = state[model.learned_bytes :]
    plan = model.compile("cpu", slot.layout, state, base, share)
    address = int(slot.slot.ctypes.data)
    plan.step.learning_rate = 1e-3
    plan.step.number = 1
    return lambda: (plan.train(address), slot)


def best_seconds(calls: list[Callable[[], object]], seconds: float) -> list[float]:
    """The least process time of one call of each, in turns."""
    best, end = [float("inf")] * len(calls), time.perf_counter() + seconds
    while time.perf_counter() < end or max(best) == float("inf"):
        for at, call in enumerate(calls):
            start = time.process_time()
            for _ in range(CALLS):
                call()
            best[at] = min(best[at], (time.process_time() - start) / CALLS)
    return best


def figures(seconds: float) -> Iterator[dict[str, Any]]:
    schemas = [Schema.from_columns(COLUMNS, LOSS, tables) for tables in (TRANSFORMS, {})]
    for rows in ROWS:
        mine, without = best_seconds([step(schema, rows) for schema in schemas], seconds / len(ROWS))
        yield {
            "bench": f"step of {rows} flights, {len(TRANSFORMS)} transforms with state / without",
            "ours": round(rows / mine), "rival": round(rows / without), "ratio": round(without / mine, 2),
            "bar": BAR if rows == 256 else None, "ns_a_row": round(1e9 * mine / rows, 1), "unit": "rows/s",
        }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=9.0, help="in all")
    for each in figures(parser.parse_args().seconds):
        print(json.dumps(each), flush=True)


if __name__ == "__main__":
    main()
