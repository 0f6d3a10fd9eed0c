"""Batches computed a tile of rows at a time: what an op may be tiled by, the order of calls, and equal bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from looped import over

from streamtrain import _native
from streamtrain.compute import ops
from streamtrain.compute.backends.cpu import TILE_ROWS
from streamtrain.compute.builder import Builder
from streamtrain.compute.ops.chain_sum import FIRST, LAST, NEXT
from streamtrain.compute.spec import Arg, Call, Op, PerRow, Ref, Tiled, flat
from streamtrain.compute.tiling import tiled
from tests.compute.test_ops import arguments

TILED = [(op, types) for op in ops.load().values() if op.tiles for types in op.types]
ROWS = (0, 1, TILE_ROWS, TILE_ROWS + 1, 2 * TILE_ROWS, 700)
CAPACITY = 700


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
        found[backend] = losses, rigged.state[: rigged.model.learned_bytes].view(np.float32).copy()
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


def work(name: str, rows: PerRow) -> Ref:
    return Ref("work", name, "f32", (rows, 1))


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
