"""Small real models with made-up parameters, as snapshots: what a follower gets without a trainer running."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamtrain.columns.schema import Schema
from streamtrain.compute import snapshot
from streamtrain.compute.model import Model
from streamtrain.topics.snapshots import Publication

FLIGHTS = {
    "dep_delay": {"standardize": True, "missing": 0},
    "distance": {"standardize": True},
    "hour": {},
    "carrier": {"kind": "category", "buckets": 64, "embed": 4},
    "origin": {"kind": "category", "buckets": 16, "embed": 2, "missing": ""},
    "late": {"role": "label", "missing": "skip"},
}
Layers = Sequence[int | dict[str, Any]]  # the width of a dense layer, or a layer as a job has it


@dataclass(frozen=True)
class SmallModel:
    """A schema and a model for it; `state(seed)` differs from seed to seed in every parameter."""

    schema: Schema
    spec: dict[str, Any]

    @classmethod
    def make(
        cls, columns: dict[str, Any] = FLIGHTS, loss: str = "binary_cross_entropy", layers: Layers = (8,)
    ) -> SmallModel:
        schema = Schema.from_columns(columns, loss)
        dense = [{"dense": each, "activation": "relu"} if isinstance(each, int) else each for each in layers]
        optimizer = {"name": "adam", "learning_rate": 3e-3}
        return cls(schema, {"input": schema.engine_inputs(), "layers": dense, "loss": loss, "optimizer": optimizer})

    def state(self, seed: int) -> Any:
        model, rng = Model(self.spec), np.random.default_rng(seed)
        state = model.initial_state(seed)
        for name, view in model.views(state).items():
            if name.startswith("standardize."):  # count, mean, sum of squared deviations
                view[:, :3] = np.stack(
                    [np.full(len(view), 100.0), rng.normal(5, 2, len(view)), np.full(len(view), 900.0)], -1
                )
            elif view.dtype == np.float32 and not name.startswith("adam"):
                view[...] = rng.normal(0, 0.3, view.shape)
                if name.endswith("running_variance"):
                    view[...] = abs(view)
        return state

    def payload(self, seed: int) -> bytes:
        return snapshot.model_payload(Model(self.spec).layout, self.state(seed))

    def put(self, publisher: Any, version: int, **changes: Any) -> Publication:
        """Publishes a snapshot whose parameters are those of seed `version`."""
        publication: Publication = publisher.put(
            version, self.payload(version), model_spec=self.spec, schema=self.schema.to_dict(), **changes
        )
        return publication
