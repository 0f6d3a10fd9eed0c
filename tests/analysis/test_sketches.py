"""Sketches against what NumPy counts of all values, within the errors they state."""

from __future__ import annotations

import numpy as np
import pytest

from streamtrain.analysis.sketches import (
    DISTINCT_ERROR,
    EXACT,
    QUANTILE_ERROR,
    Distinct,
    Spread,
    stability_index,
)

RANDOM = np.random.default_rng(7)


@pytest.mark.parametrize("count", [0, 1, EXACT, EXACT + 1, 9_000, 12_000, 40_000, 1_000_000])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_how_many_differ(count: int, dtype: type) -> None:
    values = RANDOM.permutation(np.repeat(np.arange(count).astype(dtype), 2))
    found = Distinct()
    for part in np.array_split(values, 7):
        found.add(part)
    assert found.is_exact == (count <= EXACT)
    assert found.count == count if found.is_exact else abs(found.count / count - 1) < 4 * DISTINCT_ERROR


def test_a_negative_zero_is_no_other_value() -> None:
    found = Distinct()
    found.add(np.array([0.0, -0.0], np.float32))
    assert found.count == 1


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_quantiles_mean_and_deviation(scale: float) -> None:
    values = (np.concatenate([RANDOM.normal(3, 50, 50_000), np.zeros(500), RANDOM.exponential(7, 9_000)])).astype(
        np.float32
    ) * np.float32(scale)
    spread = Spread()
    for part in np.array_split(values, 11):
        spread.add(part)
    shares = [0, 0.01, 0.3, 0.5, 0.77, 0.999, 1]
    expected = np.quantile(values, shares, method="lower")
    for got, wanted in zip(spread.quantiles(shares), expected, strict=True):
        assert abs(got - wanted) <= 1.01 * QUANTILE_ERROR * abs(wanted)
    assert (spread.count, spread.least, spread.largest) == (len(values), values.min(), values.max())
    assert np.isclose(spread.mean, values.astype(np.float64).mean()) and np.isclose(
        spread.deviation, values.astype(np.float64).std()
    )
    edges = np.array([-40, -1, 0.5, 60]) * scale
    counted = np.bincount(np.searchsorted(edges, values, side="right"), minlength=5)
    assert np.abs(spread.histogram(edges) - counted).max() < 0.005 * len(values)
    assert spread.histogram(edges).sum() == len(values)


def test_drift_is_zero_of_the_same_and_grows() -> None:
    same, other = np.array([100, 200, 700]), np.array([300, 300, 400])
    assert stability_index(same, 3 * same) == 0
    expected = sum((b - a) * np.log(b / a) for a, b in zip(same / 1000, other / 1000, strict=True))
    assert np.isclose(stability_index(same, other), expected)
    assert stability_index(same, np.array([0, 0, 10])) > 0.25
