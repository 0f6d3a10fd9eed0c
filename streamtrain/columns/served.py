"""What a manifest says of the rows it predicts and of the model, checked: anyone who may write to the topic may write
anything there, with right digests."""

from __future__ import annotations

from streamtrain.columns.schema import Schema
from streamtrain.compute.model import Model
from streamtrain.errors import SnapshotError
from streamtrain.topics.manifest import Manifest


def schema_and_model(manifest: Manifest) -> tuple[Schema, Model]:
    """The columns and the model of a snapshot. SnapshotError for whatever else the manifest holds in their place, and
    where they disagree."""
    where = f"snapshot {manifest.version} of {manifest.job}"
    try:
        schema = Schema.from_dict(manifest.schema)
        model = Model(manifest.model_spec)
        wanted = {"input": schema.engine_inputs(), "loss": schema.loss}
    except Exception as error:  # of what is malformed nobody knows how it fails
        raise SnapshotError(
            f"{where}: expected the columns and model of a job in its manifest, got {type(error).__name__}: {error}"
        ) from error
    for name, value in wanted.items():
        if (got := manifest.model_spec.get(name)) != value:
            raise SnapshotError(f"{where}: expected the model's {name} to be that of its columns, {value}; got {got}")
    return schema, model
