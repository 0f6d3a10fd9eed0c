"""Rounds in native code: averaging, statistics, rejection and restarts, without a process or Kafka."""

from __future__ import annotations

import numpy as np

from streamtrain import _native
from streamtrain.compute.state import view
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
    rows = np.concatenate([numbers for numbers, _ in batches(0, 9)])[:, :2].astype(np.float32).astype(np.float64)
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
