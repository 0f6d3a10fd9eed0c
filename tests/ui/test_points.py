"""Points of charts: bounded, in order, drawn anew where older ones came, thinned with every peak; the charts' lines."""

from __future__ import annotations

import numpy as np
import pytest

from streamtrain.ui import charts
from streamtrain.ui.points import Points, thinned

BINARY = {f"{span}.{name}" for span in ("window", "total") for name in ("log_loss", "constant_log_loss", "auc", "rows")}
NUMBER = {f"window.{name}" for name in ("rmse", "constant_rmse", "mae", "r2")}
HEADS = {"window.late.log_loss", "window.late.constant_log_loss", "window.delay.rmse", "total.delay.rmse"}


def test_more_than_fit_thin_the_older_half() -> None:
    points = Points(most=10)
    for at in range(25):
        points.add(at, at, {"x": at})
    found = points.after(-1)
    assert len(found) <= 10 and points.sampled
    assert [point.at_ms for point in found] == sorted(point.at_ms for point in found)
    assert [point.at_ms for point in found[-5:]] == [20, 21, 22, 23, 24]  # the newest are whole
    assert found[0].at_ms == 0


def test_only_new_ones_are_given_and_all_after_older_ones_in_front() -> None:
    points = Points()
    assert points.after(-1) == [] and points.last is None
    points.add(1, 10, {})
    points.add(2, 20, {})
    last = points.last
    assert last is not None and points.after(last.number) == []
    points.add(3, 30, {})
    assert [point.at_ms for point in points.after(last.number)] == [3]
    drawn = points.after(-1)[-1].number
    points.put_before([(-1, 0, {}), (0, 0, {})])
    assert [point.at_ms for point in points.after(drawn)] == [-1, 0, 1, 2, 3] and points.sampled


def test_thinning_keeps_the_ends_every_peak_and_finite_values() -> None:
    y = np.sin(np.arange(10_000) / 500)
    y[4321], y[77] = 9.0, -9.0
    kept = thinned(range(10_000), y.tolist(), 400)
    assert len(kept) <= 402 and kept[0] == 0 and kept[-1] == 9_999 and {77, 4321} <= set(kept.tolist())
    assert (np.diff(kept) > 0).all()
    assert thinned(range(3), [1.0, 2.0, 3.0], 400).tolist() == [0, 1, 2]
    alone = [float("nan")] * 500 + [1.0] + [float("nan")] * 499
    assert 500 in thinned(range(1000), alone, 10).tolist()


def test_every_chart_is_whole() -> None:
    found = charts.in_order((*charts.OVERVIEW, *charts.SYSTEM))
    assert [chart.ORDER for _, chart in found] == sorted({chart.ORDER for _, chart in found})
    assert {name for name, _ in found} == set(charts.REGISTRY.names())
    for _, chart in found:
        assert chart.HELP and chart.lines(set()) == []


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (BINARY, ["window.log_loss", "total.log_loss", "window.constant_log_loss"]),
        (NUMBER, ["window.rmse", "window.constant_rmse"]),
        (HEADS, ["window.delay.rmse", "total.delay.rmse", "window.late.log_loss", "window.late.constant_log_loss"]),
    ],
)
def test_the_first_loss_there_is(names: set[str], expected: list[str]) -> None:
    chart = charts.REGISTRY.get("progressive_loss")
    lines = chart.lines(names)
    assert [line.figure for line in lines] == expected
    assert [line.aside for line in lines] == ["constant" in name for name in expected]
