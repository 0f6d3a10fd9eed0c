"""Trains closed rounds again under one set of terms, worker after worker in this process, and compares what came out;
folds what many hosts contributed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from streamtrain import _native
from streamtrain.columns import formats
from streamtrain.columns.schema import Schema
from streamtrain.compute import schedules
from streamtrain.compute.model import Model, aligned
from streamtrain.compute.module import Module
from streamtrain.compute.state import Layout, view
from streamtrain.compute.windows import Scores, Windows
from streamtrain.errors import CheckFailed, UserMistake
from streamtrain.kafka.reader import TIMEOUT_S
from streamtrain.record_sources.source_kind import RecordReader, source_of
from streamtrain.schemas import decoded_by, lookup_in
from streamtrain.topics.rounds import RoundLog, Structs
from streamtrain.topics.terms import Terms

State = npt.NDArray[np.uint8]
_DEAD_LETTER_BYTES = 4096  # nobody writes any


class Round(NamedTuple):
    """One round of a log with its slots and their ranges."""

    number: int
    closed_window: bool
    slots: Structs
    ranges: Structs


def rounds_of(log: RoundLog) -> Iterator[Round]:
    """The log's rounds in order."""
    slot = part = 0
    for round_ in log.rounds:
        slots = log.slots[slot : slot + int(round_["slots"])]
        count = int(slots["range_count"].sum(dtype=np.int64))
        yield Round(int(round_["round"]), bool(round_["closed_window"]), slots, log.ranges[part : part + count])
        slot += len(slots)
        part += count


class Mean:
    """A lineage's state as the newest mean of an arena, and the windows that close after it."""

    def __init__(self, arena: _native.Arena, layout: Layout) -> None:
        self._arena = arena
        self.layout = layout
        self._coordinator = _native.CoordinatorEnd(arena)

    def begin(
        self, first_round: int, state: State, rate: float = 0.0, seed: int = 0, joins: bool = False
    ) -> None:
        """Goes on from `state`, the published form of the state before `first_round`."""
        self._coordinator.unpin()
        view(self._arena.mean_address(0), self.layout.state_bytes)[:] = state
        self._coordinator.begin(round=first_round - 1, learning_rate=rate, seed=seed, joins=joins)
        self._windows = Windows(self._coordinator, self.layout, state)

    def state(self) -> State:
        """Returns a copy of the state after the newest round, in its published form."""
        state = aligned(self.layout.state_bytes)
        state[:] = self._newest()
        return state

    def _newest(self) -> State:
        buffer, _ = self._coordinator.pin_newest()
        return view(self._arena.mean_address(buffer), self.layout.state_bytes)

    def window(self) -> list[Scores]:
        """Returns the scores at the end of the window that closed with the newest round, if one did."""
        return self._windows.take(self._newest())

    def _let_window_close(self, closes: bool) -> None:
        """A window closes with the next round where the log closes one, if it has its rows."""
        self._coordinator.allow_windows(self._windows.closed + closes)


class Fold(Mean):
    """An arena without workers, whose rounds are folds of contributions."""

    def __init__(self, model: Model) -> None:
        arena = _native.Arena.create(
            workers=1,
            averaging_frequency=1,
            slot_count=2,
            slot_layout=_native.SlotLayout.make(1, 1, [("weight", "f32", 1)]),
            state_layout=model.layout,
            dead_letter_bytes=_DEAD_LETTER_BYTES,
        )
        super().__init__(arena, model.layout.published(1))
        self._fold = _native.ContributionFold(arena)

    def fold(self, contributions: Sequence[tuple[State, float]], closes_window: bool) -> None:
        """Folds joined states, each with its weight, into the next round."""
        self._let_window_close(closes_window)
        self._fold.fold([(state.ctypes.data, weight) for state, weight in contributions])


