"""A step has the same bits with and without any pass, by any number of threads, which leave nothing behind."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from looped import over
from slots import set_rows
from waiting import wait_for

from streamtrain import _native
from streamtrain.compute import input as inputs
from streamtrain.compute import ops
from streamtrain.compute.backends.cpu import TILE_ROWS
from streamtrain.compute.builder import Value
from streamtrain.compute.model import Model
from streamtrain.compute.spec import Ref, Tiled, flat
from streamtrain.errors import UserMistake
from tests.compute.shapes import GELU, HIDDEN, RESIDUAL, each_shape

ROWS = 2 * TILE_ROWS + 77
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
    found = outcomes(monkeypatch, rig, spec(**shape), WITHOUT, rows=ROWS, capacity=ROWS)
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
SIZES = [(name, rows, FUSED) for name in NETWORKS for rows in (TILE_ROWS - 1, TILE_ROWS + 1, ROWS)]
SIZES += [("layers", rows, MANY) for rows in (0, 1, TILE_ROWS, TILE_ROWS + 1, 2 * TILE_ROWS, ROWS)]


@over(("name", "rows", "ways"), SIZES)
def test_any_number_of_rows_has_its_bits(
    rig: Any, spec: Any, monkeypatch: pytest.MonkeyPatch, name: str, rows: int, ways: Any
) -> None:
    """The last tile may be a part of one, and waits for none; a slot may have room for one tile, or for several."""
    found = outcomes(monkeypatch, rig, spec(**NETWORKS[name]), ways, rows=rows, capacity=ROWS)
    if rows <= TILE_ROWS:
        found |= outcomes(monkeypatch, rig, spec(**NETWORKS[name]), [PLAIN], rows=rows, capacity=TILE_ROWS)
    plain, *_ = found.values()
    assert not [way for way, (bits, _) in found.items() if bits != plain[0]]


RELU = {"dense": 6, "activation": "relu"}
TWO_READERS = [
    {"name": "a", **RELU, "of": "input"}, {"name": "b", "dense": 4, "of": "input"}, {"name": "c", "concat": ["a", "b"]},
]  # fmt: skip
MIXED = [
    {"name": "a", "dense": 12, "of": "input"}, {"name": "b", "multiply": ["a", "input"]},
    {"name": "c", "add": ["b", "input"]},
]  # fmt: skip
LAST = [
    {"name": "a", "scale": ["input"], "by": 0.5}, {"name": "b", "dense": 4, "of": "input"},
    {"name": "c", "concat": ["a", "b"]},
]  # fmt: skip
OF_TABLES: dict[str, dict[str, Any]] = {
    "a list": {"layers": [RELU, {"dense": 4}], "categories": 2, "standardize": True},
    "a linear one": {"categories": 2},
    "two readers": {"graph": TWO_READERS, "categories": 2},
    "a reader of all": {"graph": MIXED, "categories": 2},
    "one before it": {"graph": LAST, "categories": 2},
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
    made = rig(spec(**OF_TABLES[name]))
    calls = made.model.built(64)[0].calls_of("train")
    assert {call.args[1:3] for call in calls if call.op == "dense_grad_input"} == expected


READ = ("given", "known", "size", "value")
CAPACITY = 5 * TILE_ROWS + 77


def told(task: str, what: str) -> str:
    """Nothing, of a thread that has just ended."""
    try:
        return Path(f"/proc/self/task/{task}/{what}").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def plan_threads() -> set[str]:
    """Returns the process's threads that are a plan's."""
    return {task for task in os.listdir("/proc/self/task") if told(task, "comm") == "plan\n"}


def wait_until_asleep(threads: set[str]) -> None:
    wait_for(lambda: all(told(task, "stat").rpartition(")")[2].startswith(" S") for task in threads))


def test_two_thousand_steps_of_any_size_end_in_the_same_bits(rig: Any, spec: Any) -> None:
    """Steps of one tile and of many, one behind the other: threads wake late, or not at all."""
    found = set()
    for threads in (1, 2, 5):
        rigged, before = rig(spec(**NETWORKS["layers"]), rows=CAPACITY, capacity=CAPACITY), plan_threads()
        plan, rows = rigged.plan(threads=threads), np.random.default_rng(7)
        mine = plan_threads() - before
        rigged.statistics(plan)
        for step in range(2000):
            set_rows(rigged.slot, rows.integers(0, CAPACITY + 1))
            rigged.step(plan, learning_rate=1e-3)
            if step % 500 == 499:
                wait_until_asleep(mine)
        found.add(rigged.state.tobytes() + rigged.share.tobytes())
    assert len(found) == 1


def test_what_a_tile_makes_no_other_thread_writes(rig: Any, spec: Any) -> None:
    """Each array of a group of tiles is of the batch's rows, or is own, or is read; sums alone are shared, in order."""
    for shape in (NETWORKS["layers"], {"layers": [{"layer_norm": 1e-5}, HIDDEN]}, {"loss": "softmax_cross_entropy"}):
        rigged = rig(spec(**shape), rows=CAPACITY, capacity=CAPACITY)
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
    rigged = rig(spec(**NETWORKS["layers"]), rows=CAPACITY, capacity=CAPACITY)
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
    rigged = rig(spec(**NETWORKS["layers"]), rows=CAPACITY, capacity=CAPACITY)
    plan = rigged.train(1, threads=3)
    child = os.fork()
    if child == 0:
        rigged.step(plan)
        del plan
        os._exit(7)
    _, status = wait_for(lambda: ended if any(ended := os.waitpid(child, os.WNOHANG)) else None)
    assert os.waitstatus_to_exitcode(status) == 7
    rigged.step(plan)
