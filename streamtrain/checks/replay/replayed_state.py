"""The state of a lineage, moved on log by log from a published snapshot, and what came out otherwise than published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from streamtrain.build import build_digest
from streamtrain.checks.replay.engine import Engine, Fold, Mean, State, rounds_of
from streamtrain.checks.replay.replay_report import Replayed
from streamtrain.checks.replay.reread_records import Readers
from streamtrain.columns.served import enlarged_state, schema_and_model
from streamtrain.compute.enlarged import enlarged
from streamtrain.compute.model import Model
from streamtrain.compute.module import Module
from streamtrain.compute.quality import Quality
from streamtrain.compute.snapshot import load, model_payload, trainer_payload
from streamtrain.compute.state import Layout, views
from streamtrain.compute.windows import Scores
from streamtrain.errors import CheckFailed
from streamtrain.topics.chunks import Stored
from streamtrain.topics.publication_logs import RoundLogs
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
        self._mean: Mean | None = None  # that has the state
        self._engines: list[Engine] = []  # of the hosts that contributed last
        self._quality = Quality(self._schema.numbers)

    def follow(self, logs: RoundLogs, expected: Stored | None) -> Replayed:
        """Moves on to the snapshot `logs` lead to, which is compared where it is given.

        RecordsGone where the records of a round are gone; CheckFailed where a log cannot be followed.
        """
        log = logs.first
        if not len(log.rounds):
            raise CheckFailed(f"round log of snapshot {log.version}: expected a round, got none")
        windows: list[Scores] = []
        mean, differences = self._folded(logs, windows) if logs.is_folded else self._trained(log, windows)
        state = mean.state()
        mismatches = differences[:_MAX_DIFFERENCES]
        if len(differences) > _MAX_DIFFERENCES:
            mismatches.append(f"and {len(differences) - _MAX_DIFFERENCES} more batches")
        mismatches += self._metric_differences(log, views(mean.layout, state), windows)
        self.version = log.version
        self._chain = reduce(chain_after, logs, self._chain)
        self._counts = reduce(counts_after, logs, self._counts)
        if expected is not None:
            mismatches += self._differences(log, mean, state, expected)
        return Replayed(log.version, len(log.rounds), logs.rows_trained, expected is not None, mismatches)

    def _trained(self, log: RoundLog, windows: list[Scores]) -> tuple[Mean, list[str]]:
        """Trains the rounds of a log of one host; returns the mean after them, and what differs. Adds to `windows`."""
        differences: list[str] = []
        for round_ in rounds_of(log):
            engine = self._engine_for(log.terms_at(round_.number), round_.number)
            engine.read_by(log)
            differences += engine.train(round_)
            differences += _close_window(engine, round_.number, round_.closed_window, windows)
        return engine, differences

    def _folded(self, logs: RoundLogs, windows: list[Scores]) -> tuple[Mean, list[str]]:
        """Trains each contribution from the state before and folds them, as _trained() does."""
        fold, differences, contributions = self._fold_for(logs.first.terms[0]), list[str](), []
        start, engines = fold.state(), list[Engine]()
        for log in logs:
            terms, (round_,) = log.terms[0], rounds_of(log)
            engine = next((each for each in [*engines, *self._engines] if _alike(each.terms, terms)), None)
            engine = engine or self._new_engine(terms)
            engines += [] if engine in engines else [engine]
            engine.begin_with(terms, start, joins=True)
            engine.read_by(log)
            differences += [f"host {log.host}: {text}" for text in engine.train(round_)]
            contributions.append((engine.state(), log.weight))
        self._engines = engines
        fold.fold(contributions, round_.closed_window)
        return fold, differences + _close_window(fold, round_.number, round_.closed_window, windows)

    def continue_as(self, stored: Stored) -> Replayed:
        """Passes on to the lineage that `stored` begins, which is compared: it is this state with its new classes."""
        _, model = schema_and_model(stored.manifest)
        layout = model.layout.published(stored.manifest.workers)
        if self._mean is None:
            state = enlarged_state(self._start, layout)
        else:
            state = enlarged(self._mean.layout, self._mean.state(), layout)
        self._begin(stored)
        return Replayed(stored.manifest.version, 0, 0, True, _payload_differences(layout, state, stored))

    def _engine_for(self, terms: Terms, round_: int) -> Engine:
        """The engine at work, or another that goes on from its state where the terms have changed."""
        now = self._mean
        if isinstance(now, Engine) and _alike(now.terms, terms) and now.terms.seed == terms.seed:
            return now
        engine = self._new_engine(terms)
        engine.begin_with(replace(terms, first_round=round_), self._state_for(engine))
        self._mean, self._engines = engine, []
        return engine

    def _fold_for(self, terms: Terms) -> Fold:
        """The fold at work, or another that goes on from the newest state. The terms are of any host."""
        if isinstance(self._mean, Fold):
            return self._mean
        fold = Fold(Model(terms.model_spec(self._start.manifest.model_spec), self._network))
        fold.begin(terms.first_round, self._state_for(fold))
        self._mean = fold
        return fold

    def _new_engine(self, terms: Terms) -> Engine:
        self._check(terms)
        spec, reader = self._start.manifest.model_spec, self._readers.of(terms, self._schema)
        return Engine(self._schema, spec, terms, reader, self._network)

    def _state_for(self, mean: Mean) -> State:
        """The newest state; at first that of the start."""
        if self._mean is not None:
            return self._mean.state()
        state = np.zeros(mean.layout.state_bytes, np.uint8)
        load(mean.layout, state, self._start.model, self._start.trainer)
        self._quality.begin(views(mean.layout, state), self._start.manifest.metrics)
        return state

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

    def _metric_differences(self, log: RoundLog, state: Mapping[str, State], windows: list[Scores]) -> list[str]:
        """Returns the differences of loss and scores, in total and over windows."""
        found: dict[str, Any] = self._quality.look(state, windows)
        spans = ("total", "window", "windows", "updates", "clipped", "evicted", "rate_left")
        return [
            f"metrics.{span}: the round log has {expected}, computed {computed}"
            for span in spans
            if (expected := plain(log.metrics.get(span))) != (computed := plain(found.get(span)))
        ]

    def _differences(self, log: RoundLog, mean: Mean, state: State, expected: Stored) -> list[str]:
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
        return found + _payload_differences(mean.layout, state, expected)


def _alike(one: Terms, other: Terms) -> bool:
    """An engine of the one trains what is trained under the other, if it begins with that one's seed."""
    return replace(one, first_round=other.first_round, seed=other.seed) == other


def _close_window(mean: Mean, round_: int, closes: bool, windows: list[Scores]) -> list[str]:
    """Adds the window that closed with the round; returns what is wrong if none did where the log closes one."""
    windows += (closed := mean.window())
    short = len(closed) < closes
    return [f"round {round_}: the round log closes a window that has not enough rows"] if short else []


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
