"""Buffers that are never needed at the same time lie in the same place."""

from __future__ import annotations

from typing import Any

import pytest
from looped import over

from streamtrain.compute import workspace
from streamtrain.compute.backends.cpu import TILE_ROWS
from streamtrain.compute.builder import TRAINING
from streamtrain.compute.fusion import MOST
from streamtrain.compute.model import Model
from streamtrain.compute.spec import Call, Outside, Ref
from tests.compute.conftest import spec_of
from tests.compute.shapes import GELU

PREDICT = "predict"   # its output is read behind its last call


def work(name: str, *shape: int) -> Ref:
    return Ref("work", name, "f32", shape or (4,))


def scaled(to: Ref, given: Ref) -> Call:
    return Call("affine", "", (4, 1.0, 0.0, to, given))


def deep(width: int, layers: int, numbers: int, categories: int, embed: int = 0) -> dict[str, Any]:
    given = spec_of(layers=[{"dense": width, "activation": "tanh"}] * layers, categories=categories, numbers=numbers,
                    standardize=True)  # fmt: skip
    for table in given["input"]["categories"]:
        table["embed"] = embed or table["embed"]
    return given


LONG_CHAIN = [{"name": "a", **GELU, "of": "input"}, *(
    {"name": f"m{at}", "multiply": [f"m{at - 1}" if at else "a", "a"]} for at in range(60)
)]  # fmt: skip


@over(("given", "rows", "phases", "passes", "share"), [
    # the gradients of the tables, and of layers that are done, lie in one place
    (deep(64, 3, 13, 26), 4_096, TRAINING, ["overlays"], 1 / 2),
    # of a whole batch only the gradient of the tables is there
    (deep(256, 3, 13, 26, embed=8), 65_536, TRAINING, ["overlays", "tiles", "fuses"], 1 / 10),
    (deep(64, 4, 64, 1), 65_536, TRAINING, ["overlays", "tiles"], 1 / 10),
    # what a chain works on is needed at the same time
    (spec_of(graph=LONG_CHAIN), 2 * TILE_ROWS + 77, ("predict",), ["fuses"], MOST / 2),
])  # fmt: skip
def test_with_passes_it_takes_less(
    rig: Any, monkeypatch: pytest.MonkeyPatch, given: Any, rows: int, phases: Any, passes: list[str], share: float
) -> None:
    """The share of the memory that each buffer in a place of its own, over all rows, would take."""
    rigged, sizes = rig(given, rows=1, capacity=rows), []
    with monkeypatch.context() as patch:
        for on in (True, False):
            for name in passes:
                patch.setattr(Model, name, on)
            sizes.append(rigged.model.program(rigged.layout, phases).workspace_bytes)
    assert sizes[0] < share * sizes[1], sizes


def test_what_is_read_before_it_is_written_is_kept() -> None:
    x, a, b, c, y = (work(name) for name in ("x", "a", "b", "c", "y"))
    calls = [scaled(a, x), scaled(b, a), scaled(c, b), scaled(y, c)]
    live = workspace.lives({"train": calls, PREDICT: calls[:2]}, b)
    both = {name: {"train": (at, at + 1), PREDICT: (at, at + 1)} for at, name in enumerate("ab")}
    assert live == {"x": None, **both, "c": {"train": (2, 3)}, "y": {"train": (3, 3)}}
    places, end = workspace.place(dict.fromkeys("xabcy", 16), live, 64)
    assert len({places["x"], places["a"], places["b"]}) == 3 and end == 64 + 3 * 64
    assert places["a"] == places["c"] and places["y"] in (places["a"], places["b"]) and min(places.values()) == 64


def test_an_output_is_there_behind_the_last_call() -> None:
    x, y, z = (work(name) for name in ("x", "y", "z"))
    live = workspace.lives({PREDICT: [scaled(y, x), scaled(z, x)]}, y)
    places, _ = workspace.place(dict.fromkeys("xyz", 16), live, 0)
    assert len(set(places.values())) == 3


def test_what_others_know_the_address_of_is_kept() -> None:
    x, a, b = (work(name) for name in ("x", "a", "b"))
    calls = [scaled(a, x), Outside(lambda *arrays: lambda rows, slot: None, (a,)), scaled(b, a)]
    assert workspace.lives({"train": calls}, b)["a"] is None
    assert workspace.place({"a": 8, "unused": 1 << 30}, {"a": None}, 0) == ({"a": 0}, 64)
