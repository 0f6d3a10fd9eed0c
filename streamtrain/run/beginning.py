"""The beginning of a new lineage: its state is in place and published before any training."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from streamtrain.compute.model import Model
from streamtrain.run.lineage import Lineage
from streamtrain.run.publication import Assembler, adopt
from streamtrain.run.publisher import Publisher
from streamtrain.run.round_log import Columns
from streamtrain.run.unpublished_dead_letters import Letters

State = npt.NDArray[np.uint8]


def fill_fresh(model: Model, seed: int, workers: int, state: State) -> None:
    """Puts the model's first state of that seed, as so many workers have it, into `state`."""
    model.layout.begin_lineage(model.initial_state(seed), workers, state)


def publish_first(lineage: Lineage, state: State, assembler: Assembler, publisher: Publisher) -> Lineage:
    """The lineage with the state there is."""
    first = assembler.assemble(lineage, state, lineage.round, Columns.empty(), lineage.metrics)
    return adopt(lineage, first, publisher.publish(first, Letters.none()))
