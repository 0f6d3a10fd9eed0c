"""Passes over a program: tiles of rows, elementwise calls fused, buffers overlaid; a step has the same bits with and
without any of them, by any number of threads, which leave nothing behind."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from looped import over
from slots import set_rows
from waiting import wait_for

from streamtrain import _native
from streamtrain.compute import input as inputs
from streamtrain.compute import ops, optimizers, workspace
from streamtrain.compute.backends.cpu import TILE_ROWS
from streamtrain.compute.builder import TRAINING, Builder, Value
from streamtrain.compute.explain import explained
from streamtrain.compute.fusion import MOST, fused, is_elementwise
from streamtrain.compute.model import Model
from streamtrain.compute.spec import Arg, Call, Chain, Op, Outside, PerRow, Ref, Tiled, flat, launches
from streamtrain.compute.tiling import tiled
from streamtrain.errors import UserMistake
from tests.compute.conftest import spec_of
from tests.compute.shapes import GELU, HIDDEN, RESIDUAL, each_shape
from tests.compute.test_ops import arguments
from tests.oracles.ops.batch_sums import FIRST, LAST, NEXT

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
    model_spec = spec(layers=[{"dense": 7, "activation": "tanh"}], categories=1, standardize=True, optimizer="sgd")
    rows, found = 20 * TILE_ROWS + 77, {}
    for backend in ("cpu", "precise"):
        rigged = rig(model_spec, rows=rows, capacity=rows + 100)
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
    steps, phase = program.phases["train"], explained(rigged.model, program)["phases"]["train"]
    assert phase["launches"] == sum(1 for _ in launches(steps)) < phase["calls"] == sum(phase["ops"].values())
    assert 0 < phase["by_tiles"] < phase["calls"]
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
    """A chain runs its strips one after the other, so its last call still needs what the first one reads."""
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


SOME_TILES = 2 * TILE_ROWS + 77
PLAIN: tuple[tuple[str, ...], dict[str, Any]] = ((), {})   # the passes left out, and options of the plan
WITHOUT = [PLAIN, (("overlays",), {}), (("overlays", "tiles"), {}), ((), {"threads": 3})]
FUSED = [PLAIN, (("tiles",), {}), (("fuses",), {}), ((), {"threads": 3}), ((), {"isa": _native.supported_isas()[0]})]
MANY = [*WITHOUT, *(((), {"threads": threads}) for threads in (2, 7, _native.MAX_PLAN_THREADS))]
MANY += [((), {"isa": isa, "threads": 2}) for isa in _native.supported_isas()]


def outcomes(patch: pytest.MonkeyPatch, rig: Any, spec: Any, ways: Any, **size: int) -> dict[str, tuple[bytes, int]]:
    """By the way the bits of three steps and a prediction, and the bytes of the workspace."""
    found = {}
    for left_out, options in ways:
        with patch.context() as without:
            for name in left_out:
                without.setattr(Model, name, False)
            rigged = rig(spec, **size)
            workspace_bytes = rigged.model.program(rigged.layout).workspace_bytes
            found[f"{left_out} {options} {size}"] = rigged.outcome(refills=True, **options), workspace_bytes
    return found


@each_shape
def test_no_pass_changes_a_bit(rig: Any, spec: Any, monkeypatch: pytest.MonkeyPatch, shape: dict[str, Any]) -> None:
    found = outcomes(monkeypatch, rig, spec(**shape), WITHOUT, rows=SOME_TILES, capacity=SOME_TILES)
    (plain, overlaid), (_, apart), *_ = found.values()
    assert overlaid <= apart and not [way for way, (bits, _) in found.items() if bits != plain]


def stacked(width: int) -> dict[str, Any]:
    return {"graph": [
        {"name": "a", "dense": 4, "of": "input.first"}, {"name": "b", "dense": 4, "of": "input.rest"},
        {"name": "s", "stack": ["a", "b"]}, {"name": "h", "batch_norm": 1e-3, "of": "s"},
        {"name": "d", "dropout": 0.5, "of": "h"}, {"name": "e", "dense": width, "activation": "tanh", "of": "d"},
        {"name": "u", "unstack": "e", "index": 1},
    ]}  # fmt: skip


NETWORKS: dict[str, dict[str, Any]] = {
    "layers": {"layers": [HIDDEN, {"dense": 5, "activation": "tanh"}], "categories": 2, "standardize": True},
    "dropout": {"layers": [GELU, {"dropout": 0.2}, GELU, {"dropout": 0.2}], "categories": 2},
    "a graph": {"graph": RESIDUAL, "standardize": True},
    "a cross network": {"layers": [{"cross": 3}]},
    "norms": {"layers": [{"dense": 70}, {"batch_norm": 1e-5, "activation": "relu"}, {"dense": 9}, {"batch_norm": 1}]},
    "a stack": stacked(6),
    "a wide stack": stacked(70),
}
OF_TILES = (TILE_ROWS - 1, SOME_TILES, TILE_ROWS + 1)
SIZES = [(name, OF_TILES[(at + turn) % 3], FUSED) for turn in range(3) for at, name in enumerate(NETWORKS)]
OF_LAYERS = [("layers", rows, MANY) for rows in (1, TILE_ROWS + 1, SOME_TILES, 0, TILE_ROWS, 2 * TILE_ROWS)]


@pytest.mark.parametrize("sizes", [
    [*SIZES[: len(NETWORKS)], *OF_LAYERS[:3]],
    pytest.param([*SIZES[len(NETWORKS) :], *OF_LAYERS[3:]], marks=pytest.mark.full),
], ids=["some", "others"])  # fmt: skip
def test_any_number_of_rows_has_its_bits(rig: Any, spec: Any, monkeypatch: pytest.MonkeyPatch, sizes: Any) -> None:
    """The last tile may be a part of one, and waits for none; a slot may have room for one tile, or for several."""
    for name, rows, ways in sizes:
        found = outcomes(monkeypatch, rig, spec(**NETWORKS[name]), ways, rows=rows, capacity=SOME_TILES)
        if rows <= TILE_ROWS:
            found |= outcomes(monkeypatch, rig, spec(**NETWORKS[name]), [PLAIN], rows=rows, capacity=TILE_ROWS)
        plain, *_ = found.values()
        assert not [way for way, (bits, _) in found.items() if bits != plain[0]], (name, rows)


RELU = {"dense": 6, "activation": "relu"}
TWO_READERS = [
    {"name": "a", **RELU, "of": "input"}, {"name": "b", "dense": 4, "of": "input"}, {"name": "c", "concat": ["a", "b"]},
]  # fmt: skip
MIXED = [
    {"name": "a", "dense": 12, "of": "input"}, {"name": "b", "multiply": ["a", "input"]},
    {"name": "c", "add": ["b", "input"]},
]  # fmt: skip
ONE_BEFORE = [
    {"name": "a", "scale": ["input"], "by": 0.5}, {"name": "b", "dense": 4, "of": "input"},
    {"name": "c", "concat": ["a", "b"]},
]  # fmt: skip
OF_TABLES: dict[str, dict[str, Any]] = {
    "a list": {"layers": [RELU, {"dense": 4}], "categories": 2, "standardize": True},
    "a linear one": {"categories": 2},
    "two readers": {"graph": TWO_READERS, "categories": 2},
    "a reader of all": {"graph": MIXED, "categories": 2},
    "one before it": {"graph": ONE_BEFORE, "categories": 2},
    "numbers behind": {"layers": [RELU], "categories": 1, "vectors": [3], "bags": [0, 2]},
    "bags": {"layers": [RELU], "bags": [0, 1, 4], "pixels": [4]},
}


@over("name", OF_TABLES)
def test_gradients_of_the_columns_of_tables_alone_have_the_bits_of_all(
    rig: Any, spec: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    alone = rig(spec(**OF_TABLES[name])).outcome()
    with monkeypatch.context() as patch:
        patch.setattr(inputs, "Value", lambda *given, **named: Value(*given, **named | {"learned": None}))
        assert alone == rig(spec(**OF_TABLES[name])).outcome()


@over(
    ("name", "expected"),
    [
        ("a list", {(7, 6), (6, 4), (4, 1)}),  # tables of 3 and 4 beside 5 numbers
        ("a linear one", {(7, 1)}),
        ("two readers", {(7, 6), (7, 4), (10, 1)}),
        ("numbers behind", {(9, 6), (6, 1)}),  # 3 of the category, 3 of the vector between them, 3 of tags
    ],
)
def test_no_other_column_is_computed(rig: Any, spec: Any, name: str, expected: set[tuple[int, int]]) -> None:
    table_rig = rig(spec(**OF_TABLES[name]))
    calls = table_rig.model.built(64)[0].calls_of("train")
    assert {call.args[1:3] for call in calls if call.op == "dense_grad_input"} == expected


READ = ("given", "known", "size", "value")
MANY_TILES = 5 * TILE_ROWS + 77


def read_task(task: str, what: str) -> str:
    """Nothing, of a thread that has just ended."""
    try:
        return Path(f"/proc/self/task/{task}/{what}").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def plan_threads() -> set[str]:
    """Returns the process's threads that are a plan's."""
    return {task for task in os.listdir("/proc/self/task") if read_task(task, "comm") == "plan\n"}


def wait_until_asleep(threads: set[str]) -> None:
    wait_for(lambda: all(read_task(task, "stat").rpartition(")")[2].startswith(" S") for task in threads))


@pytest.mark.parametrize("steps", [600, pytest.param(2000, marks=pytest.mark.full)])
def test_many_steps_of_any_size_end_in_the_same_bits(rig: Any, spec: Any, steps: int) -> None:
    """Steps of one tile and of many, one behind the other: threads wake late, or not at all."""
    found = set()
    for threads in (1, 2, 5):
        rigged, before = rig(spec(**NETWORKS["layers"]), rows=MANY_TILES, capacity=MANY_TILES), plan_threads()
        plan, rows = rigged.plan(threads=threads), np.random.default_rng(7)
        mine = plan_threads() - before
        rigged.statistics(plan)
        for step in range(steps):
            set_rows(rigged.slot, rows.integers(0, MANY_TILES + 1))
            rigged.step(plan, learning_rate=1e-3)
            if step % 200 == 199:
                wait_until_asleep(mine)
        found.add(rigged.state.tobytes() + rigged.share.tobytes())
    assert len(found) == 1


def test_products_and_optimizers_take_subnormal_numbers_as_zero(rig: Any, spec: Any) -> None:
    """They cost a hundred cycles each; in the threads of a plan too, and nowhere behind it."""
    found = set()
    for threads, isa in product((1, 3), _native.supported_isas()):
        rigged = rig(spec(loss="mean_squared_error", layers=[HIDDEN]), rows=MANY_TILES, capacity=MANY_TILES)
        views = rigged.model.views(rigged.state)
        numbers = rigged.blocks["numbers"]
        numbers *= 10.0 ** np.random.default_rng(3).uniform(-22, -16, numbers.shape)
        views["dense0.weight"][:] *= 1e-19
        rigged.train(2, threads=threads, isa=isa)
        found.add(rigged.state.tobytes() + rigged.share.tobytes())   # sums are near the smallest normal number
        rigged = rig(spec(loss="mean_squared_error", layers=[]), rows=MANY_TILES, capacity=MANY_TILES)
        views = rigged.model.views(rigged.state)
        views["output.weight"][:], views["output.bias"][:], rigged.blocks["numbers"][:] = 1e-10, 0, 1e-30
        plan = rigged.plan(threads=threads, isa=isa)
        plan.predict(rigged.address)
        assert not plan.output().any(), (threads, isa)
    assert len(found) == 1
    assert (np.full(9, 1e-30, np.float32) * np.float32(1e-10)).all()


@over(("optimizer", "isa"), lambda: product(optimizers.names(), _native.supported_isas()))
def test_no_optimizer_keeps_subnormal_numbers(rig: Any, spec: Any, optimizer: str, isa: str) -> None:
    """A mean that decays stays at the smallest of them for ever."""
    rigged = rig(spec(optimizer=optimizer, layers=[]))
    views = rigged.model.views(rigged.state)
    kept = [views[block.name] for block in rigged.model.blocks if block.group == "optimizer"]
    for view in kept:
        view[:] = 1e-42
    rigged.blocks["numbers"][:] = 0
    rigged.train(1, isa=isa)
    for view in kept:
        assert not ((view != 0) & (abs(view) < np.finfo(np.float32).tiny)).any()


def test_what_a_tile_makes_no_other_thread_writes(rig: Any, spec: Any) -> None:
    """Each array of a group of tiles is of the batch's rows, or is own, or is read; sums alone are shared, in order."""
    for shape in (NETWORKS["layers"], {"layers": [{"layer_norm": 1e-5}, HIDDEN]}, {"loss": "softmax_cross_entropy"}):
        rigged = rig(spec(**shape), rows=MANY_TILES, capacity=MANY_TILES)
        program = rigged.model.program(rigged.layout)
        calls = [call for step in program.phases["train"] if isinstance(step, Tiled) for call in flat([step])]
        assert calls
        for call in calls:
            for arg, value in zip(ops.get(call.op).args, call.args, strict=True):
                by_rows = bool(arg.shape) and arg.shape[0] == ops.get(call.op).args[0].name
                if isinstance(value, Ref) and arg.role not in READ and call.op != "chain_sum":
                    assert value.own or by_rows, (call.op, arg.name)


