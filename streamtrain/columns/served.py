"""A snapshot that predicts: its manifest and an immutable scorer of it.

What a manifest says of its rows and its model is checked: anyone who may write to the topic may write anything there,
with right digests.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.columns.formats import Format
from streamtrain.columns.schema import Schema
from streamtrain.compute import snapshot
from streamtrain.compute.builder import PREDICTING
from streamtrain.compute.enlarged import enlarged
from streamtrain.compute.evaluator import Evaluator
from streamtrain.compute.model import Model, aligned
from streamtrain.compute.module import Module
from streamtrain.compute.seen import Seen
from streamtrain.compute.shared_pages import LEAST_BYTES, Base, Put
from streamtrain.compute.state import Layout
from streamtrain.errors import SnapshotError, UserMistake
from streamtrain.topics.chunks import Stored
from streamtrain.topics.manifest import Manifest


def schema_and_model(manifest: Manifest, network: Module | None = None) -> tuple[Schema, Model]:
    """The columns and the model of a snapshot, whose network is given where it is none of layers and is to be computed.
    SnapshotError for whatever else the manifest holds in their place, and where they disagree."""
    where = f"snapshot {manifest.version} of {manifest.job}"
    try:
        schema = Schema.from_dict(manifest.schema)
        model = Model(manifest.model_spec, network)
        heads = tuple((head.name, head.loss) for head in model.parsed.heads if head.name)
        found = {"input": manifest.model_spec.get("input"), "loss": model.parsed.loss, "heads": heads}
        expected = {"input": schema.engine_inputs(), "loss": schema.loss, "heads": schema.losses_in_order}
    except Exception as error:  # of what is malformed nobody knows how it fails
        raise SnapshotError(
            f"{where}: expected the columns and model of a job in its manifest, got {type(error).__name__}: {error}"
        ) from error
    for name, value in expected.items():
        if (got := found[name]) != value:
            raise SnapshotError(f"{where}: expected the model's {name} to be that of its columns, {value}; got {got}")
    return schema, model


def enlarged_state(stored: Stored, after: Layout) -> Any:
    """Returns the state of a whole snapshot as the same model with more classes has it, uint8 [after.state_bytes].
    SnapshotError for a manifest that holds no model, or a payload of another."""
    _, model = schema_and_model(stored.manifest)
    before = model.layout.published(stored.manifest.workers)
    state = np.zeros(before.state_bytes, np.uint8)
    snapshot.load(before, state, stored.model, stored.trainer)
    return enlarged(before, state, after)


class Shape:
    """The common part of all snapshots of one model and its columns. Read-only, shared by all of them."""

    def __init__(self, manifest: Manifest, network: Module | None = None) -> None:
        """SnapshotError where the manifest holds no model that this program can build."""
        columns, self.model = schema_and_model(manifest, network)
        self.schema = columns.for_requests()
        self._accepts_empty = _accepts_empty(manifest)
        self._of = manifest.model_spec, manifest.schema, self._accepts_empty
        labels = dict(columns.labels)
        alone = next(iter(labels.values()))
        labelled = [(head, labels.get(head.name, alone)) for head in self.model.parsed.heads]
        self.heads = [(head.name, head.outputs, label.names, label.has_values) for head, label in labelled]
        self._plans: dict[int, _native.DecodePlan] = {}
        self._bare_plans: dict[int, _native.DecodePlan] = {}

    def fits(self, manifest: Manifest) -> bool:
        """Returns True if the manifest's snapshot is one of them."""
        return self._of == (manifest.model_spec, manifest.schema, _accepts_empty(manifest))

    def plan(self, rows: int) -> _native.DecodePlan:
        """For slots of `rows` rows."""
        if rows not in self._plans:
            self._plans[rows] = self._plan_of(self.schema, rows)
        return self._plans[rows]

    def bare_plan(self, rows: int) -> _native.DecodePlan:
        """The same for rows that no message is around: what would be there is a field by the column's name."""
        if rows not in self._bare_plans:
            bare = self.schema.without_message()
            self._bare_plans[rows] = self.plan(rows) if bare is self.schema else self._plan_of(bare, rows)
        return self._bare_plans[rows]

    def _plan_of(self, schema: Schema, rows: int) -> _native.DecodePlan:
        layout = _native.SlotLayout.make(rows, 1, schema.block_specs())
        return schema.native_plan(layout, bool(schema.record_names) and not self._accepts_empty)


