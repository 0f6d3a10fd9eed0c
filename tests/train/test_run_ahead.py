"""Rounds over a plan that runs ahead: the same bits and the same account as over one that waits at each step."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from looped import over

from streamtrain import _native
from streamtrain.compute.model import aligned
from streamtrain.compute.state import view
from tests.train.arena_run import ArenaRun, batch, batches

BAD = batch(3)
BAD[0][2, 2], BAD[0][3, 2] = 3e38, -3e38   # not standardised: the products overflow
WORKING = 0
FREQUENCY = 8


class LoggedRun(ArenaRun):
    """With the round log that the coordinator takes."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers, FREQUENCY)
        self.log = _native.RoundLogThread(self.ring)
        self.log.start()

    def train(self, *batches: Any, **options: Any) -> None:
        super().train(*batches, **options)
        self.wait_for_log()

    def run(self, timeout_s: float = 0.02) -> None:
        for rounds, plan in self.crew:
            assert rounds.run(plan, timeout_s) == WORKING

    def wait_for_log(self) -> None:
        while self.arena.progress()["slots_released"] < self.next_slot:
            pass


class Deferred:
    """A plan that runs no step before collect(), as on a device; asserts that the caller keeps to Plan's order."""

    def __init__(self, inner: _native.Plan, steps_ahead: int) -> None:
        self.inner = inner
        self.steps_ahead = steps_ahead
        self.waiting: list[tuple[int, bytes]] = []   # slot address, step block
        self.most_waiting = 0
        self.blocks = aligned(steps_ahead * _native.STEP_BYTES)
        self.plan = _native.ForeignPlan(
            inner.rows, inner.width, dict(train=self.train, predict=inner.predict), self.begin_round, self.end_round,
            self.enqueue, self.collect, steps_ahead,
        )  # fmt: skip
        self.step_address = self.plan.step.address

    def enqueue(self, slot: int) -> None:
        assert len(self.waiting) < self.steps_ahead
        self.waiting.append((slot, ctypes.string_at(self.step_address, _native.STEP_BYTES)))
        self.most_waiting = max(self.most_waiting, len(self.waiting))

    def collect(self) -> int:
        assert self.waiting
        self.blocks[:] = 0xFF   # what was handed out before is over
        for at, (slot, block) in enumerate(self.waiting):
            step = view(self.inner.step.address, _native.STEP_BYTES)
            step[:] = np.frombuffer(block, np.uint8)
            self.inner.train(slot)
            self.blocks[at * len(step) : (at + 1) * len(step)] = step
        self.waiting.clear()
        return int(self.blocks.ctypes.data)

    def train(self, slot: int) -> None:
        self.enqueue(slot)
        ctypes.memmove(self.step_address, self.collect(), _native.STEP_BYTES)

    def begin_round(self) -> None:
        assert not self.waiting
        self.inner.begin_round()

    def end_round(self) -> None:
        assert not self.waiting
        self.inner.end_round()


class DeferredRun(LoggedRun):
    """Its workers' plans run their steps when they are collected."""

    def __init__(self, workers: int, steps_ahead: int) -> None:
        self.steps_ahead = steps_ahead
        self.deferred: dict[int, Deferred] = {}
        super().__init__(workers)

    def worker(self, index: int) -> tuple[_native.Worker, _native.Plan]:
        rounds, plan = super().worker(index)
        self.deferred[index] = Deferred(plan, self.steps_ahead)
        return rounds, self.deferred[index].plan


def pair(steps_ahead: int, workers: int = 2) -> tuple[LoggedRun, DeferredRun]:
    """The same first round behind both."""
    runs = LoggedRun(workers), DeferredRun(workers, steps_ahead)
    for run in runs:
        run.train(*batches(0, FREQUENCY * workers))
    return runs


def assert_same(direct: LoggedRun, deferred: DeferredRun) -> None:
    assert np.array_equal(direct.state(), deferred.state())
    assert direct.log.take() == deferred.log.take()


@over("steps_ahead", [1, 3, 64])
def test_the_bits_are_those_of_the_plan_that_waits(steps_ahead: int) -> None:
    direct, deferred = pair(steps_ahead)
    for first in (16, 29):   # with a short slot, an empty one, and fewer slots for a worker
        given = [*batches(first, first + 5), batch(99, rows=5), batch(99, rows=0), *batches(first + 7, first + 13)]
        for run in (direct, deferred):
            run.train(*given)
    assert_same(direct, deferred)
    assert deferred.deferred[0].most_waiting == min(steps_ahead, 8)


@over("steps_ahead", [1, 3, 64])
@over("bad", [(0,), (5,), (15,), (2, 4, 7)])
def test_the_lowest_bad_slot_is_left_out_and_the_round_done_again(steps_ahead: int, bad: tuple[int, ...]) -> None:
    direct, deferred = pair(steps_ahead)
    for run in (direct, deferred):
        run.train(*(BAD if at in bad else batch(16 + at) for at in range(16)))
    assert np.isfinite(deferred.views()["dense0.weight"]).all()
    assert_same(direct, deferred)


def test_a_step_without_weight_is_none_for_the_optimizer() -> None:
    direct, deferred = pair(64)
    for run in (direct, deferred):
        run.fill(batches(16, 32))
        for slot in (18, 19, 24):
            run.clear_weights(slot)
        run.train()
    assert_same(direct, deferred)
    assert deferred.views()["optimizer.steps"][0] == 8 + 7   # of worker 1, which had one slot without weight


@over("bad", [(), (1,), (6,)])
def test_a_deadline_in_mid_round_keeps_what_is_in_flight(bad: tuple[int, ...]) -> None:
    direct, deferred = pair(64, workers=1)
    given = [BAD if at in bad else batch(16 + at) for at in range(8)]
    direct.train(*given)
    for filled in (3, 5, 8):
        deferred.fill(given[:filled], closed=False)
        deferred.run()
        assert len(deferred.deferred[0].waiting) == filled
    deferred.fill(given)
    deferred.run()
    deferred.wait_for_log()
    assert_same(direct, deferred)


def test_a_round_begun_again_drops_what_is_in_flight() -> None:
    direct, deferred = pair(64, workers=1)
    deferred.fill(batches(16, 19), closed=False)
    deferred.run()
    for run in (direct, deferred):
        run.train(*batches(16, 24))   # begins anew
    assert np.array_equal(direct.state(), deferred.state())


def test_a_round_another_finished_drops_what_is_in_flight() -> None:
    direct, deferred = pair(64, workers=1)
    deferred.fill(batches(16, 19), closed=False)
    deferred.run()
    former, deferred.crew = deferred.crew, [deferred.worker(0)]
    for run in (direct, deferred):
        run.train(*batches(16, 24))
    deferred.crew = former
    direct.train(*batches(24, 32))
    deferred.fill(batches(24, 32))
    deferred.run()
    assert deferred.arena.progress()["finished_round"] == 2
    assert np.array_equal(direct.state(), deferred.state())
