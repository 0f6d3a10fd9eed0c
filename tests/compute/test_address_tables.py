"""Arguments that are tables of addresses: all tables of a batch in one call, values side by side in one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from looped import over
from slots import set_rows

from streamtrain import _native
from streamtrain.compute import backends, ops
from streamtrain.compute import input as inputs
from streamtrain.compute.backends.cpu import TILE_ROWS
from streamtrain.compute.model import _slot_offsets, aligned
from streamtrain.compute.moments import MOMENTS
from streamtrain.compute.moments import example as example_moments
from streamtrain.compute.spec import Call, Program, Ref, Refs, flat
from streamtrain.errors import UserMistake
from tests.compute.shapes import BACKENDS

CAPACITY = 5 * TILE_ROWS + 77
TANH = {"dense": 6, "activation": "tanh"}
SIDE_BY_SIDE = [
    {"name": "a", **TANH, "of": "input"}, {"name": "b", "concat": ["a", "input", "a"]},
    {"name": "c", **TANH, "of": "b"},
]  # fmt: skip
OF_TABLES = ("embedding_forward", "embedding_lead", "embedding_gradient", "adam_rows")


def calls_of(rigged: Any) -> list[Any]:
    return [call for call in flat(rigged.model.program(rigged.layout).phases["train"]) if call.op in OF_TABLES]


def test_all_tables_of_a_batch_are_one_call(rig: Any, spec: Any) -> None:
    calls = calls_of(rig(spec(categories=20, layers=[TANH]), rows=20, capacity=24))
    assert [call.op for call in calls] == list(OF_TABLES)
    for call in calls:
        assert all(len(arg.refs) == 20 for arg in call.args if isinstance(arg, Refs))


def test_their_gradients_take_a_bounded_part_of_a_step(rig: Any, spec: Any) -> None:
    """A large batch has some tables at a time; each of them once, in their order."""
    rigged = rig(spec(categories=20, layers=[TANH]), rows=20, capacity=1000)
    counts = Counter(call.op for call in calls_of(rigged))
    assert counts["embedding_forward"] == 1 and 1 < counts["adam_rows"] < 20
    updates = [call for call in calls_of(rigged) if call.op == "adam_rows"]
    parameters = [next(arg for arg in call.args if isinstance(arg, Refs)).refs for call in updates]
    assert [ref.name for refs in parameters for ref in refs] == [f"c{at}.embedding" for at in range(20)]
    bytes_of = [8 * 1000 * sum(ref.shape[1] for ref in refs) for refs in parameters]
    assert all(size <= inputs.GRADIENT_BYTES or len(refs) == 1 for size, refs in zip(bytes_of, parameters, strict=True))


@over("clip", [0.0, 0.05])
def test_how_many_at_a_time_changes_no_bit(rig: Any, spec: Any, monkeypatch: pytest.MonkeyPatch, clip: float) -> None:
    states = set()
    for limit in (0, 5_000, 1 << 30):
        monkeypatch.setattr(inputs, "GRADIENT_BYTES", limit)
        told = spec(categories=9, layers=[TANH])
        told["optimizer"] = {"name": "adam", "clip_norm": clip}
        rigged = rig(told)
        rigged.train(3, refills=True)
        states.add(rigged.state.tobytes() + rigged.share.tobytes())
    assert len(states) == 1


@over("rows", [1, TILE_ROWS + 1, CAPACITY])
@over("threads", [1, 3])
def test_addresses_go_with_slot_tile_and_thread(rig: Any, spec: Any, rows: int, threads: int) -> None:
    """`a` is what one tile has of each thread, the input lies in a slot: in another one at every other step."""
    found = []
    for backend, count in (("cpu", threads), ("precise", 1)):
        rigged = rig(spec(graph=SIDE_BY_SIDE), rows=rows, capacity=CAPACITY if backend == "cpu" else rows)
        plan, first = rigged.plan(backend, threads=count), rigged.slot
        other = np.empty(len(first) + 64, np.uint8)
        other = other[-other.ctypes.data % 64 :][: len(first)]
        losses = []
        for turn in range(4):
            rigged.fill()
            if turn % 2 and backend == "cpu":
                other[:] = first
                first[4096:] = 0
                rigged.slot = other
            losses.append(rigged.step(plan))
            rigged.slot = first
        found.append((losses, rigged.learned.copy()))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-6)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-6)


def test_another_type_of_array_is_refused() -> None:
    arrays = [np.zeros((2, 1), np.float32), np.zeros((2, 1))]
    given = [2, 2, 2, np.zeros((2, 2), np.int64), arrays, np.zeros((2, 2), np.float32)]
    with pytest.raises(UserMistake, match=r"concat_forward argument 4: expected const f32\*, got an array of another"):
        _native.call_kernel("concat_forward", "", given)


WIDTH = 37
SLOTS = _native.SlotLayout.make(1, 1, [("odd", "u8", 5), ("flags", "u8", WIDTH), ("weight", "f32", 1)])
PARTS = ("mean", "scale", "clip", "low", "high")


def program(moments: np.ndarray, slots: _native.SlotLayout) -> Program:
    """standardize_scale with its uint8 operand in the slot; the scales are the output."""
    flags = Ref("slot", "flags", "u8", (1, WIDTH))
    parts = [Ref("work", name, "f32", (1, WIDTH)) for name in PARTS]
    call = Call("standardize_scale", "", (WIDTH, Ref("constant", "moments", "f64", moments.shape), flags, *parts))
    size = moments.nbytes + -moments.nbytes % 64
    offsets = {("constant", "moments"): 0, **{("work", name): size + 192 * at for at, name in enumerate(PARTS)}}
    offsets |= _slot_offsets(slots, {"predict": [call]})
    state = _native.StateLayout.make([])
    constants = ((0, moments.tobytes()),)
    phases = {"predict": (call,), **dict.fromkeys(["train"], ())}
    return Program(phases, offsets, size + 192 * 5, constants, parts[1], 1, state,
                   slots.slot_bytes)  # fmt: skip


@over("backend", BACKENDS)
def test_flags_in_a_slot_choose_columns(backend: str) -> None:
    random = np.random.default_rng(3)
    moments = np.ascontiguousarray(example_moments(random, WIDTH), np.float64).reshape(WIDTH, len(MOMENTS))
    chosen = random.integers(0, 2, WIDTH).astype(np.uint8)
    slot = aligned(SLOTS.slot_bytes)
    slot[:] = 0
    set_rows(slot, 1)
    block = SLOTS.blocks[1]
    slot[block.offset : block.offset + WIDTH] = chosen
    nothing = aligned(64)
    addresses = (int(nothing.ctypes.data),) * 3
    plan = backends.get(backend).compile(program(moments, SLOTS), addresses, isa="", device=0)
    plan.predict(int(slot.ctypes.data))
    expected = [np.zeros(WIDTH, np.float32) for _ in PARTS]
    ops.get("standardize_scale").reference(WIDTH, moments, chosen, *expected)
    np.testing.assert_allclose(plan.output()[0], expected[1], rtol=1e-6)
    assert len(set(plan.output()[0].tolist())) > 3


@over("block", [("flags", "f32", WIDTH), ("flags", "u8", WIDTH - 1), ("flags", "u8", WIDTH, True)])
def test_a_block_of_another_form_is_refused(block: tuple[str, str, int]) -> None:
    with pytest.raises(UserMistake, match=r"flags: expected u8 of width 37, got (f32|u8|ragged u8) of width"):
        program(np.zeros((WIDTH, len(MOMENTS))), _native.SlotLayout.make(1, 1, [block]))
