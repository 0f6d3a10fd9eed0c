"""The cost of transforms on the flights' columns: records decoded with and without 20 of them, and a training step with
and without six that have a state. `average` has the cost of a state at a round's end."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from slots import RowSlot, set_rows

from streamtrain.columns.formats import encode_records, encode_rows
from streamtrain.columns.schema import Schema
from streamtrain.demo.flights import FEATURES, load_flights
from tests.bench.decode import decoder
from tests.bench.harness import Line, Run, Sides, bench, best_times, rates
from tests.bench.steps import planned

ROWS, PACKED_ROWS = 1024, 256
COLUMNS: dict[str, Any] = {
    "dep_delay": {"standardize": True, "missing": 0},
    "{distance,hour,month,day,weekday}": {"standardize": True},
    "carrier": {"kind": "category", "buckets": 64, "embed": 8},
    "{origin,dest}": {"kind": "category", "buckets": 256, "embed": 8},
    "sched": {"role": "event_time"},
    "late": {"role": "label", "missing": "skip"},
}
TRANSFORMS: dict[str, Any] = {
    "log_distance": {"log1p": "distance"},
    "early": {"clip": "dep_delay", "high": 0},
    "delay": {"clip": "dep_delay", "low": -30, "high": 180},
    "hours_late": {"scale": "dep_delay", "by": 1 / 60},
    "root_distance": {"power": "distance", "exponent": 0.5},
    "square": {"power": "hour", "exponent": 2},
    "pace": {"expr": "dep_delay / (distance + 100)"},
    "night": {"expr": "hour < 6 or hour >= 22"},
    "was_cancelled": {"is_missing": "dep_delay"},
    "delay_bin": {"bins": "dep_delay", "edges": [-10, 0, 5, 15, 30, 60, 120], "embed": 2},
    "far": {"bins": "distance", "edges": [500, 1000, 2000], "kind": "number"},
    "weekend": {"expr": "weekday >= 5"},
    "route": {"cross": ["origin", "dest"], "buckets": 65536, "embed": 4},
    "route_carrier": {"cross": ["origin", "dest", "carrier"], "buckets": 65536, "embed": 4},
    "carrier_again": {"hash": "carrier", "buckets": 128, "embed": 2},
    "small": {"lower": "carrier", "buckets": 64, "embed": 2},
    "from_jfk": {"expr": "origin == 'JFK'"},
    "origin_is": {"one_hot": "origin", "values": ["JFK", "LGA", "EWR"]},
    "clock": {"time": "sched", "parts": ["hour", "weekday"], "cyclic": True, "zone": "America/New_York"},
    "month_again": {"rename": "month"},
}
STATEFUL: dict[str, Any] = {
    "carrier_rate": {"target_mean": "carrier"},
    "dest_often": {"count": "dest"},
    "dest_usual": {"rare_to_other": "dest", "embed": 2},
    "delay_bin": {"quantile_bins": "dep_delay", "bins": 16, "embed": 2},
    "delay_robust": {"robust_scale": "dep_delay"},
    "far": {"min_max": "distance"},
}
LAYERS = [{"dense": 64, "activation": "relu"}, {"dense": 32, "activation": "relu"}]
WHERE = "distance > 200 and carrier != 'HA'"
LOSS = "binary_cross_entropy"


@functools.cache
def flights(count: int) -> list[dict[str, Any]]:
    """The demo's first flights that have arrived."""
    columns = load_flights(2 * count).columns
    arrived = np.flatnonzero(~np.isnan(columns["late"]))[:count]
    names = (*FEATURES, "sched", "late")
    cells = (columns[name][arrived] for name in names)
    plain = (each.astype(int).tolist() if each.dtype.kind == "f" else each.tolist() for each in cells)
    return [dict(zip(names, row, strict=True)) for row in zip(*plain, strict=True)]


def decoded(form: str, transforms: dict[str, Any], where: str | None = None) -> Callable[[], int]:
    """Decodes all flights' records into one slot."""
    schema, rows = Schema.from_columns(COLUMNS, LOSS, transforms, where), flights(ROWS)
    if form == "packed":
        plain = Schema.from_columns(COLUMNS, LOSS, TRANSFORMS)  # texts, which transforms read
        records = [encode_rows(form, plain, rows[at : at + PACKED_ROWS]) for at in range(0, ROWS, PACKED_ROWS)]
    else:
        records = [record for row in rows for record in encode_records(form, schema, [row])]
    return decoder(form, schema, records, ROWS, ROWS)


@bench(
    "transforms",
    [
        Line("json, flights with 20 transforms", "json with", "json without", 0.6),
        Line("msgpack, flights with 20 transforms", "msgpack with", "msgpack without"),
        Line("packed, flights with 20 transforms", "packed with", "packed without"),
        Line("json, flights with a condition", "json where", "json without"),
    ],
    rates(), "rows/s", seconds=14.0,
)  # fmt: skip
def transforms(run: Run) -> Sides:
    """Flights decoded with 20 transforms, and with a condition, against the same without."""
    sides: dict[str, Any] = {"json where": decoded("json", {}, WHERE)}
    for form in ("json", "msgpack", "packed"):
        sides |= {f"{form} with": decoded(form, TRANSFORMS), f"{form} without": decoded(form, {})}
    return sides


def step(rows: int, transforms: dict[str, Any]) -> tuple[Callable[[], object], float]:
    """A step on so many flights, decoded as a job's."""
    schema = Schema.from_columns(COLUMNS, LOSS, transforms)
    slot = RowSlot(schema, rows)
    assert [count for count, _ in slot.batches(flights(rows))] == [rows]
    set_rows(slot.slot, rows)
    spec = {"input": schema.engine_inputs(), "layers": LAYERS, "loss": LOSS, "optimizer": {"name": "adam"}}
    return planned(spec, slot.layout, slot.slot, number=1), rows


@bench(
    "stateful",
    {
        (rows,): [Line(f"a step of {rows} flights, 6 transforms with state", "with", "without", bar)]
        for rows, bar in ((32, None), (256, 0.8), (1024, None))
    },
    best_times(time.process_time, repeat=20), "rows/s", seconds=9.0,
)  # fmt: skip
def stateful(run: Run, rows: int) -> Sides:
    """A training step with six transforms that have a state, against the same without; process time."""
    return {"with": step(rows, STATEFUL), "without": step(rows, {})}
