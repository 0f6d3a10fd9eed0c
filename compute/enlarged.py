"""The state of a model that has got more classes: all that was learned is kept, what is new begins at 0."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamtrain.compute.spec import Array
from streamtrain.compute.state import Layout, views
from streamtrain.compute.windows import SCORE, WINDOW

_TOP, _LOSS = "top", "loss"  # of a head's score blocks


def enlarged(before: Layout, state: Array, after: Layout) -> NDArray[np.uint8]:
    """Returns a state, uint8 [after.state_bytes], that holds every element of `state` at its index.

    `state`: uint8 [before.state_bytes], of the same model with fewer classes. Outputs' weights, biases, moments and the
    rows seen of a new class are 0: its logit is the prior of a class without rows, log(0.5 / (rows + 0.5 classes)).
    Figures go on. A top-k accuracy that begins here counts the rows before: their label was among so few classes.
    """
    grown = np.zeros(after.state_bytes, np.uint8)
    old = views(before, state)
    for name, block in views(after, grown).items():
        kept = old.get(name, block[:0])
        if name.startswith((SCORE, WINDOW)) and name.endswith(f".{_TOP}"):
            block[:] = old[name.removesuffix(_TOP) + _LOSS].reshape(-1)[1]  # weight of all rows
        block[tuple(map(slice, kept.shape))] = kept
    return grown
