"""A short run of every bench gives a figure for each line of its table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from streamtrain.compute.backends import cuda
from tests.bench import harness
from tests.bench.harness import CHECKOUT, HERE, LIMIT, MODULES, MOST, Line, is_met, load

AT_ONCE = {"decode": "29", "step": "logistic", "live_model": ""}  # in every run, by lines that need no compiler
ON_KAFKA = [name for name, module in MODULES.items() if "run.kafka" in (HERE / f"{module}.py").read_text()]
ALONE = [name for name in MODULES if name not in ON_KAFKA]


def check(name: str, figures: Sequence[dict[str, Any]], only: str) -> None:
    """Each line has its figure, or a reason for what is not installed here."""
    each = load(name)
    if each.absent:
        assert figures == [{"bench": name, "skipped": each.absent}]
        pytest.skip(each.absent)
    titles = [f"{name}: {line.title}" for lines in each.lines(only).values() for line in lines]
    isas = list(dict.fromkeys(figure.get("isa") for figure in figures)) if each.every_isa else [None]
    assert [figure["bench"] for figure in figures] == titles * len(isas)
    known = [figure for figure in figures if "rival" in figure]
    if all("skipped" in figure for figure in figures):
        pytest.skip(figures[0]["skipped"])
    assert known
    assert all(figure[part] > 0 for figure in known for part in ("ours", "rival", "ratio")), known
    reasons = {figure.get("skipped") or figure["absent"] for figure in figures if figure not in known}
    assert all(reason.endswith(("is not installed", "is not at hand")) for reason in reasons), reasons


def run(name: str, **environment: str) -> None:
    command = [sys.executable, "-m", "tests.bench", name, "--smoke"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=CHECKOUT, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr[-4000:]
    check(name, [json.loads(line) for line in done.stdout.splitlines()], load(name).smoke["only"])


@pytest.mark.parametrize("name", AT_ONCE)
def test_a_bench_gives_its_figures_at_once(name: str) -> None:
    each = load(name)
    check(name, list(each.figures(seconds=0.3, only=AT_ONCE[name])), AT_ONCE[name])


@pytest.mark.full
@pytest.mark.parametrize("name", ALONE)
def test_a_bench_gives_its_figures(name: str) -> None:
    run(name)


@pytest.mark.full
@pytest.mark.parametrize("name", ON_KAFKA)
def test_a_bench_on_kafka_gives_its_figures(kafka: Any, name: str) -> None:
    run(name, STREAMTRAIN_TEST_BOOTSTRAP=kafka.bootstrap)


@pytest.mark.full
def test_the_list_shows_every_bench_with_its_rivals_and_bars() -> None:
    text = "\n".join(harness.listing())
    assert [name for name in MODULES if f"{name}  (" not in text or not load(name).set_up.__doc__] == []
    assert "NumPy row of it: shown" in text and "orjson.loads + NumPy, json: ratio at least 12" in text
    titles = [(name, line.title) for name in MODULES for lines in load(name).lines().values() for line in lines]
    assert len({*titles}) == len(titles), "a line's name and rival tell it from all others"


def test_sides_are_measured_and_bars_read(capsys: pytest.CaptureFixture[str]) -> None:
    """A bench whose sides are known."""
    lines = [
        Line("two", "two", "one", 2.0), Line("cost", "two", "one", 1.5, MOST),
        Line("parts", "parts:p99", "parts:p50", 5.0, LIMIT, inverse=True, unit="ms"), Line("number", "two", 8.0),
        Line("by set", "two", "one", {harness.isa(): 3.0}), Line("no rival", "two", "gone"),
        Line("not here", "gone", "one"),
    ]  # fmt: skip
    measured: list[str] = []
    turns = iter([1.0, 9.0, 1.0])
    sides = {
        "two": lambda: measured.append("two") or 2.0, "one": lambda: measured.append("one") or next(turns),
        "parts": {"p50": 2.0, "p99": 4.0}, "gone": "x is not installed", "not asked for": lambda: 1 / 0,
    }  # fmt: skip
    each = harness.bench("known", lines, harness.in_turns, "rows/s", turns=3)
    each.set_up = lambda run: sides
    harness.show(each.figures())
    assert measured == ["two", "one"] * 3, "in turns"
    found = {figure.pop("bench"): figure for figure in map(json.loads, capsys.readouterr().out.splitlines())}
    assert found["known: two / one"] == {"ours": 2, "rival": 1, "ratio": 2, "bar": 2, "unit": "rows/s"}, "the median"
    assert found["known: parts / parts"] == {"ours": 4, "rival": 2, "ratio": 0.5, "bar": 5, "unit": "ms, ours at most"}
    assert found["known: number"]["ratio"] == 0.25
    assert found["known: by set / one"]["isa"] == harness.isa()
    assert found["known: no rival / gone"]["absent"] == "x is not installed"
    assert found["known: not here / one"]["skipped"] == "x is not installed"
    verdicts = {name: is_met(figure) for name, figure in found.items() if "bar" in figure}
    assert [*verdicts.values()] == [True, False, True, None, False, None], verdicts


@pytest.mark.full
def test_an_option_that_a_bench_has_not_is_refused() -> None:
    command = [sys.executable, "-m", "tests.bench", "decode", "--rows", "3"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=CHECKOUT)
    assert done.returncode == 2 and "decode has no --rows; it has --seconds" in done.stderr


def test_rates_are_of_the_best_window_and_times_of_the_least_call() -> None:
    """A clock that only the calls move."""
    now, pace = [0.0], iter([1.0, 4.0, 2.0, 2.0, 2.0, 2.0, 9.0, 3.0, 1.0])

    def call() -> float:
        now[0] += next(pace, 3.0)
        return 6.0

    run = harness.Run(seconds=0.0)
    assert harness.rates(clock=lambda: now[0])({"side": call}, run) == {"side": 3.0}
    assert harness.best_times(lambda: now[0], repeat=2, turns=2)({"side": call}, run) == {"side": 3.0}


FOR_A_GPU = ("host time of a step, {} rows", "28-64-64-1 Adam {} rows", "copy to device, slot of {} rows")


def assert_gpu_figures(figures: Sequence[dict[str, Any]]) -> None:
    assert all(figure["ours"] > 0 for figure in figures)
    names = {figure["bench"].partition(" / ")[0] for figure in figures}
    assert {f"cuda: {name.format(rows)}" for name in FOR_A_GPU for rows in (256, 4096)} == names


@pytest.mark.gpu
def test_the_gpu_bench_gives_its_figures() -> None:
    assert_gpu_figures(list(load("cuda").figures(seconds=1.0)))


@pytest.mark.full
def test_every_line_of_the_gpu_bench_runs_on_the_stand_in(fake_cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    each = load("cuda")
    module = sys.modules["tests.bench.cuda"]
    monkeypatch.setattr(module, "absent_torch", lambda: "torch is not installed")
    monkeypatch.setattr(module, "STEPS", 4)
    monkeypatch.setattr(module, "KEPT", {})
    assert cuda.answers() is None
    assert_gpu_figures(list(each.figures(seconds=0.0)))
