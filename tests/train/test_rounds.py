"""Rounds in native code: averaging, statistics, moments that hold wrong cells back, rejection and restarts, without a
process or Kafka; over a plan that runs ahead the same bits and account as over one that waits."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain import _native
from streamtrain._native import WINDOWS
from streamtrain.compute.model import aligned
from streamtrain.compute.moments import MOMENTS
from streamtrain.compute.state import view, views
from streamtrain.compute.windows import Windows
from tests.oracles import ops as oracles
from tests.oracles.ops import tally
from tests.train.arena_run import ROWS, SPEC, ArenaRun, batch, batches


def test_mean_is_weighted_by_rows_in_worker_order() -> None:
    both, alone = ArenaRun(frequency=1), []
    both.train(batch(1), batch(2, rows=5))
    # the other worker's slot of the first round is seen by the statistics pass only
    for other, rows in ((1, ROWS), (0, 5)):
        run = ArenaRun(frequency=1)
        run.train(batch(1), batch(2, rows=5), rejected=(other,))
        alone.append((rows, run.views()))
    for name, array in both.views().items():
        if name.startswith(("dense0", "output", "adam")):
            expected = sum((rows / (ROWS + 5)) * views[name].astype(np.float64) for rows, views in alone)
            assert np.array_equal(array, expected.astype(np.float32)), name


def test_a_first_round_begun_again_is_standardised_by_its_pass() -> None:
    """A batch that is not finite is left out as one that killed its workers is; the pass sees the rows of both."""
    first = batches(0, 4)
    first[3][0][2, 2] = np.inf
    again, never_begun = ArenaRun(), ArenaRun()
    again.train(*first)
    never_begun.train(*first, rejected=(3,))
    assert np.array_equal(again.state(), never_begun.state())


def test_statistics_are_those_of_all_rows_and_counted_once() -> None:
    run = ArenaRun()
    for first, end in ((0, 4), (4, 8), (8, 9)):
        run.train(*batches(first, end))
    views = run.views()
    rows = np.concatenate([numbers for numbers, _ in batches(0, 9)])[:, :2]
    count, mean, squares = views["standardize.numbers"][:2, :3].T
    assert (count == len(rows)).all()
    np.testing.assert_allclose(mean, rows.mean(0), rtol=1e-12)
    np.testing.assert_allclose(squares, rows.var(0) * len(rows), rtol=1e-10)
    assert views["score.rows"].reshape(-1)[0] == len(rows)
    assert views["score.histogram"].reshape(-1, 3)[:, 0].sum() == len(rows)
    assert views["optimizer.steps"][0] == 5  # worker 0: 2 + 2 + 1


def test_a_round_is_a_function_of_its_start_and_slots() -> None:
    runs = [ArenaRun(), ArenaRun()]
    for run in runs:
        run.train(*batches(0, 4))
        run.train(*batches(4, 8))
    assert np.array_equal(runs[0].state(), runs[1].state())


def test_a_worker_that_starts_again_in_mid_round_changes_nothing() -> None:
    undisturbed, disturbed = ArenaRun(), ArenaRun()
    undisturbed.train(*batches(0, 4))
    undisturbed.train(*batches(4, 8))
    disturbed.train(*batches(0, 4))
    second, plan = disturbed.crew[1]
    disturbed.fill(batches(4, 6), closed=False)
    assert second.run(plan, 0.1) == _native.WorkerStatus.WORKING  # dies after a step
    disturbed.fill(batches(4, 8))
    first, plan = disturbed.crew[0]
    first.run_closed_round(plan)  # published; the successor must not train again
    disturbed.crew = [disturbed.worker(index) for index in range(2)]
    rounds, plan = disturbed.crew[1]
    rounds.run_closed_round(plan)
    assert disturbed.arena.progress()["finished_round"] == 1
    assert np.array_equal(undisturbed.state(), disturbed.state())


def test_a_batch_that_is_not_finite_is_left_out_and_the_round_done_again() -> None:
    bad = batch(3)
    bad[0][2, 2] = 3e38  # not standardised: the products overflow
    bad[0][3, 2] = -3e38
    poisoned, without = ArenaRun(frequency=8), ArenaRun(frequency=8)
    second = [*batches(16, 20), bad, *batches(20, 30)]
    for run, rejected in ((poisoned, ()), (without, (4,))):
        run.train(*batches(0, 16))
        run.train(*second, rejected=rejected)
    assert np.isfinite(poisoned.views()["dense0.weight"]).all()
    assert np.array_equal(poisoned.state(), without.state())


def test_a_round_without_rows_leaves_parameters_as_they_are() -> None:
    run = ArenaRun()
    run.train(*batches(0, 4))
    before = run.state()
    run.train(batch(9, rows=0))
    assert np.array_equal(before, run.state())


def test_local_optimizer_state_stays_with_its_worker() -> None:
    run = ArenaRun(spec={**SPEC, "average_optimizer_state": False})
    run.train(*batches(0, 4))
    run.train(*batches(4, 8))
    views = run.views()
    assert "adam.m.output.bias" not in views
    assert not np.array_equal(views["adam.m.output.weight@0"], views["adam.m.output.weight@1"])


def test_the_pinned_mean_is_left_alone() -> None:
    run = ArenaRun()
    run.train(*batches(0, 4))
    pinned = run.state()
    buffer, round_ = run.ring.pin_newest()
    assert round_ == 0
    for first in range(4, 24, 4):
        run.train(*batches(first, first + 4))
    assert np.array_equal(pinned, view(run.arena.mean_address(buffer), run.layout.state_bytes))


def test_every_published_value_is_finite_or_training_says_that_it_diverges() -> None:
    run = ArenaRun(frequency=1)
    run.train(batch(1), batch(2))
    bad = np.full((ROWS, 4), 3e38), np.ones(ROWS, np.float32)
    run.fill([bad, bad])
    for rounds, plan in run.crew:
        rounds.run_closed_round(plan)
    assert run.arena.progress()["finished_round"] == 0
    assert _native.Worker(run.arena, 1).run(run.crew[1][1], 0.2) == _native.WorkerStatus.DIVERGED


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
    """A run whose workers' plans run their steps when they are collected."""

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


