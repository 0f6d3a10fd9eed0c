"""The state of a lineage, moved on log by log from a published snapshot, and what came out otherwise than published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from streamtrain.build import build_digest
from streamtrain.checks.replay.engine import Engine, State, rounds_of
from streamtrain.checks.replay.replay_report import Replayed
from streamtrain.checks.replay.reread_records import Readers
from streamtrain.columns.served import enlarged_state, schema_and_model
from streamtrain.compute.enlarged import enlarged
from streamtrain.compute.module import Module
from streamtrain.compute.quality import Quality
from streamtrain.compute.snapshot import load, model_payload, trainer_payload
from streamtrain.compute.state import Layout, views
from streamtrain.compute.windows import Scores
from streamtrain.errors import CheckFailed
from streamtrain.topics.chunks import Stored
from streamtrain.topics.rounds import RoundLog, chain_after, counts_after
from streamtrain.topics.terms import Terms, columns_digest, model_digest
from streamtrain.topics.wire import plain

_MAX_DIFFERENCES = 5  # differences of one kind


class LineageState:
    """Columns and model are those of the start's manifest; everything else that decides bits is in the logs' terms."""

    def __init__(self, start: Stored, readers: Readers, network: Module | None = None) -> None:
        self.notes: list[str] = []
        self._readers = readers
        self._network = network
        self._begin(start)

    def _begin(self, start: Stored) -> None:
        manifest = start.manifest
        self.lineage = manifest.lineage
        self.version = manifest.version
        self._start = start
        self._schema, _ = schema_and_model(manifest)
        self._chain, self._counts = manifest.chain, manifest.counts
        self._terms: Terms | None = None
        self._engine: Engine | None = None
        self._quality = Quality(self._schema.numbers)

    def follow(self, log: RoundLog, expected: Stored | None) -> Replayed:
        """Moves on to the snapshot `log` leads to, which is compared where it is given.

        RecordsGone where the records of a round are gone; CheckFailed where a log cannot be followed.
        """
        if not len(log.rounds):
            raise CheckFailed(f"round log of snapshot {log.version}: expected a round, got none")
        differences: list[str] = []
        windows: list[Scores] = []
        for round_ in rounds_of(log):
            engine = self._engine_for(log.terms_at(round_.number), round_.number)
            engine.read_by(log)
            differences += engine.train(round_)
            windows += (closed := engine.window())
            if len(closed) < round_.closed_window:
                differences.append(f"round {round_.number}: the round log closes a window that has not enough rows")
        state = engine.state()
        mismatches = differences[:_MAX_DIFFERENCES]
        if len(differences) > _MAX_DIFFERENCES:
            mismatches.append(f"and {len(differences) - _MAX_DIFFERENCES} more batches")
        mismatches += self._metric_differences(log, views(engine.layout, state), windows)
        self.version = log.version
        self._chain, self._counts = chain_after(self._chain, log), counts_after(self._counts, log)
        if expected is not None:
            mismatches += self._differences(log, engine, state, expected)
        return Replayed(log.version, len(log.rounds), log.rows_trained, expected is not None, mismatches)

    def continue_as(self, stored: Stored) -> Replayed:
        """Passes on to the lineage that `stored` begins, which is compared: it is this state with its new classes."""
        _, model = schema_and_model(stored.manifest)
        layout = model.layout.published(stored.manifest.workers)
        if self._engine is None:
            state = enlarged_state(self._start, layout)
        else:
            state = enlarged(self._engine.layout, self._engine.state(), layout)
        self._begin(stored)
        return Replayed(stored.manifest.version, 0, 0, True, _payload_differences(layout, state, stored))

    def _engine_for(self, terms: Terms, round_: int) -> Engine:
        """The engine at work, or another that goes on from its state where the terms have changed."""
        same = self._terms is not None and replace(self._terms, first_round=terms.first_round) == terms
        if self._engine is not None and same:
            return self._engine
        self._check(terms)
        manifest = self._start.manifest
        engine = Engine(self._schema, manifest.model_spec, terms, self._readers.of(terms, self._schema), self._network)
        if self._engine is None:
            engine.begin(round_, self._loaded(engine))
            self._quality.begin(views(engine.layout, engine.state()), manifest.metrics)
        else:
            engine.begin(round_, self._engine.state())
        self._terms, self._engine = terms, engine
        return engine

    def _check(self, terms: Terms) -> None:
        """The terms speak of this lineage's columns and model."""
        manifest = self._start.manifest
        for what, digest, ours in (
            ("columns", terms.columns_digest, columns_digest(manifest.schema)),
            ("model", terms.model_digest, model_digest(manifest.model_spec)),
        ):
            if digest != ours:
                raise CheckFailed(
                    f"round {terms.first_round}: expected the {what} of snapshot {manifest.version} (digest "
                    f"{ours.hex()[:12]}…), its terms name others ({digest.hex()[:12]}…)"
                )
        note = f"trained by build {terms.build}, this is {build_digest()}"
        if terms.build != build_digest() and note not in self.notes:
            self.notes.append(note)

    def _loaded(self, engine: Engine) -> State:
        state = np.zeros(engine.layout.state_bytes, np.uint8)
        load(engine.layout, state, self._start.model, self._start.trainer)
        return state

    def _metric_differences(self, log: RoundLog, state: Mapping[str, State], windows: list[Scores]) -> list[str]:
        """Returns the differences of loss and scores, in total and over windows."""
        found: dict[str, Any] = self._quality.look(state, windows)
        spans = ("total", "window", "windows", "updates", "clipped", "evicted", "rate_left")
        return [
            f"metrics.{span}: the round log has {expected}, computed {computed}"
            for span in spans
            if (expected := plain(log.metrics.get(span))) != (computed := plain(found.get(span)))
        ]

    def _differences(self, log: RoundLog, engine: Engine, state: State, expected: Stored) -> list[str]:
        manifest, found = expected.manifest, []
        for what, in_snapshot, computed in (
            ("digest", expected.digest, log.digest),
            ("chain of round logs", manifest.chain, self._chain),
            ("counts", manifest.counts, self._counts),
            ("metrics", plain(manifest.metrics), plain(log.metrics)),
        ):
            if in_snapshot != computed:
                found.append(
                    f"{what}: the snapshot has {_format_value(in_snapshot)}, the round log {_format_value(computed)}"
                )
        return found + _payload_differences(engine.layout, state, expected)


def _payload_differences(layout: Layout, state: State, expected: Stored) -> list[str]:
    assert expected.trainer is not None  # version() fetches the whole snapshot
    found = []
    for what, ours, theirs in (
        ("parameters", model_payload(layout, state), expected.model),
        ("trainer state", trainer_payload(layout, state), expected.trainer),
    ):
        if bytes(ours) != bytes(theirs):
            a, b = (np.frombuffer(payload, np.uint8) for payload in (ours, theirs))
            count = int((a != b).sum()) if len(a) == len(b) else abs(len(a) - len(b))
            found.append(f"{what}: {count} of {len(b)} bytes differ")
    return found


def _format_value(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
