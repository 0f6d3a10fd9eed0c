"""Elementwise calls behind each other are one launch: which are, and that it changes no bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streamtrain.compute import workspace
from streamtrain.compute.backends.cpu import TILE_ROWS
from streamtrain.compute.explain import explained
from streamtrain.compute.fusion import MOST, fused, is_elementwise
from streamtrain.compute.model import Model
from streamtrain.compute.spec import Call, Chain, Outside, PerRow, Ref, Tiled, flat, launches
from tests.compute.shapes import RESIDUAL

CAPACITY = 2 * TILE_ROWS + 77
ROWS = PerRow(1000)


def work(name: str, columns: int = 1, start: int = 0, dtype: str = "f32") -> Ref:
    return Ref("work", name, dtype, (ROWS, columns), start)


def scaled(y: Ref, x: Ref, columns: int = 1) -> Call:
    return Call("affine", "", (ROWS * columns, 2.0, 0.5, y, x))


def test_what_follows_each_other_is_one_launch(rig: Any, spec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rigged = rig(spec(graph=RESIDUAL), capacity=CAPACITY)
    steps = rigged.model.program(rigged.layout).phases["train"]
    chains = [[call.op for call in each.calls] for each in launches(steps) if isinstance(each, Chain)]
    assert ["gelu_forward", "add_forward", "affine"] in chains
    assert ["dropout", "multiply_forward", "add_forward", "affine"] in chains
    assert sum(1 for _ in launches(steps)) == sum(1 for _ in flat(steps)) - sum(len(chain) - 1 for chain in chains)
    monkeypatch.setattr(Model, "fuses", False)
    assert not any(isinstance(each, Chain) for each in launches(rigged.model.program(rigged.layout).phases["train"]))


def test_explain_tells_what_the_passes_made(rig: Any, spec: Any) -> None:
    rigged = rig(spec(graph=RESIDUAL), capacity=CAPACITY)
    program = rigged.model.program(rigged.layout)
    steps, told = program.phases["train"], explained(rigged.model, program)["phases"]["train"]
    assert told["launches"] == sum(1 for _ in launches(steps)) < told["calls"] == sum(told["ops"].values())
    assert 0 < told["by_tiles"] < told["calls"]
    one = Chain((scaled(work("b", 3), work("a", 3), 3),))
    alone = replace(program, phases={"train": (one,)})
    found = explained(rigged.model, alone)["phases"]["train"]
    assert (found["bytes_per_row"], found["launches"], found["by_tiles"]) == (2 * 3 * 4, 1, 0)


def test_what_is_not_elementwise_ends_a_chain() -> None:
    """So does another number of elements, and a buffer whose elements another call counts from elsewhere."""
    a, b, c = (work(name) for name in "abc")
    chain = [scaled(b, a), scaled(c, b)]
    rows = Call("copy_columns", "", (ROWS, 1, 1, 0, 1, 0, c, a))
    assert fused([*chain, rows, *chain]) == (Chain(tuple(chain)), rows, Chain(tuple(chain)))
    wide = scaled(work("d", 2), work("e", 2), 2)
    assert fused([*chain, wide]) == (Chain(tuple(chain)), wide)
    behind = scaled(work("d"), work("c", start=1))
    assert fused([*chain, behind]) == (Chain(tuple(chain)), behind)
    itself = scaled(work("c", start=1), c)
    assert fused([scaled(b, a), itself, itself]) == (scaled(b, a), itself, itself)
    outside = Outside(lambda *_: lambda *_: None, (c,))
    assert fused([*chain, outside]) == (Chain(tuple(chain)), outside)
    assert fused([Tiled((*chain, rows))]) == (Tiled((Chain(tuple(chain)), rows)),)


def test_a_chain_has_an_end() -> None:
    """No CUDA kernel has so many arguments, and all that it works on is needed at the same time: test_workspace.py."""
    calls = [scaled(work(f"b{at + 1}"), work(f"b{at}")) for at in range(100)]
    lengths = [len(each.calls) for each in fused(calls) if isinstance(each, Chain)]
    assert set(lengths[:-1]) == {MOST} and sum(lengths) == 100


def test_one_that_is_for_no_rows_is_not_elementwise() -> None:
    """Nor one that writes what another element is made of."""
    a, b = work("a"), work("b")
    assert is_elementwise(scaled(b, a)) and not is_elementwise(Call("affine", "", (1000, 2.0, 0.5, b, a)))
    assert not is_elementwise(Call("gradient_squares", "", (ROWS, 1, 1, a, a, b)))


def test_what_a_chain_needs_lies_in_no_two_places() -> None:
    """Its strips are done one after the other: what its first call reads is needed by the last."""
    x, a, b, c = (work(name) for name in "xabc")
    tile = Tiled((Call("copy_columns", "", (ROWS, 1, 1, 0, 1, 0, c, x)), scaled(a, x), scaled(b, a), scaled(c, b)))
    sizes, local = dict.fromkeys("xabc", 4000), frozenset("xab")   # of one tile
    for steps, count in ((fused([tile]), 4), ((tile,), 3)):
        live = workspace.lives({"train": steps}, work("another"), local)
        assert len(set(workspace.place(sizes, live, 0)[0].values())) == count
        assert len(set(workspace.own({"train": steps}, local, sizes)[0].values())) == count - 1
