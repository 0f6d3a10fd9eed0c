"""The statistics of rows that are held, as a lineage's first round would begin from them; and their scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from streamtrain import _native
from streamtrain.compute.evaluator import Evaluator
from streamtrain.compute.model import Model, aligned
from streamtrain.compute.spec import Array
from streamtrain.compute.state import block_view


def take_statistics(model: Model, slot_layout: _native.SlotLayout, slots: Sequence[Array], state: Array) -> None:
    """Into the statistics part of a fresh state: the moments of standardised columns, what transforms with state hold,
    the weights of the classes. Scores stay 0. What needs the moments sees them."""
    base = state[model.learned_bytes :]
    first = aligned(model.statistics_bytes)
    first[:] = base
    addresses = [slot.ctypes.data for slot in slots]
    _native.first_moments(model.layout, slot_layout, addresses, first.ctypes.data)
    share = aligned(model.statistics_bytes)
    plan = model.compile("cpu", slot_layout, state, first, share, phases=("statistics",))
    weight = 0.0
    for address in addresses:
        plan.statistics(address)
        weight += plan.step.weight_sum
    vector = aligned(model.state_bytes)
    vector[: model.learned_bytes], vector[model.learned_bytes :] = state[: model.learned_bytes], share
    start, mean = (aligned(model.layout.published(1).state_bytes) for _ in range(2))
    model.layout.begin_lineage(state, 1, start)
    _native.average(
        model.layout, start.ctypes.data, [(vector.ctypes.data, weight)], mean.ctypes.data, first.ctypes.data
    )
    base[:] = mean[model.learned_bytes : model.state_bytes]
    for block in model.blocks:
        if block.group == "score":
            block_view(block, base, block.part_offset)[:] = 0


def take_scores(model: Model, slot_layout: _native.SlotLayout, slots: Sequence[Array], state: Array) -> None:
    """Into the state: the scores of these rows, learned nothing of."""
    evaluator = Evaluator(model, slot_layout, state)
    for slot in slots:
        evaluator.add(slot)
    blocks = model.views(state)
    for name, scores in evaluator.scores().items():
        blocks[name][:] = scores


def memory(model: Model, state: Array) -> NDArray[np.uint8]:
    """A mean buffer of one worker that has what this state has: what is published."""
    mean = aligned(model.layout.published(1).state_bytes)
    model.layout.begin_lineage(state, 1, mean)
    return mean
