"""Schemas the decoder tests share, and the one comparison: native against the slow reference."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import asdict

import numpy as np
import pytest
from example_format import row_formats
from hypothesis import HealthCheck, settings
from long_tables import examples
from looped import over
from slots import RowSlot, Tally

from streamtrain import _native
from streamtrain.columns.formats import Format
from streamtrain.columns.schema import Schema
from tests.columns import reference


def pytest_configure() -> None:
    settings.register_profile(
        "decoders", derandomize=True, deadline=None, max_examples=examples(150), report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    settings.load_profile("decoders")


SIMPLE = Schema.from_columns(
    {
        "x1": {},
        "x2": {},
        "carrier": {"kind": "category", "buckets": 64, "missing": ""},
        "late": {"role": "label", "missing": "skip"},
    },
    "binary_cross_entropy",
)
RICH = Schema.from_columns(
    {
        "x1": {"missing": 0.5},
        "id": {"role": "key"},
        "x2": {"missing": "skip"},
        "carrier": {"kind": "category", "buckets": 1000},
        "when": {"role": "event_time", "unit": "us", "missing": 5},
        "x3": {"standardize": True, "missing": -1},
        "origin": {"kind": "category", "buckets": 7, "missing": "none"},
        "late": {"role": "label", "classes": ["walk", "sit", "true"]},
        "w": {"role": "weight", "missing": 2.0},
    },
    "softmax_cross_entropy",
)
REGRESSION = Schema.from_columns(
    {"x{1..2}": {}, "when": {"role": "event_time", "unit": "s", "missing": 7}, "late": {"role": "label", "missing": 3}},
    "mean_squared_error",
)
NESTED = Schema.from_columns(
    {
        "x1": {"path": "user.x1"},
        "x2": {"path": "x1", "missing": "skip"},  # a key that is another column's name
        "id": {"role": "key", "path": "meta.id"},
        "carrier": {"kind": "category", "buckets": 9, "path": 'user["a.b"].carrier', "missing": "none"},
        "x3": {"path": "list[1].x3", "missing": -1},
        "origin": {"kind": "category", "buckets": 7, "path": "list[3]", "missing": ""},
        "late": {"role": "label"},
    },
    "binary_cross_entropy",
)
SCHEMAS = {
    "simple": SIMPLE,
    "rich": RICH,
    "regression": REGRESSION,
    "requests": RICH.for_requests(),
    "texts": Schema.from_columns(
        {
            "x1": {"parse": "decimal", "missing": 0.5},
            "x2": {"parse": "decimal", "missing": "skip"},
            "when": {"role": "event_time", "parse": "iso8601", "zone": "Europe/Berlin", "missing": 9},
            "late": {"role": "label", "parse": "decimal", "missing": 1},
            "w": {"role": "weight", "parse": "decimal", "missing": 2.0},
        },
        "binary_cross_entropy",
    ),
    "around": Schema.from_columns(
        {
            "x1": {},
            "at": {"from": "timestamp", "missing": 0.5},
            "tenant": {"kind": "category", "buckets": 9, "from": "headers.tenant", "missing": ""},
            "x2": {"missing": "skip"},
            "when": {"role": "event_time", "from": "headers.when", "parse": "iso8601", "missing": 3},
            "carrier": {"kind": "category", "buckets": 64, "missing": ""},
            "late": {"role": "label", "missing": 1},
            "id": {"kind": "category", "buckets": 7, "from": "key", "missing": "none"},
            "w": {"role": "weight", "from": "partition"},
        },
        "binary_cross_entropy",
    ),
    "lists": Schema.from_columns(
        {
            "x1": {"missing": 0.5},
            "other": {"kind": "category", "list": True, "buckets": 64, "most": 3, "cut": True, "missing": ""},
            "list": {"kind": "category", "list": True, "buckets": 7, "most": 4, "hash_bits": 64, "missing": "none"},
            "x2": {"kind": "vector", "size": 3, "missing": 0.25},
            "late": {"role": "label", "missing": "skip"},
        },
        "binary_cross_entropy",
    ),
    "named": Schema.from_columns(
        {
            "x1": {},
            "x2": {"missing": 1},
            "carrier": {"kind": "category", "buckets": 5, "missing": "skip"},
            "late": {"role": "label", "classes": ["0", "1"]},
        },
        "binary_cross_entropy",
    ),
}


class Native:
    """A native decoder that fills slots of `row_capacity` rows, and what came out."""

    def __init__(self, schema: Schema, format_name: Format, row_capacity: int = 7) -> None:
        self.slot = RowSlot(schema, row_capacity, format_name)
        self.row_capacity = row_capacity

    def decode(
        self, record: bytes, from_row: int = 0, around: reference.Around | None = None
    ) -> tuple[dict[str, np.ndarray], Tally, list[int]]:
        """Blocks, tally, and the decoder's row after each slot."""
        tally, parts, stops = Tally(), [], []
        self.slot.slot[:] = 0xEE
        native = None if around is None else _native.RecordAround(**asdict(around))
        for rows, told in self.slot.record(record, from_row, native):
            assert all(each == self.row_capacity for each in map(len, (part["weight"] for part in parts)))
            tally.add(told)
            parts.append({name: view[:rows].copy() for name, view in self.slot.views.items()})
            stops.append(self.slot.filler.record_rows)
            self.slot.slot[:] = 0xEE
        return {name: np.concatenate([part[name] for part in parts]) for name in self.slot.views}, tally, stops


