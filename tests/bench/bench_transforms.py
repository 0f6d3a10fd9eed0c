"""What transforms cost: records of flights decoded with 20 of them, against the same without; and where a condition
leaves rows out.

Prints one JSON line per figure. CPU time of the one thread, so that a busy machine tells the same.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

import numpy as np
from bench_decode import rows_per_second
from slots import RowSlot

from streamtrain import _native
from streamtrain.columns.formats import encode_records, encode_rows
from streamtrain.columns.schema import Schema

FIGURES = 4  # lines of a whole run
SMOKE = ["--seconds", "1"]
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
WHERE = "distance > 200 and carrier != 'HA'"
LOSS = "binary_cross_entropy"


def flights(count: int) -> list[dict[str, Any]]:
    """As the demo's records are."""
    chance = np.random.default_rng(1)
    carriers = ["UA", "B6", "EV", "DL", "AA", "MQ", "US", "9E", "WN", "VX", "FL", "AS", "F9", "YV", "HA", "OO"]
    places = [a + b + c for a in "ABLO" for b in "TORS" for c in "LDAX"]
    return [
        {
            "dep_delay": int(chance.exponential(30)) - 15, "distance": int(chance.integers(80, 4983)),
            "hour": int(chance.integers(5, 24)), "month": int(chance.integers(1, 13)),
            "day": int(chance.integers(1, 29)), "weekday": int(chance.integers(0, 7)),
            "carrier": carriers[int(chance.integers(0, 16))], "origin": ("JFK", "LGA", "EWR")[i % 3],
            "dest": places[int(chance.integers(0, 64))], "sched": 1_357_000_000_000 + i * 94_000, "late": i % 2,
        }
        for i in range(count)
    ]  # fmt: skip


def decoder(form: str, schema: Schema, rows: list[dict[str, Any]]) -> Callable[[], int]:
    """Decodes all records into one slot, as ingest does."""
    if form == "packed":
        plain = Schema.from_columns(COLUMNS, LOSS, TRANSFORMS)  # texts, which transforms read
        records = [encode_rows(form, plain, rows[at : at + PACKED_ROWS]) for at in range(0, len(rows), PACKED_ROWS)]
    else:
        records = [record for row in rows for record in encode_records(form, schema, [row])]
    filler = _native.BatchFiller(form, RowSlot(schema, len(rows)).plan)

    def call() -> int:
        tally = filler.count(records)
        assert tally.trained + tally.filtered == len(rows) and not tally.dead
        return len(rows)

    return call


def figures(seconds: float) -> Iterator[dict[str, Any]]:
    rows = flights(ROWS)
    without, with_all, chosen = (
        Schema.from_columns(COLUMNS, LOSS, tables, where)
        for tables, where in (({}, None), (TRANSFORMS, None), ({}, WHERE))
    )
    forms = ("json", "msgpack", "packed")
    calls = {(form, "without"): decoder(form, without, rows) for form in forms}
    calls |= {(form, "with"): decoder(form, with_all, rows) for form in forms}
    calls["json", "where"] = decoder("json", chosen, rows)
    rates = {name: rows_per_second(call, seconds / len(calls)) for name, call in calls.items()}
    for form in forms:
        bar = 0.6 if form == "json" else None
        name = f"{form}, flights with {len(TRANSFORMS)} transforms / without"
        yield figure(name, rates[form, "with"], rates[form, "without"], bar)
    yield figure("json, flights with a condition / without", rates["json", "where"], rates["json", "without"], None)


def figure(bench: str, mine: float, rival: float, bar: float | None) -> dict[str, Any]:
    return {
        "bench": bench, "ours": round(mine), "rival": round(rival), "ratio": round(mine / rival, 2), "bar": bar,
        "ns_a_row": round(1e9 / mine, 1), "unit": "rows/s",
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=14.0, help="in all")
    for each in figures(parser.parse_args().seconds):
        print(json.dumps(each), flush=True)


if __name__ == "__main__":
    main()