def _accepts_empty(manifest: Manifest) -> bool:
    """Returns whether its job answers rows that name none of its columns."""
    predict = manifest.job_settings.get("predict")
    return isinstance(predict, dict) and predict.get("accept_empty") is True


def _loaded(model: Model, payload: bytes, base: Base | None) -> tuple[Any, Base | None]:
    """The model's state, read-only, and what later ones may share pages with; SnapshotError for another's payload."""

    def write(state: Any, put: Put) -> None:
        snapshot.load(model.layout, state, payload, put=put)

    if len(payload) >= LEAST_BYTES:
        with suppress(OSError):  # no file left to open: memory of its own
            if base is None or (state := base.other(write)) is None:
                base = Base(model.state_bytes, write)
                state = base.state
            return state, base
    parameters = aligned(model.state_bytes)
    write(parameters, np.copyto)
    parameters.flags.writeable = False
    return parameters, None


class Served:
    """A manifest, and scorers over its parameters, which never change.

    A scorer is a workspace, for one thread at a time. It refers to the parameters and keeps them as long as it lives,
    as does whoever else refers to them: other scorers, and other snapshots that have them in common.
    """

    def __init__(
        self, manifest: Manifest, digest: bytes, shape: Shape, parameters: Any, base: Base | None = None
    ) -> None:
        """`parameters`: the model's state, 64-byte aligned, which nobody writes any more; `base`: has pages in common
        with it."""
        self.manifest, self.digest, self.shape = manifest, digest.hex(), shape
        self._parameters, self._base = parameters, base

    @classmethod
    def of(
        cls,
        manifest: Manifest,
        digest: bytes,
        payload: bytes,
        before: Served | None = None,
        network: Module | None = None,
    ) -> Served:
        """`before`: a snapshot whose shape this one may have, and of a large one pages that are equal; `network`: see
        schema_and_model. SnapshotError for what nothing can be predicted with."""
        if before is not None and not before.shape.fits(manifest):
            before = None
        shape, base = (Shape(manifest, network), None) if before is None else (before.shape, before._base)
        return cls(manifest, digest, shape, *_loaded(shape.model, payload, base))

    @property
    def version(self) -> int:
        return self.manifest.version

    def request_scorer(self, format: Format, rows: int, backend: str = "cpu") -> _native.RequestScorer:
        """Answers requests in that format, `rows` rows at a time."""
        plan, decode = self._plan(rows, backend), self.shape.plan(rows)
        return _native.RequestScorer(plan, decode, format, self.shape.heads, self.version, self.digest)

    def row_scorer(self, rows: int, free_from: int) -> _native.RowScorer:
        """Answers Python rows, `rows` at a time; a batch of `free_from` or more gives up the GIL."""
        return _native.RowScorer(self._plan(rows), self.shape.plan(rows), self.shape.heads, free_from)

    def body_scorer(self, rows: int, most_bytes: int) -> _native.BodyScorer:
        """Answers bodies of JSON, `rows` rows at a time, with at most so many bytes."""
        return _native.BodyScorer(self._plan(rows), self.shape.bare_plan(rows), self.shape.heads, most_bytes)

    def seen(self, slot_layout: _native.SlotLayout) -> Seen:
        """Returns a reader of what the model sees of rows in slots of that layout."""
        return Seen(self.shape.model, slot_layout, self._parameters)

    def evaluator(self, slot_layout: _native.SlotLayout) -> Evaluator:
        """Returns a scorer of rows in slots of that layout, with their labels."""
        return Evaluator(self.shape.model, slot_layout, self._parameters)

    def _plan(self, rows: int, backend: str = "cpu") -> _native.Plan:
        model, state, slots = self.shape.model, self._parameters, self.shape.plan(rows).layout
        try:
            return model.compile(backend, slots, state, state[model.learned_bytes :], phases=PREDICTING)
        except UserMistake as mistake:   # of a network: it is not given, or is another
            raise SnapshotError(f"snapshot {self.version} of {self.manifest.job}: {mistake}") from mistake