@over("op", [op for op in ops.load().values() if op.tiles], ids=lambda op: op.name)
def test_an_op_of_tiles_adds_to_nothing_that_all_share(op: Any) -> None:
    assert not [arg.name for arg in op.args if arg.dtype == "step" and arg.role not in READ]


def test_a_number_of_threads_that_is_none_is_refused(rig: Any, spec: Any) -> None:
    for threads in (0, 65):
        with pytest.raises(UserMistake, match=f"plan: threads: expected 1 to 64, got {threads}"):
            rig(spec(**NETWORKS["layers"])).plan(threads=threads)


def test_threads_live_as_long_as_the_plan_and_sleep_between_steps(rig: Any, spec: Any) -> None:
    rigged = rig(spec(**NETWORKS["layers"]), rows=MANY_TILES, capacity=MANY_TILES)
    before = plan_threads()
    plan = rigged.train(1, threads=4)
    mine = plan_threads() - before
    assert len(mine) == 3
    wait_until_asleep(mine)
    del plan
    wait_for(lambda: not plan_threads() & mine)   # joined, a thread is listed for a moment


def test_a_batch_that_fits_a_tile_needs_no_thread(rig: Any, spec: Any) -> None:
    before = plan_threads()
    plan = rig(spec(**NETWORKS["layers"]), rows=9, capacity=TILE_ROWS).plan(threads=4)
    assert not plan_threads() - before and plan.rows == TILE_ROWS


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="fork of a process with threads warns")
def test_a_fork_goes_on_alone(rig: Any, spec: Any) -> None:
    """It has none of the threads, and waits for none."""
    rigged = rig(spec(**NETWORKS["layers"]), rows=MANY_TILES, capacity=MANY_TILES)
    plan = rigged.train(1, threads=3)
    child = os.fork()
    if child == 0:
        rigged.step(plan)
        del plan
        os._exit(7)
    _, status = wait_for(lambda: ended if any(ended := os.waitpid(child, os.WNOHANG)) else None)
    assert os.waitstatus_to_exitcode(status) == 7
    rigged.step(plan)
