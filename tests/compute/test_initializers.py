"""What weights start from: of the variance that is said, by seed and place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamtrain.compute import initializers
from streamtrain.compute.model import Model
from streamtrain.errors import UserMistake

INPUTS, OUTPUTS = 300, 100
VARIANCE = {"glorot": 2 / (INPUTS + OUTPUTS), "he": 2 / INPUTS, "lecun": 1 / INPUTS, "zeros": 0.0}


def weights(spec: Any, seed: int = 3, **layer: Any) -> dict[str, np.ndarray[Any, Any]]:
    model = Model(spec(numbers=INPUTS, layers=[{"dense": OUTPUTS, "activation": "relu", **layer}]))
    return model.views(model.initial_state(seed))


@pytest.mark.parametrize("name", initializers.names())
def test_it_has_the_mean_and_variance_that_are_said(spec: Any, name: str) -> None:
    start = weights(spec, init=name)["dense0.weight"].astype(np.float64)
    variance = VARIANCE[name.partition("_")[0]]
    assert start.var() == pytest.approx(variance, rel=0.03) and abs(start.mean()) <= 4 * (variance / start.size) ** 0.5
    if name.endswith("normal"):
        z = start / variance**0.5
        assert [np.mean(abs(z) < bound) for bound in (1, 2)] == pytest.approx([0.683, 0.954], abs=0.01)
        assert (z**4).mean() == pytest.approx(2.9, abs=0.1)   # of twelve uniform numbers; 3 of a normal one
    if name.endswith("uniform"):
        assert abs(start).max() == pytest.approx((3 * variance) ** 0.5, rel=1e-3)


def test_it_goes_by_the_seed(spec: Any) -> None:
    one, same, other = (weights(spec, seed, init="he_normal")["dense0.weight"] for seed in (3, 3, 4))
    assert np.array_equal(one, same) and not np.array_equal(one, other)


def test_a_head_starts_at_0_unless_it_says_otherwise(spec: Any) -> None:
    for said, starts_at_0 in (({}, True), ({"init": "glorot_normal"}, False)):
        model = Model(spec(graph=[{"name": "output", "dense": 1, "of": "input", **said}]))
        assert (not model.views(model.initial_state(1))["output.weight"].any()) is starts_at_0


def test_what_is_none_is_refused(spec: Any) -> None:
    with pytest.raises(UserMistake, match=r"expected one of auto, glorot_normal, .*got 'xavier'"):
        weights(spec, init="xavier")
