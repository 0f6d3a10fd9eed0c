"""Rows that are scored and not learned: every loss, in one tile and in several."""

from __future__ import annotations

from typing import Any

import numpy as np
from looped import over

from streamtrain.compute import losses
from streamtrain.compute.judged import Judged
from tests.compute.shapes import HIDDEN


@over("rows", [50, 700])
@over("name", losses.names())
def test_every_loss_scores_as_training_does(rig: Any, spec: Any, name: str, rows: int) -> None:
    rigged = rig(spec(loss=name, layers=[HIDDEN], **losses.get(name).EXAMPLES[0]), rows=rows, capacity=rows)
    judged = Judged(rigged.model, rigged.layout, rigged.state)
    judged.add(rigged.slot)
    found = {key: block.copy() for key, block in judged.scores().items()}
    rigged.step(rigged.plan())
    for key, block in rigged.model.scores(rigged.share).items():
        np.testing.assert_array_equal(found[key], block)
