"""Places of a state's blocks, in the state and in a mean buffer."""

from __future__ import annotations

import itertools
import os
from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain import _native
from streamtrain.compute.spec import DTYPES
from streamtrain.compute.state import views
from streamtrain.errors import UserMistake

RULES = _native.state_rules()
SHAPES = [(1,), (16,), (17, 1), (5, 13, 3), (0, 4), (2, 3, 4, 5), ()]
LINE = _native.CACHE_LINE
SLOTS = _native.SlotLayout.make(1, 1, [("weight", "f32", 1)])


def every_rule(reverse: bool = False) -> list[tuple[str, str, str, tuple[int, ...], str]]:
    """A block of every rule, shape and way to be stored, the parts mixed."""
    blocks = [(f"{rule}{at}{dtype}", "g", rule, shape, dtype)
              for at, shape in enumerate(SHAPES) for rule, dtypes in RULES.items() for dtype in (*dtypes, "")]
    return blocks[::-1] if reverse else blocks


def made(specs: list[Any]) -> _native.StateLayout:
    return _native.StateLayout.make([_native.StateBlockSpec(*spec) for spec in specs])


@over("reverse", [False, True])
def test_blocks_lie_one_behind_the_other_the_learned_part_first(reverse: bool) -> None:
    specs = every_rule(reverse)
    layout = made(specs)
    given = {name: (rule, shape, dtype) for name, _, rule, shape, dtype in specs}
    end = 0
    for block in layout.blocks:
        rule, shape, dtype = given[block.name]
        assert (block.rule, block.shape, block.dtype, block.group) == (rule, shape, dtype or RULES[rule][0], "g")
        count = int(np.prod(shape, dtype=np.int64))
        assert block.count == count
        assert block.bytes == count * np.dtype(DTYPES[block.dtype]).itemsize
        assert block.offset == end
        in_statistics = block.offset >= layout.learned_bytes and rule not in learned_rules()
        assert block.part_offset == block.offset - (layout.learned_bytes if in_statistics else 0)
        end += -(-block.bytes // LINE) * LINE
    assert layout.state_bytes == end == layout.learned_bytes + layout.statistics_bytes
    names = [block.name for block in layout.blocks]
    learned = [name for name, _, rule, *_ in specs if rule in learned_rules()]
    assert names == learned + [name for name, *_ in specs if name not in learned]


def learned_rules() -> set[str]:
    """Returns the rules trained in place: a block of one alone leaves no statistics part."""
    return {rule for rule in RULES if made([("x", "g", rule, (1,))]).statistics_bytes == 0}


@over("workers", [1, 3])
def test_a_mean_buffer_holds_a_state_and_then_what_each_worker_keeps(workers: int) -> None:
    layout = made(every_rule())
    published = layout.published(workers)
    shared = [block for block in published.blocks if "@" not in block.name]
    kept = [block for block in published.blocks if "@" in block.name]
    assert published.blocks[: len(shared)] and [b.name for b in published.blocks] == [b.name for b in shared + kept]
    offsets = {block.name: block.offset for block in layout.blocks}
    assert all(block.offset == offsets[block.name] for block in shared)
    local = [block for block in layout.blocks if block.name not in {block.name for block in shared}]
    assert [block.name for block in kept] == [f"{b.name}@{worker}" for worker in range(workers) for b in local]
    assert [block.shape for block in kept] == [(1, *block.shape) for _ in range(workers) for block in local]
    end = layout.state_bytes
    for block in kept:
        assert block.offset == end
        end += -(-block.bytes // LINE) * LINE
    assert published.state_bytes == end


def test_a_lineage_begins_with_the_state_in_every_place() -> None:
    layout, workers = made(every_rule()), 3
    state = np.random.default_rng(1).integers(0, 255, layout.state_bytes, np.uint8)
    published = layout.published(workers)
    mean = np.zeros(published.state_bytes, np.uint8)
    layout.begin_lineage(state, workers, mean)
    fresh = views(layout, state)
    for name, block in views(published, mean).items():
        assert block.tobytes() == fresh[name.partition("@")[0]].tobytes()
    for wrong_state, wrong_mean in ((state[:-1].copy(), mean), (state, mean[:-1].copy()), (state, mean.repeat(2))):
        with pytest.raises(UserMistake, match=r"a lineage's .*: expected \d+ bytes, got \d+"):
            layout.begin_lineage(wrong_state, workers, wrong_mean)


def test_a_process_that_attaches_finds_the_same_layout() -> None:
    specs = [spec for spec in every_rule() if not spec[2].startswith("moments")]
    layout = made(specs)
    arena = _native.Arena.create(workers=2, averaging_frequency=1, slot_count=4, slot_layout=SLOTS, state_layout=layout)
    there = _native.Arena.attach(os.dup(arena.descriptor))

    def told(of: _native.StateLayout) -> list[tuple[object, ...]]:
        return [(b.name, b.group, b.rule, b.dtype, b.shape, b.offset, b.part_offset) for b in of.blocks]

    assert told(there.state_layout) == told(layout)
    assert there.state_layout.published(2).state_bytes == layout.published(2).state_bytes


def test_what_cannot_be_laid_out_is_refused() -> None:
    with pytest.raises(UserMistake, match=rf"rule: expected one of {', '.join(sorted(RULES))}, got summ"):
        made([("x", "g", "summ", (1,))])
    with pytest.raises(UserMistake, match="state block x: dtype, by the rule sum: expected one of f64, i64, got f32"):
        made([("x", "g", "sum", (1,), "f32")])
    with pytest.raises(UserMistake, match="state block x: expected a name of its own"):
        made([("x", "g", rule, (1,)) for rule in itertools.islice(RULES, 2)])
    for name, shape, message in (("x", (1,) * 5, "too many axes: x"), ("x" * 96, (1,), "word is too long: xxx")):
        layout = made([(name, "g", next(iter(RULES)), shape)])
        with pytest.raises(ValueError, match=message):
            _native.Arena.create(workers=1, averaging_frequency=1, slot_count=2, slot_layout=SLOTS, state_layout=layout)
