"""Transforms with state in a model's plan: a row sees the round's start, the round's share is gathered beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
from looped import over
from stateful_examples import examples, held_of, ids

from streamtrain import _native
from streamtrain.compute.model import Model
from streamtrain.compute.state import block_view
from tests.state.test_rules import MEANINGS

HIDDEN = {"dense": 7, "activation": "relu"}


def held_blocks(model: Model) -> list[Any]:
    return [block for block in model.blocks if block.group == "statistics" and "made_" in block.name]


def fold(rigged: Any) -> None:
    """What a round of one worker leaves."""
    for block in held_blocks(rigged.model):
        base, share = (block_view(block, memory, block.part_offset) for memory in (rigged.base, rigged.share))
        base[...] = MEANINGS[block.rule](base.copy(), [share], [1.0])[""]
        share[...] = 0


@over(("name", "example"), examples(), ids=ids())
def test_a_row_sees_the_rounds_start(rig: Any, spec: Any, name: str, example: dict[str, Any]) -> None:
    """The same batch again in a round: the same predictions, but for what was learned; another round: others."""
    rigged = rig(spec(held=[held_of(name, example)], numbers=0, layers=[HIDDEN]))
    plan = rigged.plan()
    seen = []
    for _ in range(4):
        for _ in range(2):
            rigged.step(plan, learning_rate=0.0)
            plan.predict(rigged.address)
            seen.append(plan.output()[: rigged.rows].copy())
        fold(rigged)
    assert all(np.array_equal(one, other) for one, other in zip(seen[::2], seen[1::2], strict=True))
    assert not np.array_equal(seen[0], seen[-1])


@over(("name", "example"), examples(), ids=ids())
def test_the_backends_agree_over_rounds(rig: Any, spec: Any, name: str, example: dict[str, Any]) -> None:
    found, bits = {}, set()
    for backend, isa in [("reference", ""), *(("cpu", isa) for isa in _native.supported_isas())]:
        rigged = rig(spec(held=[held_of(name, example)], layers=[HIDDEN]))
        plan = rigged.plan(backend, isa)
        for _ in range(3):
            rigged.fill()
            rigged.step(plan)
            rigged.step(plan)
            fold(rigged)
        plan.predict(rigged.address)
        blocks = [block_view(block, rigged.base, block.part_offset).copy() for block in held_blocks(rigged.model)]
        found[backend + isa] = (plan.output()[: rigged.rows].copy(), blocks)
        if backend == "cpu":
            bits.add((rigged.state.tobytes(), rigged.base.tobytes(), plan.output().tobytes()))
    assert len(bits) == 1
    expected, cpu = found["reference"], found["cpu" + _native.supported_isas()[-1]]
    np.testing.assert_allclose(cpu[0], expected[0], rtol=2e-3, atol=2e-3)
    for one, other in zip(cpu[1], expected[1], strict=True):
        assert one.any()
        np.testing.assert_allclose(one, other, rtol=1e-12)


@over(("name", "example"), examples(), ids=ids())
def test_rows_without_weight_are_not_gathered(rig: Any, spec: Any, name: str, example: dict[str, Any]) -> None:
    shares = []
    for noise in (0, 5):
        rigged = rig(spec(held=[held_of(name, example)]))
        row = rigged.rows // 2   # of weight 0
        for block in ("held.numbers", "held.categories"):
            if block in rigged.blocks:
                rigged.blocks[block][row] = noise
        rigged.step(rigged.plan())
        shares.append([block_view(each, rigged.share, each.part_offset).copy() for each in held_blocks(rigged.model)])
    for one, other in zip(*shares, strict=True):
        np.testing.assert_array_equal(one, other)
