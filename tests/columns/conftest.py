"""Schemas the decoder tests share, and the one comparison: native against the slow reference."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from example_format import row_formats
from hypothesis import HealthCheck, settings
from long_tables import examples
from looped import over
from slots import RowSlot, Tally

from streamtrain import _native
from streamtrain.columns.formats import Format
from streamtrain.columns.record_encoding import Records
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from tests.columns import reference


def pytest_configure() -> None:
    settings.register_profile(
        "decoders", derandomize=True, deadline=None, max_examples=examples(150), report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    settings.load_profile("decoders")


LARGE = "expected a number from -1e18 to 1e18, whose square fits float32"
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


_slots: dict[tuple[int, str, int], RowSlot] = {}  # each keeps its schema, so that no other gets its id


def decoded(
    schema: Schema, format_name: Format, row_capacity: int, record: bytes, from_row: int = 0,
    around: reference.Around | None = None,
) -> tuple[dict[str, np.ndarray], Tally, list[int]]:  # fmt: skip
    """Blocks, tally, and the native decoder's row after each slot; one decoder for many records, as in the product."""
    if len(_slots) > 500:  # of schemas at random
        _slots.clear()
    key = id(schema), str(format_name), row_capacity
    if key not in _slots:
        _slots[key] = RowSlot(schema, row_capacity, format_name)
    slot, tally, parts, stops = _slots[key], Tally(), [], []
    slot.slot[:] = 0xEE
    native = None if around is None else _native.RecordAround(**asdict(around))
    for rows, batch_tally in slot.record(record, from_row, native):
        assert all(each == row_capacity for each in map(len, (part["weight"] for part in parts)))
        tally.add(batch_tally)
        parts.append({name: view[:rows].copy() for name, view in slot.views.items()})
        stops.append(slot.filler.record_rows)
        slot.slot[:] = 0xEE
    return {name: np.concatenate([part[name] for part in parts]) for name in slot.views}, tally, stops


def assert_same(
    schema: Schema, format_name: Format, record: bytes, row_capacity: int = 7, around: reference.Around | None = None
) -> reference.Reference:
    """The native decoder gives the rows, fates and paths of the slow reference, to the bit."""
    expected = reference.decode(schema, format_name, record, around)
    blocks, tally, stops = decoded(schema, format_name, row_capacity, record, 0, around)
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


def each_way(schema: Schema, row: dict[str, Any], formats: Iterable[Format]) -> Iterator[tuple[str, RowSlot, int, str]]:
    """A row as a program's and as the native encoder writes it, alone, in a list and in columns: its way, the slot, its
    rows, and why it is dead."""
    slot = RowSlot(schema, 4)
    ((rows, dict_tally),) = slot.batches([row])
    yield "dict", slot, rows, "".join(each.reason for each in dict_tally.dead_rows)
    for format_name in formats:
        for given in (row, [row], {name: [cell] for name, cell in row.items()}):
            way, slot = f"{format_name} {given}", RowSlot(schema, 4, format_name)
            try:
                ((record,),) = Records(schema, format_name, "rows", 9, 1 << 20).blocks(given, None, False)
            except UserMistake as mistake:
                yield way, slot, 0, str(mistake)
                continue
            ((rows, tally),) = slot.record(record.value)
            yield way, slot, rows, "".join(each[3] for each in tally.dead_rows)


def joined(parts: list[reference.Reference]) -> tuple[Any, ...]:
    """Returns what records one after another come to: their blocks, the rows left out and the dead ones."""
    blocks: dict[str, list[Any]] = {}
    filtered, dead, first = [], [], 0
    for part in parts:
        for name, cells in part.blocks.items():
            blocks.setdefault(name, []).extend(str([float(each) for each in cell]) for cell in cells)
        filtered += [first + row for row in part.filtered]
        dead += [first + row for row, _, _ in part.dead]
        first += part.rows
    return first, blocks, filtered, dead, max((part.newest_event_time_ms for part in parts), default=-1)


def assert_resumed(
    schema: Schema, format_name: Format, record: bytes, from_row: int, capacity: int,
    around: reference.Around | None = None,
) -> None:  # fmt: skip
    """Checks that what follows a row is decoded as in the whole record, and rows before it are ignored unreported."""
    whole, tally, stops = decoded(schema, format_name, capacity, record, 0, around)
    rest, rest_tally, _ = decoded(schema, format_name, capacity, record, from_row, around)
    dead = [row for each in tally.dead_rows for row in range(each.row_from, each.row_to) if row >= from_row]
    assert (rest_tally.dead, rest_tally.trained) == (len(dead), len(rest["weight"]))
    assert from_row < stops[-1] or rest_tally.trained == rest_tally.dead == rest_tally.filtered == 0
    for name, block in rest.items():
        tail = whole[name][len(whole[name]) - len(block) :]
        assert [row.tobytes() for row in block] == [row.tobytes() for row in tail], name


def assert_program_rows(schema: Schema, record: bytes, *shapes: Any) -> reference.Reference:
    """A program's rows, in any of these shapes, are what the reference has of the same rows as a JSON record."""
    expected = reference.decode(schema, "json", record)
    slot = RowSlot(schema, max(expected.rows, 1))
    for rows in shapes:
        ((count, tally),) = slot.batches(rows)
        dead = [row for each in tally.dead_rows for row in range(each.row_from, each.row_to)]
        found = count, tally.filtered, dead
        assert found == (expected.trained, len(expected.filtered), [row for row, *_ in expected.dead]), rows
        for name, cells in expected.blocks.items():
            view = slot.views[name]
            if schema.requests and name == "label":
                continue
            if isinstance(view, np.ndarray):
                assert view[:count].tobytes() == np.array(cells, view.dtype).reshape(view[:count].shape).tobytes(), name
                assert not view[count:].any(), "nothing of a row given up stays behind"
            else:
                assert [row.tolist() for row in view[:count]] == [list(row) for row in cells], name
    return expected


LIKELY = b'{}[]",:0\x90\x81\xff\x80\x00\x01\x02'
PLAIN = sorted(SCHEMAS.keys() - {"lists"})  # which not every format has
every_format = over("format_name", row_formats(), ids=str)
every_schema = over("schema", [SCHEMAS[name] for name in PLAIN], ids=PLAIN)


def spoiled(record: bytes, take: Callable[[Iterable[int]], list[int]], count: int, likely: bytes = b"") -> list[bytes]:
    """A record cut at every byte, and `count` times with other bytes in it: of them those that `take` takes."""
    cuts = min(len(record), 900)
    numbers = take(range(cuts + (count if record else 0)))
    return [record[:number] if number < cuts else _worse(record, number, likely or LIKELY) for number in numbers]


def _worse(record: bytes, number: int, likely: bytes) -> bytes:
    """The record with other bytes in one to four places; each number has its own."""
    chance, worse = random.Random(len(record) << 32 | number), bytearray(record)
    for _ in range(chance.randint(1, 4)):
        at, kind = chance.randrange(len(worse) or 1), chance.random()
        byte = chance.choice([chance.randrange(256), *likely])
        if kind < 0.7 and worse:
            worse[at] = byte
        elif kind < 0.85:
            worse[at:at] = bytes([byte])
        else:
            del worse[at : at + chance.randint(1, 3)]
    return bytes(worse)


@pytest.fixture
def schemas() -> dict[str, Schema]:
    return SCHEMAS


@pytest.fixture
def same() -> Callable[..., reference.Reference]:
    return assert_same
