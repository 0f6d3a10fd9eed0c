"""A plan reads blocks of bytes where they lie in a slot, on every backend that runs here."""

from __future__ import annotations

import numpy as np
import pytest
from looped import over
from slots import set_rows

from streamtrain import _native
from streamtrain.compute import backends, ops
from streamtrain.compute.model import _slot_offsets, aligned
from streamtrain.compute.moments import MOMENTS
from streamtrain.compute.moments import example as example_moments
from streamtrain.compute.spec import Call, Program, Ref
from streamtrain.errors import UserMistake

WIDTH = 37
ANSWERING = [name for name in backends.names() if backends.get(name).answers() is None]
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


@over("backend", ANSWERING)
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
