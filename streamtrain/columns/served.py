"""A snapshot that predicts: its manifest and an immutable scorer of it.

What a manifest says of its rows and its model is checked: anyone who may write to the topic may write anything there,
with right digests.
"""

from __future__ import annotations

from typing import Any

from streamtrain import _native
from streamtrain.columns.formats import Format
from streamtrain.columns.plan import native_plan
from streamtrain.columns.schema import Schema
from streamtrain.compute import snapshot
from streamtrain.compute.model import Model, aligned
from streamtrain.compute.seen import Seen
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


class Shape:
    """What the snapshots of one model and its columns have in common. Read-only, shared by all of them."""

    def __init__(self, manifest: Manifest) -> None:
        """SnapshotError where the manifest holds no model that this program can build."""
        columns, self.model = schema_and_model(manifest)
        self.schema = columns.for_requests()
        self._of = manifest.model_spec, manifest.schema
        self._plans: dict[int, _native.DecodePlan] = {}

    def fits(self, manifest: Manifest) -> bool:
        """Whether the manifest's snapshot is one of them."""
        return self._of == (manifest.model_spec, manifest.schema)

    def plan(self, rows: int) -> _native.DecodePlan:
        """For slots of `rows` rows."""
        if rows not in self._plans:
            self._plans[rows] = native_plan(self.schema, _native.SlotLayout.make(rows, 1, self.schema.block_specs()))
        return self._plans[rows]


class Served:
    """A manifest, and scorers over its parameters, which never change.

    A scorer is a workspace, for one thread at a time. It refers to the parameters and keeps them as long as it lives,
    as does whoever else refers to them: other scorers, and other snapshots that have them in common.
    """

    def __init__(self, manifest: Manifest, digest: bytes, shape: Shape, parameters: Any) -> None:
        """`parameters`: the model's state, 64-byte aligned, which nobody writes any more."""
        self.manifest, self.digest, self.shape = manifest, digest.hex(), shape
        self._parameters = parameters

    @classmethod
    def of(cls, manifest: Manifest, digest: bytes, payload: bytes, before: Served | None = None) -> Served:
        """`before`: a snapshot whose shape this one may have. SnapshotError for what nothing can be predicted with."""
        shape = before.shape if before is not None and before.shape.fits(manifest) else Shape(manifest)
        parameters = aligned(shape.model.state_bytes)
        snapshot.load(shape.model.layout, parameters, payload)
        parameters.flags.writeable = False
        return cls(manifest, digest, shape, parameters)

    @property
    def version(self) -> int:
        return self.manifest.version

    def request_scorer(self, format: Format, rows: int, backend: str = "cpu") -> _native.RequestScorer:
        """Answers requests in that format, `rows` rows at a time."""
        plan, decode = self._plan(rows, backend), self.shape.plan(rows)
        classes = self.shape.schema.class_names
        return _native.RequestScorer(plan, decode, format, classes, self.version, self.digest)

    def row_scorer(self, rows: int, free_from: int) -> _native.RowScorer:
        """Answers Python rows, `rows` at a time; a batch of `free_from` or more gives up the GIL."""
        return _native.RowScorer(self._plan(rows), self.shape.plan(rows), self.shape.schema.class_names, free_from)

    def seen(self, slot_layout: _native.SlotLayout) -> Seen:
        """What the model sees of rows of slots of that layout."""
        return Seen(self.shape.model, slot_layout, self._parameters)

    def _plan(self, rows: int, backend: str = "cpu") -> _native.Plan:
        model, state = self.shape.model, self._parameters
        return model.compile(backend, self.shape.plan(rows).layout, state, state[model.learned_bytes :], train=False)
