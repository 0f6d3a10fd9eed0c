"""Figures of a snapshot's blocks, against what NumPy says of the whole of them; figures, values, and points of charts
stay bounded; pieces of HTML; how long predictions take."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from waiting import wait_for

from streamtrain.kafka.admin import Admin
from streamtrain.topics import predictions
from streamtrain.ui import block_figures, charts, delays, html, telling
from streamtrain.ui.block_figures import MOST_ELEMENTS, Change, changes, figures, sampled
from streamtrain.ui.delays import Delays
from streamtrain.ui.examined import Examined, Snapshots
from streamtrain.ui.points import Points, thinned
from tests.e2e.harness import LiveJob


def of(name: str, array: Any, **optimizer: Any) -> Any:
    kept = {f"{kind}.{name}": each for kind, each in optimizer.items()}
    return figures({name: array.shape}, sampled({name: array}), sampled(kept))[name]


def test_figures_are_those_of_the_values() -> None:
    array = np.random.default_rng(1).normal(0.5, 2, (30, 7)).astype(np.float32)
    found = of("dense0.weight", array, momentum=array * 3)
    wide = array.astype(np.float64)
    assert found.sampled == 0 and found.touched is None and found.row_norms == ()
    assert found.norm == pytest.approx(np.linalg.norm(wide)) and found.magnitude == pytest.approx(abs(wide).mean())
    assert (found.mean, found.deviation) == (pytest.approx(wide.mean()), pytest.approx(wide.std()))
    assert (found.least, found.largest) == (wide.min(), wide.max())
    assert sum(found.counts) == array.size and len(found.edges) == len(found.counts) + 1
    assert (found.edges[0], found.edges[-1]) == (pytest.approx(wide.min()), pytest.approx(wide.max()))
    assert found.optimizer == {"momentum": pytest.approx(3 * found.magnitude, rel=1e-6)}


def test_rows_of_a_table_that_were_touched() -> None:
    table = np.ones((8, 4), np.float32)
    moments = np.zeros_like(table)
    moments[[1, 6], 2] = 1e-30
    found = of("c.embedding", table, **{"adam.m": np.zeros_like(table), "adam.v": moments})
    assert found.touched == 2 / 8 and found.row_norms == (2.0, 2.0, 2.0)
    assert of("c.embedding", table).touched is None  # the optimizer keeps nothing
    local = np.stack([np.zeros_like(table), moments])  # once for each worker
    assert of("c.embedding", table, momentum=local).touched == 2 / 8


def test_state_is_that_of_the_block_it_names() -> None:
    """A column's name may end with another's."""
    tables = {"age.embedding": np.ones((4, 2), np.float32), "user.age.embedding": np.ones((4, 2), np.float32)}
    state = {f"adam.v.{name}": np.full((4, 2), at, np.float32) for at, name in enumerate(tables)}
    found = figures({name: (4, 2) for name in tables}, tables, state)
    assert [(each.touched, dict(each.optimizer)) for each in found.values()] == [(0, {"adam.v": 0}), (1, {"adam.v": 1})]


def test_a_large_block_is_sampled_and_says_so() -> None:
    rows = MOST_ELEMENTS // 4
    table = np.random.default_rng(2).normal(0, 1, (3 * rows, 8)).astype(np.float32)
    found = of("c.embedding", table, v=np.ones_like(table))
    assert 0 < found.sampled <= rows and found.touched == 1.0
    assert found.norm == pytest.approx(np.linalg.norm(table), rel=0.02)
    wide = of("dense0.weight", np.ones((2, MOST_ELEMENTS), np.float32))
    assert wide.sampled > 0 and wide.norm == pytest.approx(math.sqrt(2 * MOST_ELEMENTS))


@pytest.mark.parametrize("array", [np.zeros((3, 2), np.float32), np.full(1, 7.0, np.float32)])
def test_values_that_are_all_the_same(array: Any) -> None:
    found = of("output.bias", array)
    assert sum(found.counts) == array.size and found.deviation == 0
    assert all(right > left for left, right in zip(found.edges[:-1], found.edges[1:], strict=True))


def test_a_change_between_two_snapshots() -> None:
    old = {"w": np.full((4, 2), 2.0, np.float32), "gone": np.ones(3, np.float32), "other": np.ones(3, np.float32)}
    new = {"w": old["w"].copy(), "other": np.ones(4, np.float32)}
    new["w"][1] += 0.4
    found = changes(old, new, updates=25)
    assert found.keys() == {"w"}
    change = found["w"]
    assert change.magnitude == pytest.approx(0.1 / 2, rel=1e-6) and change.changed == 1 / 4
    assert change.least == pytest.approx(change.magnitude / 25) and change.most == pytest.approx(change.magnitude / 5)
    assert Change(0.5, 0, 1).most == 0.5  # of a lineage that goes on from another's parameters
    assert changes({"w": np.zeros(2, np.float32)}, {"w": np.ones(2, np.float32)}, 1)["w"].magnitude == math.inf


def test_a_step_of_a_size_lies_between_the_two() -> None:
    """Whatever way 400 updates of one length go: all one way, or each its own."""
    random, size = np.random.default_rng(3), 1e-3
    start = random.choice([-1.0, 1.0], 5000)
    for steps in (np.full((400, 5000), size), random.choice([-size, size], (400, 5000))):
        end = start + steps.sum(0)
        change = changes({"w": start}, {"w": end}, 400)["w"]
        assert change.least <= size * 1.01 and change.most >= size * 0.75
    assert block_figures.STEPS == "optimizer.steps"


SIZE = 1000


def looked_into(version: int, lineage: str = "a", digest: bytes = b"") -> tuple[Examined, dict[str, Any]]:
    values = {"w": np.full(SIZE, float(version), np.float32)}
    result = figures({"w": (SIZE,)}, values, {})
    return Examined(version, digest or bytes([version % 256]), lineage, 0, 10 * version, result), values


def filled(numbers: Iterable[int], snapshots: Snapshots | None = None, **more: Any) -> Snapshots:
    snapshots = Snapshots() if snapshots is None else snapshots
    for version in numbers:
        snapshots.add(*looked_into(version), **more)
    return snapshots


def versions(snapshots: Snapshots) -> list[int]:
    return [each.version for each in snapshots.all]


def test_changes_are_between_neighbours_whatever_order_they_come_in() -> None:
    snapshots = filled((3, 1, 2))
    assert versions(snapshots) == [1, 2, 3]
    assert snapshots.change(1, 2)["w"].magnitude == 1 and snapshots.change(1, 2)["w"].updates == 10
    assert snapshots.change(1, 3)["w"].magnitude == 2 and snapshots.change(2, 3)["w"].magnitude == 0.5
    assert snapshots.change(3, 9) == {}


def test_lineages_are_not_compared_and_a_job_begun_anew_forgets_the_old_one() -> None:
    snapshots = filled([1])
    snapshots.add(*looked_into(2, lineage="b"))
    assert snapshots.change(1, 2) == {}
    snapshots = filled((1, 2, 3))
    snapshots.add(*looked_into(2, lineage="b", digest=b"another"))
    assert versions(snapshots) == [2] and snapshots.change(1, 2) == {}


def test_values_are_dropped_and_figures_stay() -> None:
    snapshots = filled(range(1, 11), Snapshots(most_bytes=4 * SIZE * 4), keep_values=[2])
    kept = [version for version in versions(snapshots) if snapshots.has_values(version)]
    assert len(kept) == 4 and kept[0] == 2 and kept[-1] == 10 and versions(snapshots) == list(range(1, 11))
    assert snapshots.change(3, 4)["w"].magnitude == pytest.approx(1 / 3)  # it was computed when it came


def test_figures_are_of_so_many_and_of_those_that_are_cached() -> None:
    assert versions(filled(range(1, 21), Snapshots(most=6), keep_values=[4], keep_figures=[1, 2])) == [
        1,
        2,
        4,
        18,
        19,
        20,
    ]


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
    assert [chart.order for _, chart in found] == sorted({chart.order for _, chart in found})
    assert {name for name, _ in found} == set(charts.REGISTRY.names())
    for _, chart in found:
        assert chart.help and chart.lines(set()) == []


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


BAD = '<img src=x onerror="alert(1)">&\''


def test_text_is_escaped_wherever_it_stands() -> None:
    found = [
        html.tag("p", BAD), html.link(BAD, "/x", [("job", BAD)]), html.tag("p", "", title=BAD),
        html.table((BAD, "b"), [(BAD, BAD)], BAD), html.sparkline([1, 2], None, BAD),
    ]  # fmt: skip
    for each in found:
        assert "<img" not in each and 'onerror="' not in each.replace("onerror=&quot;", "")


def test_html_stays_and_numbers_are_set_to_the_right() -> None:
    assert html.tag("p", html.joined([html.tag("b", "x"), "<"])) == "<p><b>x</b>&lt;</p>"
    table = html.table(("a", "b", "c"), [("x", "1,000", "word")], "of three")
    for expected in ('<td class="st-number">1,000</td>', "<td>word</td>", '<th scope="row">x</th>'):
        assert expected in table
    assert html.sparkline([1.0], 2.0, "x") == ""
    assert html.sparkline([1.0, 1.0], None, "x").count("polyline") == 2


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0.04, "0.0 s"),
        (9.96, "10.0 s"),
        (34.4, "34 s"),
        (119, "119 s"),
        (300, "5 min"),
        (1e5, "28 h"),
        (2e5, "2 d"),
    ],
)
def test_ages(seconds: float | None, text: str) -> None:
    assert telling.age(seconds) == text


def test_figures_of_a_sample() -> None:
    assert delays.figures([]) == {}
    found = delays.figures([*range(100), 5000])
    assert found["prediction_delay.median_ms"] == 50 and found["prediction_delay.p99_ms"] == 99
    assert [line.label for line in charts.REGISTRY.get("delay").lines(found)] == ["median", "99 %"]


def test_only_the_newest_requests_that_are_there_are_read() -> None:
    answered = {(0, 5): 1, (0, 900): 2, (0, 910): 3, (1, 7): 4, (2, 3): 5, (9, 0): 6}
    there = {0: (0, 905), 1: (0, 100), 2: (4, 100)}  # of partition 2 it is gone, 9 there is none
    assert delays.around(answered, there) == {0: (901 - delays._NEWEST, 901), 1: (7, 8)}


def test_on_kafka(kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delays, "EVERY_S", 0.0)
    job = LiveJob(kafka, tmp_path)
    admin = Admin(kafka.bootstrap)
    requests, answered = str(job.job.topic("requests").name), str(job.job.topic("predictions").name)
    sampled = Delays(job.job, admin)

    def look() -> dict[str, float]:
        return sampled.look([end for _, end in admin.spans(answered) or ()])

    assert look() == {}
    before_ms = int(time.time() * 1000)
    ages_ms = [60_000] * 10 + [7_000] * 90
    job.produce_messages(({"value": b"{}", "partition": 0, "timestamp": before_ms - age} for age in ages_ms), requests)
    places = [[(predictions.PARTITION_HEADER, b"0"), (predictions.OFFSET_HEADER, b"%d" % at)] for at in range(100)]
    places[70] = []
    places += [[(predictions.PARTITION_HEADER, b"x"), (predictions.OFFSET_HEADER, b"1")], []]
    job.produce_messages(({"value": b"anything", "partition": 0, "headers": place} for place in places), answered)
    found = wait_for(look)
    took_ms = time.time() * 1000 - before_ms
    # the oldest are left out: it is a sample of the newest
    assert 7_000 <= found["prediction_delay.median_ms"] <= found["prediction_delay.p99_ms"] <= 7_000 + took_ms
    assert look() == {}  # nothing new
