"""Passes over a program: tiles of rows, elementwise calls fused, buffers overlaid; test_same_bits.py has their bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain import _native
from streamtrain.compute import ops, workspace
from streamtrain.compute.backends.cpu import TILE_ROWS
from streamtrain.compute.builder import TRAINING, Builder
from streamtrain.compute.explain import explained
from streamtrain.compute.fusion import MOST, fused, is_elementwise
from streamtrain.compute.model import Model
from streamtrain.compute.ops.chain_sum import FIRST, LAST, NEXT
from streamtrain.compute.spec import Arg, Call, Chain, Op, Outside, PerRow, Ref, Tiled, flat, launches
from streamtrain.compute.tiling import tiled
from tests.compute.conftest import spec_of
from tests.compute.shapes import GELU, RESIDUAL
from tests.compute.test_ops import arguments

TILED = [(op, types) for op in ops.load().values() if op.tiles for types in op.types]


def rows_of(op: Op) -> str:
    """The size that goes with the rows, which is its first."""
    assert op.args[0].role == "size"
    return op.args[0].name


def part(op: Op, values: list[Any], first: int, end: int) -> list[Any]:
    """The arguments of a call for some of the rows, over the same memory."""
    name = rows_of(op)

    def its(arg: Arg, value: Any) -> Any:
        if isinstance(value, list):
            return [its(arg, one) for one in value]
        return value[first:end] if isinstance(value, np.ndarray) and arg.shape[:1] == (name,) else value

    found = []
    for arg, value in zip(op.args, values, strict=True):
        if arg.name in (name, "before"):
            found.append(end - first if arg.name == name else value + first)
        else:
            found.append(its(arg, value))
    return found


@over(("op", "types"), TILED, ids=lambda case: f"{case[0].name}-{case[1]}")
def test_rows_of_a_tile_are_those_of_the_batch(op: Op, types: str) -> None:
    """Whatever lies in the rows before and behind it, for what goes by rows; for sums, they add up to the whole."""
    for n, cut in ((300, 128), (256, 64)) if "before" in [arg.name for arg in op.args] else ((300, 128), (33, 1)):
        whole, tiles = arguments(op, types, n), arguments(op, types, n)
        _native.call_kernel(op.name, types, whole)
        sums: dict[str, Any] = {}
        for first, end in ((0, cut), (cut, n)):
            _native.call_kernel(op.name, types, part(op, tiles, first, end))
            for arg, value in zip(op.args, tiles, strict=True):
                if arg.role == "out" and op.tiles == "sum" and value is not None:
                    sums[arg.name] = sums.get(arg.name, 0) + value.astype(np.float64)
        for arg, one, other in zip(op.args, whole, tiles, strict=True):
            if arg.name in sums:
                np.testing.assert_allclose(one, sums[arg.name], rtol=1e-4, atol=1e-4)
            elif arg.role not in ("given", "scratch") and isinstance(one, np.ndarray | list):
                assert arg.shape[0] == rows_of(op), arg.name
                assert [each.tobytes() for each in one] == [each.tobytes() for each in other], arg.name


def test_many_tiles_agree_with_float64(rig: Any, spec: Any) -> None:
    told = spec(layers=[{"dense": 7, "activation": "tanh"}], categories=1, standardize=True, optimizer="sgd")
    rows, found = 20 * TILE_ROWS + 77, {}
    for backend in ("cpu", "precise"):
        rigged = rig(told, rows=rows, capacity=rows + 100)
        plan = rigged.plan(backend)
        rigged.statistics(plan)
        losses = [rigged.step(plan, learning_rate=0.1) for _ in range(5)]
        found[backend] = losses, rigged.learned.copy()
    np.testing.assert_allclose(found["cpu"][0], found["precise"][0], rtol=1e-6)
    np.testing.assert_allclose(found["cpu"][1], found["precise"][1], atol=1e-6)


def test_a_sum_is_over_the_tiles_in_their_order() -> None:
    parts, total, out = np.float32([1e8, 1, -1e8, 0.5]), np.zeros(1), np.zeros(1, np.float32)
    for at, value in enumerate(parts):
        part = np.full(1, value)
        _native.call_kernel("chain_sum", "", [1, FIRST if at == 0 else LAST if at == 3 else NEXT, part, total, out])
    assert out[0] == 1.5 != parts.sum()


def test_a_whole_network_is_one_group_of_tiles(rig: Any, spec: Any) -> None:
    """And what is needed of all rows is what tables and scores read."""
    layers = [{"dense": 16, "activation": "tanh"}, {"dropout": 0.2}] * 2 + [{"dense": 16, "activation": "tanh"}]
    rigged = rig(spec(layers=layers, categories=3, standardize=True), rows=1000, capacity=4 * TILE_ROWS)
    program = rigged.model.program(rigged.layout)
    for phase in program.phases.values():
        assert sum(isinstance(step, Tiled) for step in phase) == 1
    work = {ref.name for call in flat(program.phases["train"]) for ref in call.args
            if isinstance(ref, Ref) and ref.space == "work" and len(ref.shape) == 2
            and isinstance(ref.shape[0], PerRow)}   # fmt: skip
    assert {"input", "dense0.output", "dense1.linear"} < program.local
    assert {"loss", "prediction"} < work - program.local
    assert not any(name.endswith((".seen", ".lead")) for name in program.local)   # of all rows, of one call and two


def test_calls_keep_their_order_where_one_needs_the_other() -> None:
    """By rows, then one that needs all rows, then by rows again: two groups, and what both need is whole."""
    builder = Builder(PerRow(1000))
    rows = builder.rows
    x, y, z, a = (builder.buffer(name, rows, 1) for name in "xyza")
    with builder.during("forward"):
        builder.call("affine", rows, 2.0, 0.0, x, builder.slot("numbers", "f32", 1))
        builder.call("weight_sum", rows, x, builder.step)       # of all rows
        builder.call("affine", rows, 1.0, 1.0, a, x)            # has no need to wait
        builder.call("binary_cross_entropy", rows, x, a, x, builder.step, y, z, y)   # has to
    found = tiled(builder, {"train": builder.calls_of("train")}, z, fused=True)
    ops_of = " | ".join(" ".join(call.op for call in flat([step])) for step in found.phases["train"])
    assert ops_of == "affine affine | weight_sum | binary_cross_entropy"
    assert found.local == {"y"}


def test_what_is_not_for_the_rows_of_a_batch_is_not_tiled() -> None:
    builder = Builder(PerRow(1000))
    a = Ref("gradient", "a", "f32", (4,))
    builder.call("add_forward", 4, a, a, a)
    found = tiled(builder, {"train": builder.calls_of("train")}, a, fused=True)
    assert found.phases["train"] == (Call("add_forward", "", (4, a, a, a)),)


def test_what_a_tile_reads_whole_no_other_tile_of_the_group_changes() -> None:
    """A sum over tiles is there behind the last of them."""
    builder = Builder(PerRow(1000))
    rows = builder.rows
    x, dy, y = (builder.buffer(name, rows, 4) for name in ("x", "dy", "y"))
    weight, bias = Ref("gradient", "w", "f32", (4, 4)), Ref("gradient", "b", "f32", (4,))
    with builder.during("forward"):
        for name in (x, dy):
            builder.call("affine", rows * 4, 2.0, 0.0, name, builder.slot("numbers", "f32", 4))
        builder.call("dense_grad_weight", rows, 4, 4, x, dy, weight, bias, None)
        builder.call("dense_forward", rows, 4, 4, x, weight, bias, 0, y)
    found = tiled(builder, {"train": builder.calls_of("train")}, y, fused=True)
    ops_of = " | ".join(" ".join(call.op for call in flat([step])) for step in found.phases["train"])
    assert ops_of == "affine affine dense_grad_weight chain_sum chain_sum | dense_forward" and "x" not in found.local


def test_a_call_out_of_the_plan_is_done_before_what_it_changes_is_read() -> None:
    """Also where it has it from another call."""
    builder = Builder(PerRow(1000))
    rows, weight, bias = builder.rows, Ref("state", "w", "f32", (4, 4)), Ref("state", "b", "f32", (4,))
    y = builder.buffer("y", rows, 4)
    with builder.during("forward"):
        builder.outside(lambda *arrays: lambda rows, slot: None, builder.step, besides=(weight,))
        builder.call("dense_forward", rows, 4, 4, builder.slot("numbers", "f32", 4), weight, bias, 0, y)
    found = tiled(builder, {"train": builder.calls_of("train")}, y, fused=True)
    assert [isinstance(step, Tiled) for step in found.phases["train"]] == [False, True]


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
    """No CUDA kernel has so many arguments, and all that it works on is needed at the same time."""
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


PREDICT = "predict"   # its output is read behind its last call


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
