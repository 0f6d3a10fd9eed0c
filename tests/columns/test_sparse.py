"""Pairs of an index or a name and a number, and the texts that hold them: libsvm, and VW with VW's own indexes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_format import needs_no_option
from long_tables import in_full_all
from looped import over
from slots import RowSlot

from streamtrain import _native
from streamtrain.columns.formats import Format, format_names, mistakes, record_format
from streamtrain.columns.kinds.bags import block_name
from streamtrain.columns.kinds.category import hash_seed
from streamtrain.columns.records import Records
from streamtrain.columns.schema import Schema
from streamtrain.errors import UserMistake
from streamtrain.files.format_lines import is_records
from tests.columns.conftest import each_way, spoiled

DATA = Path(__file__).parents[3] / "shared/data/rcv1"
SPARSE: dict[str, Any] = {"kind": "sparse", "buckets": 64, "most": 4}
WIDE = Schema.from_columns(
    {"wide": {**SPARSE, "missing": 0}, "late": {"role": "label", "missing": 1}, "w": {"role": "weight", "missing": 1}},
    "binary_cross_entropy",
)
NAMED = Schema.from_columns(
    {"wide": {**SPARSE, "cut": True}, "late": {"role": "label", "classes": ["-1", "1"]}}, "binary_cross_entropy"
)
LINES = [name for name in format_names() if needs_no_option(name) and is_records(name)]


def entries(slot: RowSlot, rows: int) -> list[list[tuple[int, float]]]:
    index, scale = (slot.views[block_name("wide", part)][:rows] for part in ("list", "scale"))
    return [list(zip(i.tolist(), v.tolist(), strict=True)) for i, v in zip(index, scale, strict=True)]


def bucket(name: str) -> int:
    return _native.murmur3(name.encode(), hash_seed("wide")) % 64


@over(
    ("cell", "expected"),
    [
        ([[1, 2.5], [63, -1]], [(1, 2.5), (63, -1.0)]),
        ([["12", 0.5], ["a", 1], [1, True]], [(12, 0.5), (bucket("a"), 1.0), (1, 1.0)]),
        ({"12": 0.5, "name": 2}, [(12, 0.5), (bucket("name"), 2.0)]),
        ([], []),
        ({}, []),
        ([[3, 1], [3, 1]], [(3, 1.0), (3, 1.0)]),
    ],
)
def test_pairs_and_maps(cell: Any, expected: list[tuple[int, float]]) -> None:
    for way, slot, rows, _ in each_way(WIDE, {"wide": cell, "late": 1}, ["json", "msgpack"]):
        assert entries(slot, rows) == [expected], way


def same_of(form: str, same: Any, record: bytes) -> None:
    format_name: Format = {"name": form, "bits": 6} if form == "vw" else form
    for schema in (WIDE, NAMED, WIDE.for_requests()):
        for capacity in (1, 64):
            same(schema, format_name, record, capacity)


@in_full_all()
@over("form", LINES)
def test_native_and_slow_agree_cut_and_mutated(same: Any, form: str, take: Any) -> None:
    for record in record_format(form).EXAMPLES:
        same_of(form, same, record)
        for worse in spoiled(record, take, 150, b" |:'\n\t.1e-#"):
            same_of(form, same, worse)


@over("form", LINES)
def test_rows_are_written_and_read_again(form: str) -> None:
    columns = {"wide": {**SPARSE, "buckets": 1 << 18}, "late": {"role": "label"}}
    schema = Schema.from_columns(columns, "binary_cross_entropy")
    rows = [{"wide": [[3, 0.5], [99, -2.0]], "late": 1}, {"wide": [], "late": 0}, {"wide": {"7": 1e-3}, "late": 1}]
    expected = [[(3, 0.5), (99, -2.0)], [], [(7, float(np.float32(1e-3)))]]
    ((made,),) = Records(schema, form, "rows", 9, 1 << 20).blocks(rows, None, False)
    for record in (made.value, record_format(form).encode_rows(schema, rows)):
        slot = RowSlot(schema, 4, form)
        ((count, _),) = list(slot.record(record))
        assert count == 3 and entries(slot, 3) == expected
        assert slot.views["label"][:3, 0].tolist() == [1, 0, 1]
    with pytest.raises(UserMistake):
        list(Records(schema, form, "rows", 9, 1 << 20).blocks([{"wide": [["a b", 1]], "late": 1}], None, False))


def vw_lines() -> list[str]:
    chance = random.Random(1)
    made = ["1 |f 9:6.27e-02 14:0.5 words more:2", "-1 2.5 'tag|a:2 x:3 y |b z:.5 7 |c", "0 tag| p 3:1 :2 :3"]
    made.append(" |ab 0012 +5")
    for _ in range(300):
        line = chance.choice(["1 ", "-1 ", "0.5 2 "])
        for _ in range(chance.randint(1, 3)):
            line += "|" + chance.choice(["", "f", "12", "long_name é", "x:0.5"])
            for _ in range(chance.randint(0, 5)):
                name = chance.choice(["a", "7", "0", "abc", "é日本", "x^y", "00", "12345678901", "q.r-s"])
                line += " " + name + chance.choice(["", ":1", ":0.25", ":-3e-2", ":.5", ":0"])
            line += " "
        made.append(line)
    return made


@pytest.mark.full
def test_indexes_are_those_of_vw() -> None:
    """Feature by feature, and the rcv1 data as `vw --invert_hash` lists it."""
    vowpal = pytest.importorskip("vowpalwabbit")
    columns = {"wide": {**SPARSE, "buckets": 1 << 18, "most": 99}, "late": {"role": "label", "missing": 0}}
    schema = Schema.from_columns(columns, "mean_squared_error")
    workspace = vowpal.Workspace("--quiet -b 18 --noconstant")
    for line in vw_lines():
        slot = RowSlot(schema, 1, "vw")
        ((rows, _),) = list(slot.record(line.encode()))
        assert rows == 1, line
        parsed = workspace.parse(line)
        example = parsed[0] if isinstance(parsed, list) else parsed
        workspace.setup_example(example)
        theirs = sorted((at // 4 & 0x3FFFF, round(value, 6)) for at, value in example.iter_features())
        assert sorted((at, round(value, 6)) for at, value in entries(slot, 1)[0]) == theirs, line
        workspace.finish_example(example)
    workspace.finish()


@pytest.mark.full
def test_rcv1_has_the_indexes_that_invert_hash_shows(tmp_path: Path) -> None:
    vowpal = pytest.importorskip("vowpalwabbit")
    if not DATA.exists():
        pytest.skip("no data set rcv1")
    schema = Schema.from_columns(
        {"wide": {**SPARSE, "buckets": 1 << 18, "most": 4096}, "late": {"role": "label", "classes": ["-1", "1"]}},
        "binary_cross_entropy",
    )
    data = (DATA / "rcv1_small.dat").read_bytes()
    slot, ours = RowSlot(schema, 1000, "vw"), set()
    for rows, tally in slot.record(data):
        assert tally.dead == 0
        ours |= {index for row in entries(slot, rows) for index, _ in row}
    inverted = tmp_path / "inverted"
    workspace = vowpal.Workspace(f"--quiet -b 18 --noconstant --invert_hash {inverted}")
    for line in data.decode().splitlines():
        workspace.learn(line)
    workspace.finish()
    shown = [line.split(":") for line in inverted.read_text().splitlines() if line.startswith("f^")]
    assert len(shown) > 9_000 and {int(index) for _, index, *_ in shown} <= ours


def test_what_lines_cannot_give_is_a_mistake() -> None:
    schema = Schema.from_columns({"x": {}, "wide": SPARSE, "late": {"role": "label"}}, "binary_cross_entropy")
    for form in LINES:
        assert "x" in dict(mistakes(form, schema))
    alone = Schema.from_columns({"wide": SPARSE, "late": {"role": "label"}}, "binary_cross_entropy")
    assert dict(mistakes("vw", alone))["wide"].startswith("buckets: expected 262,144 or more")
    assert not list(mistakes({"name": "vw", "bits": 6}, alone))