_made: dict[tuple[int, str, int], Native] = {}  # each keeps its schema, so that no other gets its id


def made_once(schema: Schema, format_name: Format, row_capacity: int) -> Native:
    """One decoder for many records, as in the product."""
    key = id(schema), str(format_name), row_capacity
    if len(_made) > 500:  # of schemas at random
        _made.clear()
    if key not in _made:
        _made[key] = Native(schema, format_name, row_capacity)
    return _made[key]


def assert_same(
    schema: Schema, format_name: Format, record: bytes, row_capacity: int = 7, around: reference.Around | None = None
) -> reference.Reference:
    """The native decoder gives the rows, fates and paths of the slow reference, to the bit."""
    expected = reference.decode(schema, format_name, record, around)
    native = made_once(schema, format_name, row_capacity)
    blocks, tally, stops = native.decode(record, 0, around)
    assert stops[-1] == expected.rows
    assert (tally.trained, tally.dead, tally.filtered) == (
        expected.trained,
        len(expected.dead),
        len(expected.filtered),
    )
    dead = [(row, each.remainder) for each in tally.dead_rows for row in range(each.row_from, each.row_to)]
    assert dead == [(row, remainder) for row, _, remainder in expected.dead]
    paths = {row: path for row, path, _ in expected.dead}
    for each in tally.dead_rows:
        assert each.path == paths[each.row_from]
        assert each.reason
        same = [re.sub(r"\[\d+\]", "[]", paths[row]) for row in range(each.row_from, each.row_to)]
        assert len(set(same)) == 1  # a reason told once for rows whose cells stand in different columns would lie
    filtered = [row for start, end, _ in tally.filtered_rows for row in range(start, end)]
    assert filtered == expected.filtered
    skips = [column < 0 or schema.every[column][1].missing in ("skip", "skip_head")
             for _, _, column in tally.filtered_rows]  # fmt: skip
    assert all(skips)
    assert tally.newest_event_time_ms == expected.newest_event_time_ms
    for name, block in blocks.items():
        if schema.requests and name == "label":
            continue
        if block.dtype == object:  # ragged
            assert [each.tolist() for each in block] == [list(row) for row in expected.blocks[name]], name
            continue
        rows = np.array(expected.blocks[name], block.dtype).reshape(block.shape)
        if block.tobytes() != rows.tobytes():
            np.testing.assert_array_equal(block.view(np.uint32), rows.view(np.uint32), err_msg=name)
    return expected


LIKELY = b'{}[]",:0\x90\x81\xff\x80\x00\x01\x02'
PLAIN = sorted(SCHEMAS.keys() - {"lists"})  # which not every format has
every_format = over("format_name", row_formats(), ids=str)
every_schema = over("schema", [SCHEMAS[name] for name in PLAIN], ids=PLAIN)


def spoiled(record: bytes, take: Callable[[list[bytes]], list[bytes]], count: int, likely: bytes = b"") -> list[bytes]:
    """A record cut at every byte, and `count` times with other bytes in it: of them those that `take` takes."""
    chance = random.Random(len(record))
    made = [record[:size] for size in range(min(len(record), 900))]
    for _ in range(count if record else 0):
        worse = bytearray(record)
        for _ in range(chance.randint(1, 4)):
            at, kind = chance.randrange(len(worse) or 1), chance.random()
            byte = chance.choice([chance.randrange(256), *(likely or LIKELY)])
            if kind < 0.7 and worse:
                worse[at] = byte
            elif kind < 0.85:
                worse[at:at] = bytes([byte])
            else:
                del worse[at : at + chance.randint(1, 3)]
        made.append(bytes(worse))
    return take(made)


@pytest.fixture
def schemas() -> dict[str, Schema]:
    return SCHEMAS


@pytest.fixture
def native() -> type[Native]:
    return Native


@pytest.fixture
def same() -> Callable[..., reference.Reference]:
    return assert_same
