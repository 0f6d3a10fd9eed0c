"""A model with made-up parameters, published as a trainer publishes it, and what it answers by NumPy alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from publisher import Publisher

from streamtrain.columns.schema import Schema
from streamtrain.compute.model import Model
from streamtrain.compute.snapshot import model_payload
from streamtrain.topics.snapshots import Publication

NUMBERS = {"a": {"kind": "number"}, "b": {"kind": "number"}, "y": {"role": "label"}}


class ServedModel:
    """Each `put` publishes the next version with parameters drawn from its number."""

    def __init__(
        self,
        bootstrap: str,
        job: str,
        columns: Mapping[str, Any] = NUMBERS,
        layers: Sequence[Mapping[str, Any]] = (),
        loss: str = "binary_cross_entropy",
    ) -> None:
        self.schema = Schema.from_columns(columns, loss)
        self.spec = {
            "input": self.schema.engine_inputs(), "layers": list(layers), "loss": loss, "optimizer": {"name": "sgd"},
        }  # fmt: skip
        self.model = Model(self.spec)
        self.publisher = Publisher(bootstrap, job)
        self.version = 0

    def state(self, version: int) -> npt.NDArray[np.uint8]:
        state = self.model.initial_state(version)
        random = np.random.default_rng(version)
        views = self.model.views(state)
        for block in self.model.blocks:
            if block.group == "parameters":
                views[block.name][...] = random.standard_normal(block.shape, np.float32) * 0.5
        return state

    def put(self, untrained: bool = False) -> Publication:
        self.version += 1
        payload = model_payload(self.model.layout, self.state(self.version))
        return self.publisher.put(
            self.version, payload, model_spec=self.spec, schema=self.schema.to_dict(), untrained=untrained
        )

    def parameters(self, version: int) -> dict[str, npt.NDArray[Any]]:
        return self.model.views(self.state(version))

    def logits(self, version: int, rows: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Of the linear model (layers = [])."""
        found = self.parameters(version)
        x = np.asarray(rows, np.float64)
        return np.asarray(x @ found["output.weight"].astype(np.float64) + found["output.bias"])

    def probability(self, version: int, row: Sequence[float]) -> float:
        return float(1 / (1 + np.exp(-self.logits(version, [row])[0, 0])))