class Engine(Mean):
    """An arena with every worker of `terms`; goes on from round to round, whatever log they stand in.

    `model_spec` and `schema` are those of the lineage's manifests.
    """

    def __init__(
        self,
        schema: Schema,
        model_spec: Mapping[str, Any],
        terms: Terms,
        reader: RecordReader,
        network: Module | None = None,
    ) -> None:
        self.terms = terms
        self._reader, self._records = reader, _native.LogSource(reader.open)
        self._rate = _rates(terms)
        model = Model(terms.model_spec(model_spec), network)
        slot_layout = _native.SlotLayout.make(terms.slot.row_capacity, terms.slot.range_capacity, schema.block_specs())
        arena = _native.Arena.create(
            workers=terms.workers,
            averaging_frequency=terms.averaging_frequency,
            slot_count=2 * terms.round_slots,
            slot_layout=slot_layout,
            state_layout=model.layout,
            dead_letter_bytes=_DEAD_LETTER_BYTES,
        )
        super().__init__(arena, model.layout.published(terms.workers))
        decoded, self._format = _decoded_as(terms, schema)
        self._plan = decoded.native_plan(slot_layout)
        self._schemas: bytes | None = None  # of the log at hand
        self._supervisor = _native.SupervisorEnd(self._arena)
        self._ingest = _native.IngestEnd(self._arena)
        self._workers = [self._worker(model, slot_layout, index) for index in range(terms.workers)]
        self._next_slot = 0

    def _worker(self, model: Model, slots: _native.SlotLayout, index: int) -> tuple[_native.Worker, _native.Plan]:
        worker = _native.Worker(self._arena, index)
        if not schedules.is_constant(self.terms.learning_rate):
            worker.follow(self._rate)
        addresses = (worker.state_address, worker.base_address, worker.share_address)
        return worker, model.compile("cpu", slots, *addresses)

    def read_by(self, log: RoundLog) -> None:
        """The records of rounds from now on name schemas as this log tells them."""
        if self._schemas == (schemas := log.schemas.tobytes()):
            return
        self._schemas = schemas
        format = decoded_by(self._format, lookup_in(log.named_schemas))
        self._filler = _native.LogFiller(self._arena, self._records, TIMEOUT_S, format, self._plan)

    def begin_with(self, terms: Terms, state: State, joins: bool = False) -> None:
        """Goes on from `state` in the first round of `terms`, which differ from the engine's in round and seed at most.

        With `joins` a round's state is a contribution, which is to be folded.
        """
        self.begin(terms.first_round, state, self._rate(0), terms.seed, joins)
        self._next_slot = 0

    def train(self, round_: Round) -> list[str]:
        """Trains the round; returns what of its batches' losses came out otherwise than the log says."""
        first_slot = self._next_slot
        self._let_window_close(round_.closed_window)
        self._fill(round_, first_slot)
        for worker, plan in self._workers:
            worker.run_closed_round(plan)
        self._next_slot += len(round_.slots)
        return [
            f"round {round_.number} slot {int(slot['slot'])}: loss, weight and rejection {expected}, computed {found}"
            for index, slot in enumerate(round_.slots)
            if (found := self._arena.slot_result(first_slot + index)) != (expected := _result(slot))
        ]

    def _fill(self, round_: Round, first_slot: int) -> None:
        rows = []
        at = 0
        for index, slot in enumerate(round_.slots):
            ranges = round_.ranges[at : at + int(slot["range_count"])]
            at += len(ranges)
            filled = self._filled(first_slot + index, ranges)
            if filled != int(slot["rows"]):
                raise CheckFailed(
                    f"round {round_.number} slot {int(slot['slot'])}: expected {int(slot['rows'])} rows, "
                    f"decoded {filled}"
                )
            rows.append(filled)
            if slot["rejected"] == _native.Rejected.CRASHED:  # a batch that was not finite is found again
                self._supervisor.reject(first_slot + index, index % self.terms.workers)
        self._ingest.fill_round(round=round_.number, first_slot=first_slot, rows=rows)

    def _filled(self, slot: int, ranges: Structs) -> int:
        """Returns how many rows the ranges have brought into the slot."""
        try:
            status, rows, at = self._filler.fill(slot, ranges.tobytes())
        except _native.KafkaFailure as failure:
            raise self._reader.explained(failure) from None
        if status != _native.LogStatus.FILLED:
            raise self._reader.missing(ranges[at], status == _native.LogStatus.SILENT)
        return rows


def _rates(terms: Terms) -> Callable[..., float]:
    """The learning rate of a round by the state it starts from; CheckFailed where this build has no such schedule."""
    try:
        return schedules.rates(terms.learning_rate)
    except UserMistake as mistake:
        raise CheckFailed(f"round {terms.first_round}: {mistake}") from None


def _decoded_as(terms: Terms, schema: Schema) -> tuple[Schema, dict[str, Any]]:
    decoded, format = source_of(terms.topic_id).decoded_as(schema, terms.format)
    try:
        return decoded, formats.checked(format)
    except UserMistake as mistake:
        raise CheckFailed(f"round {terms.first_round}: {mistake}") from None


def _result(slot: Any) -> tuple[float, float, int]:
    return float(slot["loss_sum"]), float(slot["weight_sum"]), int(slot["rejected"])
