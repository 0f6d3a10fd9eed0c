"""A small model on Kafka, published as a trainer publishes it, and what it answers by NumPy alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from publisher import Publisher
from small_model import Layers, SmallModel

from streamtrain.compute.model import Model
from streamtrain.topics.snapshots import Publication

NUMBERS = {"a": {"kind": "number"}, "b": {"kind": "number"}, "y": {"role": "label"}}


class ServedModel:
    """Each `put` publishes the next version with parameters drawn from its number."""

    def __init__(
        self,
        bootstrap: str,
        job: str,
        columns: dict[str, Any] = NUMBERS,
        layers: Layers = (),
        loss: str = "binary_cross_entropy",
    ) -> None:
        self.model = SmallModel.make(columns, loss, layers)
        self.schema, self.publisher, self.version = self.model.schema, Publisher(bootstrap, job), 0

    def put(self, untrained: bool = False) -> Publication:
        self.version += 1
        return self.model.put(self.publisher, self.version, untrained=untrained)

    def parameters(self, version: int) -> dict[str, npt.NDArray[Any]]:
        return Model(self.model.spec).views(self.model.state(version))

    def logits(self, version: int, rows: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The logits of the linear model (layers = [])."""
        found = self.parameters(version)
        x = np.asarray(rows, np.float64)
        return np.asarray(x @ found["output.weight"].astype(np.float64) + found["output.bias"])

    def probability(self, version: int, row: Sequence[float]) -> float:
        return float(1 / (1 + np.exp(-self.logits(version, [row])[0, 0])))