MOMENT_ROWS, BATCH = 12_000, 8
WRONG = 1e12
Array = np.ndarray[Any, Any]


def normal(random: np.random.Generator) -> Array:
    return random.normal(3, 2, MOMENT_ROWS)


def flag_of_one_in_a_hundred(random: np.random.Generator) -> Array:
    return (random.random(MOMENT_ROWS) < 0.01).astype(float)


def constant_then_varying(random: np.random.Generator) -> Array:
    return np.concatenate([np.zeros(6_000), random.normal(5, 1, MOMENT_ROWS - 6_000)])


def shifted_by_a_thousand_deviations(random: np.random.Generator) -> Array:
    return random.normal(0, 1, MOMENT_ROWS) + np.where(np.arange(MOMENT_ROWS) < 6_000, 0, 1_000)


def constant(random: np.random.Generator) -> Array:
    return np.full(MOMENT_ROWS, 7.0)


STREAMS = [normal, flag_of_one_in_a_hundred, constant_then_varying, shifted_by_a_thousand_deviations, constant]


def trained(
    columns: Array, workers: int = 1, frequency: int = 2, batch: int = BATCH, first: int = 0, **settings: Any
) -> ArenaRun:
    """A run over [rows, 4] columns, the first two of which are standardised; the first round may have few rows."""
    standardize = [settings or True, settings or True, False, False]
    spec = {**SPEC, "input": {"numbers": 4, "standardize": standardize}}
    run = ArenaRun(workers=workers, frequency=frequency, spec=spec)
    if first:
        run.train((columns[:first], np.ones(first)))
        columns = columns[first : first + (len(columns) - first) // batch * batch]
    batches = [(part, (part[:, 2] > 0).astype(np.float32)) for part in np.split(columns, len(columns) // batch)]
    for at in range(0, len(batches), workers * frequency):
        run.train(*batches[at : at + workers * frequency])
    return run


def moments_of(run: ArenaRun, column: int) -> dict[str, float]:
    return dict(zip(MOMENTS, run.views()["standardize.numbers"][column].tolist(), strict=True))


def with_wrong_cell(stream: Callable[[np.random.Generator], Array], at: int) -> Array:
    """[rows, 4]: the stream, the stream with one wrong cell, two columns to learn from."""
    random = np.random.default_rng(3)
    clean = stream(random)
    spoiled = clean.copy()
    spoiled[at] = WRONG
    return np.column_stack([clean, spoiled, random.normal(size=(MOMENT_ROWS, 2))])


def assert_near(run: ArenaRun, column: int, expected: Array, rel: float = 0.05) -> None:
    """Mean and deviation of a column are about those of these values."""
    found = moments_of(run, column)
    assert found["mean"] == pytest.approx(expected.mean(), rel=rel)
    assert np.sqrt(found["squares"] / found["count"]) == pytest.approx(expected.std(), rel=rel)


@over("at", [0, 20, 40, 5_000])
@over("stream", STREAMS)
def test_one_wrong_cell_moves_mean_and_deviation_by_less_than_a_twentieth(
    stream: Callable[[np.random.Generator], Array], at: int
) -> None:
    columns = with_wrong_cell(stream, at)
    run = trained(columns)
    for column in (0, 1):
        assert_near(run, column, columns[:, 0])
        assert moments_of(run, column)["count"] == MOMENT_ROWS
    assert moments_of(run, 1)["outside"] >= 1 and moments_of(run, 1)["clipped"] >= 1


@over("workers", [1, 2, 3])
def test_the_moments_are_those_of_all_workers(workers: int) -> None:
    columns = with_wrong_cell(normal, 40)
    run = trained(columns, workers)
    for column in (0, 1):
        assert_near(run, column, columns[:, 0], rel=0.02)


def test_a_shift_counts_from_its_first_round_on() -> None:
    random = np.random.default_rng(3)
    columns = random.normal(size=(6_016, 4))
    columns[6_000:, 0] += 1_000  # one round
    assert_near(trained(columns), 0, columns[:, 0])


def test_a_wrong_cell_alone_in_its_round_is_left_out_too() -> None:
    """A row a round, as on a slow stream: one value outside is most of its round."""
    columns = with_wrong_cell(normal, 400)[:1_000]
    run = trained(columns, frequency=1, batch=1)
    assert np.sqrt(moments_of(run, 1)["squares"] / 1_000) == pytest.approx(columns[:, 0].std(), rel=0.1)


def test_what_was_wrong_from_the_start_is_outnumbered() -> None:
    columns = with_wrong_cell(normal, 0)[:2_000]
    assert_near(trained(columns, first=1), 1, columns[:, 0])


def test_without_a_clip_every_value_counts_and_none_is_cut() -> None:
    columns = with_wrong_cell(normal, 5_000)
    run = trained(columns, clip=0)
    found = moments_of(run, 1)
    assert found["mean"] == pytest.approx(columns[:, 1].mean(), rel=1e-9)
    assert found["outside"] == found["clipped"] == 0


def test_the_model_sees_at_most_the_clip_and_clips_are_counted() -> None:
    columns = np.random.default_rng(5).normal(size=(4_000, 4))
    share = moments_of(trained(columns, clip=2.5), 0)["clipped"] / 4_000
    assert share == pytest.approx(0.0124, abs=0.004)   # of a normal distribution, beyond 2.5 deviations


def test_a_half_life_forgets() -> None:
    random = np.random.default_rng(7)
    columns = random.normal(size=(MOMENT_ROWS, 4))
    columns[6_000:, 0] += 5
    kept, forgotten = moments_of(trained(columns), 0), moments_of(trained(columns, half_life=1_000), 0)
    assert kept["mean"] == pytest.approx(2.5, abs=0.1)
    assert forgotten["mean"] == pytest.approx(5 * (1 - 2.0**-6), abs=0.1)
    assert forgotten["count"] == pytest.approx(1_000 / np.log(2), rel=0.02)


def test_below_its_floor_a_column_is_only_centred() -> None:
    random = np.random.default_rng(11)
    columns = random.normal(size=(2_000, 4)) * [0.1, 2, 1, 1] + 100
    run = trained(columns, floor=0.5)
    moments = run.views()["standardize.numbers"]
    mean, scale, *limits = (np.empty(4, np.float32) for _ in range(5))
    oracles.of("standardize_scale").reference(4, moments, np.array([1, 1, 0, 0], np.uint8), mean, scale, *limits)
    assert mean[:2] == pytest.approx(columns[:, :2].mean(0), rel=1e-3)
    assert scale[:2] == pytest.approx([1, 1 / columns[:, 1].std()], rel=0.02)
    unfloored = trained(columns).views()
    assert not np.array_equal(unfloored["dense0.weight"], run.views()["dense0.weight"])
    keys = ("count", "mean", "squares", "outside")   # what is held back goes by the deviation there is
    assert [moments_of(run, 0)[name] for name in keys] == [moments_of(trained(columns), 0)[name] for name in keys]


@over("tiny", [1e-39, 1e-42, 0.0])
@over("settings", [{}, {"clip": 0.0, "floor": 0.0}])  # which also cut what is not finite
def test_a_deviation_that_float32_cannot_divide_by_only_centres(tiny: float, settings: dict[str, float]) -> None:
    random = np.random.default_rng(9)
    columns = random.normal(size=(320, 4))
    columns[:, 0] = tiny * random.integers(0, 2, 320)
    columns[:, 1] = 1e9   # a whole number of float32 spacings
    run = trained(columns, **settings)
    assert np.isfinite(run.views()["dense0.weight"]).all()
    assert run.views()["score.loss"].reshape(-1)[1] == 320   # no batch was left out


def test_the_statistics_are_the_same_bits_whichever_worker_begins_again() -> None:
    columns = with_wrong_cell(constant_then_varying, 20)[:640]
    assert np.array_equal(trained(columns, 2).state(), trained(columns, 2).state())


# -- windows of scored rows --------------------------------------------------------------------------------------------


def test_windows_close_at_round_ends_until_the_ring_is_full() -> None:
    """Only this finds an entry that is overwritten before it is taken, and a window that closes with too few rows."""
    run, slots = ArenaRun(frequency=32), 64
    windows, total, found = Windows(run.ring, run.layout, run.state()), 0, []
    for rounds in (10 * WINDOWS + 15, 1, 9, 1):   # 9.8 rounds are 10,000 rows
        for _ in range(rounds):
            run.fill(batches(0, slots)) if run.next_slot < 2 * slots else fill_again(run, slots)
            run.train()
        ends = [int(end["score.rows"][0]) for end in windows.take(run.state())]
        found.append(np.diff([total, *ends]).tolist())
        total = ends[-1] if ends else total
    assert found == [[10_240] * WINDOWS, [16 * 1024], [], [10_240]]
    views = run.views()
    for name, block in views.items():
        if name.startswith("window.") and name not in ("window.closed", "window.curves"):
            assert np.array_equal(block, views[name.replace("window.", "score.")])


def test_a_closed_window_has_the_exact_figures_of_its_rows() -> None:
    """Only this finds a tally that a window does not empty, whose figures are taken before the last round's rows, or
    which is given up for ever, or never, where all logits differ.

    Where nothing is learned and all numbers are 0, each round has one logit: that of the labels' shares before it."""
    import sklearn.metrics as sk  # slow to import

    run, rng = ArenaRun(frequency=32, learning_rate=0.0), np.random.default_rng(3)
    windows, zeros_in = Windows(run.ring, run.layout, run.state()), np.zeros((ROWS, 4))
    start = view(run.arena.mean_address(run.ring.pin_newest()[0]), run.layout.state_bytes)
    views(run.layout, start)["output.weight"][:] = 1   # other numbers have another logit
    for window in range(6):
        rows: list[tuple[float, int, float]] = []   # logit, label and weight
        for _ in range(10):
            before = run.views()
            zeros, ones = before["label.classes"]
            rate = rng.choice([0.05, 0.5, 0.9])
            numbers = [rng.normal(size=(ROWS, 4)) if window == 3 else zeros_in for _ in range(64)]
            run.train(*((each, (rng.random(ROWS) < rate).astype(np.float32)) for each in numbers))
            gained = (run.views()["score.histogram"] - before["score.histogram"])[..., 0].sum(1)
            rows += [(float(np.log((ones + 0.5) / (zeros + 0.5))), label, gained[label]) for label in (0, 1)]
        z, y, w = map(np.array, zip(*rows, strict=True))
        (end,) = windows.take(run.state())
        found, left = end["score.curves"].tolist(), run.views()["score.distinct"]
        if window in (1, 2, 5):   # the first round of all has a pass of its own over the labels
            exact = [score(y, z, sample_weight=w) for score in (sk.roc_auc_score, sk.average_precision_score)]
            assert found == pytest.approx(exact, rel=1e-9) and abs(exact[0] - 0.5) > 0.01
        elif window:   # too many logits, or after a window of too many
            assert found == [-1, -1]
        assert left[0, 0] == (tally.FULL if window == 3 else 0) and not left[1:].any()


def fill_again(run: ArenaRun, slots: int) -> None:
    """A round of the rows that lie in the ring."""
    run.ingest.fill_round(round=run.next_round, first_slot=run.next_slot, rows=[ROWS] * slots)
    run.next_round, run.next_slot = run.next_round + 1, run.next_slot + slots
