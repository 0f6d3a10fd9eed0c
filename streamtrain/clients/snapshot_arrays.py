"""A snapshot as arrays by name."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from streamtrain.columns.served import schema_and_model
from streamtrain.compute import snapshot as payload
from streamtrain.compute.spec import Array
from streamtrain.topics.chunks import Stored
from streamtrain.topics.manifest import Manifest


@dataclass(frozen=True)
class Snapshot:
    """One published snapshot. `parameters` are float32 arrays, `statistics` float64 and int64 ones; all read-only.

    `digest` names the snapshot, lineage and all, `parameters_digest` what it predicts with: both are a SHA-256 in hex.
    """

    version: int
    digest: str
    untrained: bool
    parameters: Mapping[str, Array] = field(repr=False, compare=False)  # the digest says whether they are the same
    statistics: Mapping[str, Array] = field(repr=False, compare=False)
    manifest: Manifest = field(repr=False, compare=False)

    @property
    def parameters_digest(self) -> str:
        """Equal where parameters and statistics are, whatever lineage they come from."""
        return self.manifest.parameters_digest

    @property
    def age_s(self) -> float:
        """Seconds since the trainer made it, by this machine's clock."""
        return max(0.0, time.time() - self.manifest.created_ms / 1000)


def snapshot_of(stored: Stored) -> Snapshot:
    """SnapshotError for what holds no columns and model, or not that model's arrays."""
    _, model = schema_and_model(stored.manifest)
    arrays = payload.decode(stored.model)
    payload.check(model.layout, arrays)
    parameters = {name: array for name, array in arrays.items() if array.dtype == np.float32}
    statistics = {name: array for name, array in arrays.items() if array.dtype != np.float32}
    manifest = stored.manifest
    return Snapshot(manifest.version, stored.digest.hex(), manifest.untrained, parameters, statistics, manifest)
