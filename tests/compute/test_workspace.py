"""Buffers that are never needed at the same time lie in the same place, and no bit knows."""

from __future__ import annotations

from typing import Any

import pytest

from streamtrain.compute import workspace
from streamtrain.compute.model import Model
from streamtrain.compute.spec import Call, Outside, Ref
from tests.compute.shapes import each_shape

PREDICT = "predict"   # its output is read behind its last call


def work(name: str, *shape: int) -> Ref:
    return Ref("work", name, "f32", shape or (4,))


def scaled(to: Ref, given: Ref) -> Call:
    return Call("affine", "", (4, 1.0, 0.0, to, given))


@each_shape
def test_no_bit_depends_on_where_buffers_lie(
    rig: Any, spec: Any, shape: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    bits, sizes = set(), []
    for overlays in (True, False):
        monkeypatch.setattr(Model, "overlays", overlays)
        rigged = rig(spec(**shape))
        bits.add(rigged.outcome())
        sizes.append(rigged.model.program(rigged.layout).workspace_bytes)
    assert len(bits) == 1 and sizes[0] <= sizes[1]


def test_a_deep_network_of_large_batches_takes_less(rig: Any, spec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """26 categories, 3 layers: the gradients of the tables, and of layers that are done, lie in one place."""
    told = spec(layers=[{"dense": 64, "activation": "tanh"}] * 3, categories=26, numbers=13, standardize=True)
    sizes = []
    for overlays in (True, False):
        monkeypatch.setattr(Model, "overlays", overlays)
        rigged = rig(told, rows=4_000, capacity=4_096)
        sizes.append(rigged.model.program(rigged.layout).workspace_bytes)
    assert sizes[0] < sizes[1] / 2, sizes


def test_a_tenth_of_a_buffer_for_each_name(rig: Any, spec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """26 categories, 3 layers, batches of 65,536 rows: of a whole batch only the gradient of the tables is there."""
    told = spec(layers=[{"dense": 256, "activation": "tanh"}] * 3, categories=26, numbers=13, standardize=True)
    for table in told["input"]["categories"]:
        table["embed"] = 8
    rigged = rig(told, rows=1, capacity=65_536)
    sizes = []
    for passes in (True, False):
        for name in ("overlays", "tiles", "fuses"):
            monkeypatch.setattr(Model, name, passes)
        sizes.append(rigged.model.program(rigged.layout).workspace_bytes)
    assert sizes[0] <= sizes[1] / 10 and sizes[1] > 800e6, sizes


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
