"""What charts are drawn from."""

from __future__ import annotations

import pytest

from streamtrain.ui import charts

BINARY = {f"{span}.{name}" for span in ("window", "total") for name in ("log_loss", "constant_log_loss", "auc", "rows")}
NUMBER = {f"window.{name}" for name in ("rmse", "constant_rmse", "mae", "r2")}
HEADS = {"window.late.log_loss", "window.late.constant_log_loss", "window.delay.rmse", "total.delay.rmse"}


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
