"""Ragged blocks and blocks of bytes: a kind and a format that only tests have, through decoders and slots."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from example_format import plain_formats
from packed_wire import Cells, packed

from streamtrain import _native
from streamtrain.columns.schema import Schema
from tests.columns.sanitized import USUAL, drivers, needs_compiler
from tests.oracles.records import encode_rows

SCHEMA = Schema.from_columns(
    {"x": {}, "note": {"kind": "category", "buckets": 9}, "y": {"role": "label"}}, "mean_squared_error"
)
ROWS = [{"x": x, "note": "abcdefghijklmnopqrstuvwxyz"[: x % 11]} for x in range(40)]
ROWS[17] = {"x": 17, "note": "z" * 30}  # more than a slot of four rows and five values has room for
ROWS[23] = {"x": 23}

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def driver(kept_build: Callable[..., Path]) -> Path:
    return drivers(kept_build, USUAL) / "ragged_driver"


def encoded(format_name: str, rows: Sequence[dict[str, Any]]) -> bytes:
    if format_name == "lines":
        return b"# x|note\n" + b"".join(f"{row['x']}|{row.get('note', '')}\n".encode() for row in rows)
    if format_name == "csv":  # in the order of the driver's columns
        return b"".join(f"{row['x']},{row.get('note', '')}\n".encode() for row in rows)
    if format_name == "packed":  # a category's would be hashes
        notes, none = [row.get("note", "") for row in rows], [False] * len(rows)
        return packed({"x": Cells("f4", [row["x"] for row in rows], none), "note": Cells("text", notes, none)})
    return encode_rows(format_name, SCHEMA, rows)


@pytest.mark.full  # a minute of compiling
@pytest.mark.parametrize("resumes", [False, True], ids=["on", "resumed"])
@pytest.mark.parametrize("name", [*plain_formats(SCHEMA), "lines"])
def test_rows_fill_slots_until_a_block_is_full(driver: Path, tmp_path: Path, name: str, resumes: bool) -> None:
    files = []
    for number, rows in enumerate((ROWS[:15], ROWS[15:16], ROWS[16:])):
        files.append(tmp_path / str(number))
        files[-1].write_bytes(encoded(name, rows))
    separator = "|" if name == "lines" else ""
    done = subprocess.run(
        [str(driver), name, "4", "5", str(int(resumes)), separator, *map(str, files)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    slots: list[list[str]] = [[]]
    for row in ROWS[:17] + ROWS[18:]:
        text = f"{row['x']}:{row.get('note', '')}"
        used = sum(len(each.split(":")[1]) for each in slots[-1])
        if len(slots[-1]) == 4 or used + len(str(row.get("note", ""))) > 20:
            slots.append([])
        slots[-1].append(text)
    lines = done.stdout.splitlines()
    dead = [line for line in lines if line.startswith("$")]
    assert len(dead) == 1 and dead[0].endswith("expected at most 20 values in a row, got more")
    assert [line.split() for line in lines if not line.startswith("$") and line.strip()] == slots


def test_an_arena_keeps_the_layout_of_every_kind_of_block() -> None:
    specs = [("bytes", "u8", 7), ("ragged", "i32", 3, True), ("pixels", "u8", 5, True), ("numbers", "f32", 2)]
    slots = _native.SlotLayout.make(9, 4, specs)
    found = [(each.name, each.dtype, each.width, each.ragged) for each in slots.blocks]
    assert found == [(*spec, False)[:4] for spec in specs]
    at = sorted(offset for each in slots.blocks for offset in (each.offset, each.values) if offset)
    assert all(offset % 64 == 0 for offset in at) and len(at) == len(set(at)) == 6
    ragged = slots.blocks[1]
    assert ragged.values - ragged.offset >= 10 * 4 and slots.blocks[2].offset - ragged.values >= 9 * 3 * 4
    arena = _native.Arena.create(
        workers=1, averaging_frequency=1, slot_count=2, slot_layout=slots,
        state_layout=_native.StateLayout.make([]),
    )  # fmt: skip
    other = _native.Arena.attach(arena.descriptor).slot_layout
    assert [(each.offset, each.values, each.ragged) for each in other.blocks] == [
        (each.offset, each.values, each.ragged) for each in slots.blocks
    ]


@pytest.mark.full
@pytest.mark.parametrize("resumes", [False, True], ids=["on", "resumed"])
def test_a_row_that_waits_is_not_passed_by_one_that_a_missing_cell_ends(
    driver: Path, tmp_path: Path, resumes: bool
) -> None:
    """Packed rows without missing cells go together: two rows a slot, and the fourth is dead."""
    missing = [row == 3 for row in range(10)]
    columns = {"x": Cells("f4", list(range(10)), missing), "note": Cells("text", ["abcdefgh"] * 10, [False] * 10)}
    (tmp_path / "record").write_bytes(packed(columns))
    command = [str(driver), "packed", "4", "5", str(int(resumes)), "", str(tmp_path / "record")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    assert [line.split(":")[0] for line in lines if line.startswith("$")] == ["$.x[3]"]
    trained = [int(row.split(":")[0]) for line in lines if not line.startswith("$") for row in line.split()]
    assert trained == [0, 1, 2, 4, 5, 6, 7, 8, 9]
