"""Points: bounded, in order, drawn anew where older ones came; thinned without losing a peak."""

from __future__ import annotations

import numpy as np

from streamtrain.ui.points import Points, thinned


def test_more_than_fit_thin_the_older_half() -> None:
    points = Points(most=10)
    for at in range(25):
        points.add(at, at, {"x": at})
    found = points.after(-1)
    assert len(found) <= 10 and points.sampled
    assert [point.at_ms for point in found] == sorted(point.at_ms for point in found)
    assert [point.at_ms for point in found[-5:]] == [20, 21, 22, 23, 24]  # the newest are whole
    assert found[0].at_ms == 0


def test_only_new_ones_are_given() -> None:
    points = Points()
    assert points.after(-1) == [] and points.last is None
    points.add(1, 10, {})
    points.add(2, 20, {})
    last = points.last
    assert last is not None and points.after(last.number) == []
    points.add(3, 30, {})
    assert [point.at_ms for point in points.after(last.number)] == [3]


def test_older_ones_in_front_make_all_be_drawn_again() -> None:
    points = Points()
    points.add(10, 1, {})
    drawn = points.after(-1)[-1].number
    points.put_before([(1, 0, {}), (2, 0, {})])
    assert [point.at_ms for point in points.after(drawn)] == [1, 2, 10]
    assert points.sampled


def test_thinning_keeps_the_ends_and_every_peak() -> None:
    y = np.sin(np.arange(10_000) / 500)
    y[4321], y[77] = 9.0, -9.0
    kept = thinned(range(10_000), y.tolist(), 400)
    assert len(kept) <= 402 and kept[0] == 0 and kept[-1] == 9_999 and {77, 4321} <= set(kept.tolist())
    assert (np.diff(kept) > 0).all()
    assert thinned(range(3), [1.0, 2.0, 3.0], 400).tolist() == [0, 1, 2]


def test_thinning_passes_over_what_is_not_finite() -> None:
    y = [float("nan")] * 1000
    y[500] = 1.0
    assert 500 in thinned(range(1000), y, 10).tolist()
