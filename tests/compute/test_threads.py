"""Tiles of a batch dealt among threads: the same bits whatever their number, and threads that leave nothing behind."""

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

from streamtrain.compute import ops
from streamtrain.compute.backends.cpu import TILE_ROWS
from streamtrain.compute.spec import Ref, Tiled, flat
from streamtrain.errors import UserMistake
from tests.compute.shapes import HIDDEN

READ = ("given", "known", "size", "value")
CAPACITY = 5 * TILE_ROWS + 77
NETWORK = {"layers": [HIDDEN, {"dense": 5, "activation": "tanh"}], "categories": 2, "standardize": True}


def told(task: str, what: str) -> str:
    """Nothing, of a thread that has just ended."""
    try:
        return Path(f"/proc/self/task/{task}/{what}").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def plan_threads() -> set[str]:
    """Those of plans, of all that this process has."""
    return {task for task in os.listdir("/proc/self/task") if told(task, "comm") == "plan\n"}


def wait_until_asleep(threads: set[str]) -> None:
    wait_for(lambda: all(told(task, "stat").rpartition(")")[2].startswith(" S") for task in threads))


def test_two_thousand_steps_of_any_size_end_in_the_same_bits(rig: Any, spec: Any) -> None:
    """Steps of one tile and of many, one behind the other: threads wake late, or not at all."""
    found = set()
    for threads in (1, 2, 5):
        rigged, before = rig(spec(**NETWORK), rows=CAPACITY, capacity=CAPACITY), plan_threads()
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
    """Of a group of tiles each array is of the batch's rows, or is own, or is read; sums alone are shared, in order."""
    for shape in (NETWORK, {"layers": [{"layer_norm": 1e-5}, HIDDEN]}, {"loss": "softmax_cross_entropy"}):
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
            rig(spec(**NETWORK)).plan(threads=threads)


def test_threads_live_as_long_as_the_plan_and_sleep_between_steps(rig: Any, spec: Any) -> None:
    rigged = rig(spec(**NETWORK), rows=CAPACITY, capacity=CAPACITY)
    before = plan_threads()
    plan = rigged.plan(threads=4)
    rigged.step(plan)
    mine = plan_threads() - before
    assert len(mine) == 3
    wait_until_asleep(mine)
    del plan
    wait_for(lambda: not plan_threads() & mine)   # joined, a thread is listed for a moment


def test_a_batch_that_fits_a_tile_needs_no_thread(rig: Any, spec: Any) -> None:
    before = plan_threads()
    plan = rig(spec(**NETWORK), rows=9, capacity=TILE_ROWS).plan(threads=4)
    assert not plan_threads() - before and plan.rows == TILE_ROWS


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="fork of a process with threads warns")
def test_a_fork_goes_on_alone(rig: Any, spec: Any) -> None:
    """It has none of the threads, and waits for none."""
    rigged = rig(spec(**NETWORK), rows=CAPACITY, capacity=CAPACITY)
    plan = rigged.plan(threads=3)
    rigged.step(plan)
    child = os.fork()
    if child == 0:
        rigged.step(plan)
        del plan
        os._exit(7)
    _, status = wait_for(lambda: ended if any(ended := os.waitpid(child, os.WNOHANG)) else None)
    assert os.waitstatus_to_exitcode(status) == 7
    rigged.step(plan)
