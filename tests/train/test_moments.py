"""Standardising through whole rounds: what one wrong cell, a flag, a shift and a constant do to a column's moments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain.compute.moments import MOMENTS
from streamtrain.compute.ops import standardize_scale
from tests.train.arena_run import SPEC, ArenaRun

ROWS, BATCH = 12_000, 8
WRONG = 1e12
Array = np.ndarray[Any, Any]


def normal(random: np.random.Generator) -> Array:
    return random.normal(3, 2, ROWS)


def flag_of_one_in_a_hundred(random: np.random.Generator) -> Array:
    return (random.random(ROWS) < 0.01).astype(float)


def constant_then_varying(random: np.random.Generator) -> Array:
    return np.concatenate([np.zeros(6_000), random.normal(5, 1, ROWS - 6_000)])


def shifted_by_a_thousand_deviations(random: np.random.Generator) -> Array:
    return random.normal(0, 1, ROWS) + np.where(np.arange(ROWS) < 6_000, 0, 1_000)


def constant(random: np.random.Generator) -> Array:
    return np.full(ROWS, 7.0)


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
    return np.column_stack([clean, spoiled, random.normal(size=(ROWS, 2))])


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
        assert moments_of(run, column)["count"] == ROWS
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


def test_a_wrong_cell_alone_in_its_round_is_held_back_too() -> None:
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
    assert found["mean"] == pytest.approx(columns[:, 1].astype(np.float32).mean(dtype=np.float64), rel=1e-9)
    assert found["outside"] == found["clipped"] == 0


def test_the_model_sees_at_most_the_clip_and_clips_are_counted() -> None:
    columns = np.random.default_rng(5).normal(size=(4_000, 4))
    share = moments_of(trained(columns, clip=2.5), 0)["clipped"] / 4_000
    assert share == pytest.approx(0.0124, abs=0.004)   # of a normal distribution, beyond 2.5 deviations


def test_a_half_life_forgets() -> None:
    random = np.random.default_rng(7)
    columns = random.normal(size=(ROWS, 4))
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
    standardize_scale.reference(4, moments, np.array([1, 1, 0, 0], np.uint8), mean, scale, *limits)
    assert mean[:2] == pytest.approx(columns[:, :2].mean(0), rel=1e-3)
    assert scale[:2] == pytest.approx([1, 1 / columns[:, 1].std()], rel=0.02)
    unfloored = trained(columns).views()
    assert not np.array_equal(unfloored["dense0.weight"], run.views()["dense0.weight"])
    held = ("count", "mean", "squares", "outside")   # what is held back goes by the deviation there is
    assert [moments_of(run, 0)[name] for name in held] == [moments_of(trained(columns), 0)[name] for name in held]


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
