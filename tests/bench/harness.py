"""The harness of all benches: what is measured beside what, how, and one JSON line for each figure.

A bench is a function under `@bench`: it sets up, and returns the sides by name. The lines of its table say which two
sides a figure compares, and the bar. The harness measures the sides and prints.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from streamtrain import _native

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]
MODULES = {   # of each bench
    name: path.stem for path in sorted(HERE.glob("*.py"))
    for name in re.findall(r'^@bench\(\s*"(\w+)"', path.read_text(), re.MULTILINE)
}  # fmt: skip
LEAST, MOST, LIMIT = "ratio at least", "ratio at most", "ours at most"  # how a bar is read
VERDICTS = {True: "ok", False: "MISSED", None: ""}
WINDOWS = 5  # of a rate: the best counts, for the machine is shared
Value = float | Mapping[str, float]  # of several parts, as percentiles are, a line names one: "side:part"
Call = Callable[[], Any]
Side = Call | tuple[Call, float] | float | str  # to be measured; that with the work of a call; known; why it is absent
Sides = Mapping[str, Side]
Measure = Callable[[Mapping[str, Call], "Run"], Mapping[str, Value]]
Clock = Callable[[], float]


@dataclass(frozen=True)
class Line:
    """One figure: two sides, or a side and a number, and the bar, which an instruction set may have of its own.

    `inverse`: the ratio is the rival's by ours.
    """

    name: str
    ours: str
    rival: str | float
    bar: float | Mapping[str, float] | None = None
    wants: str = LEAST
    inverse: bool = False
    unit: str = ""

    @property
    def title(self) -> str:
        return f"{self.name} / {self.rival.partition(':')[0]}" if isinstance(self.rival, str) else self.name

    @property
    def bar_here(self) -> float | None:
        return self.bar.get(isa()) if isinstance(self.bar, Mapping) else self.bar


@dataclass
class Run:
    """The options of one run, and what a set-up may ask for: a folder and a Kafka."""

    seconds: float = 0.0
    turns: int = 1
    rows: int = 0
    seeds: int = 1
    stack: ExitStack = field(default_factory=ExitStack)  # left when the figures of the set-up are there

    @property
    def folder(self) -> Path:
        return Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="streamtrain-bench-")))

    @property
    def kafka(self) -> str:
        """The bootstrap servers of the Kafka that STREAMTRAIN_TEST_BOOTSTRAP names, or of an embedded one."""
        return os.environ.get("STREAMTRAIN_TEST_BOOTSTRAP") or _embedded_kafka()


@functools.cache
def compiled(source: str, *arguments: str) -> str:
    """Compiles a C++ source of this folder with g++; returns the path of the program or library."""
    output = str(Path(tempfile.mkdtemp(prefix="streamtrain-bench-")) / Path(source).stem)
    command = ["g++", "-std=gnu++20", "-I", CHECKOUT / "native", HERE / source, *arguments, "-o", output]
    subprocess.run(command, check=True)
    return output


@functools.cache
def _embedded_kafka() -> str:
    """Runs until the process ends."""
    from streamtrain.broker import start_broker

    stack = ExitStack()
    atexit.register(stack.close)
    return str(stack.enter_context(start_broker()).bootstrap)


class bench:
    """A bench: its set-up, which is called with each case, and the lines of each case.

    `defaults`: the options it has; `smoke`: those of a short run. `every_isa`: measured for AVX-512 and AVX2, each in a
    process. `environment`: by instruction set, what libraries read when they are loaded.
    """

    entries: dict[str, bench] = {}  # noqa: RUF012
    set_up: Callable[..., Sides]

    def __init__(
        self,
        name: str,
        lines: Sequence[Line] | Mapping[tuple[Any, ...], Sequence[Line]],
        measure: Measure,
        unit: str,
        smoke: Mapping[str, Any] | None = None,
        needs: Sequence[str | Callable[[], str | None]] = (),
        every_isa: bool = False,
        environment: Mapping[str, Mapping[str, str]] | None = None,
        **defaults: Any,
    ) -> None:
        self.name, self.measure, self.unit, self.needs, self.defaults = name, measure, unit, needs, defaults
        self.every_isa, self.environment = every_isa, environment or {}
        self.cases = lines if isinstance(lines, Mapping) else {(): lines}
        short = {"seconds": 1.0, "turns": 1, "only": "", **(smoke or {})}
        self.smoke = {key: value for key, value in short.items() if key in {*defaults, "only"}}

    def __call__(self, set_up: Callable[..., Sides]) -> Callable[..., Sides]:
        self.set_up = set_up
        self.entries[self.name] = self
        return set_up

    @property
    def absent(self) -> str | None:
        """The reason why a need (a module, a program, or a function's) is not met; None where all are."""
        reasons = (need() if callable(need) else absent(need) for need in self.needs)
        return next(filter(None, reasons), None)

    def lines(self, only: str = "") -> dict[tuple[Any, ...], list[Line]]:
        found = {case: [line for line in lines if only in line.title] for case, lines in self.cases.items()}
        return {case: lines for case, lines in found.items() if lines}

    def figures(self, only: str = "", **options: Any) -> Iterator[dict[str, Any]]:
        """Measures; gives each figure as soon as it is known."""
        cases = self.lines(only)
        if self.absent:
            yield {"bench": self.name, "skipped": self.absent}
            return
        for case, lines in cases.items():
            run = Run(**{**self.defaults, **options})
            run.seconds /= len(cases)
            with run.stack:
                yield from self._measured(self.set_up(run, *case), lines, run)

    def _measured(self, sides: Sides, lines: Sequence[Line], run: Run) -> Iterator[dict[str, Any]]:
        names = [name.partition(":")[0] for line in lines for name in (line.ours, line.rival) if isinstance(name, str)]
        calls = {name: call for name in dict.fromkeys(names) if callable(call := _call(sides[name]))}
        found = {**sides, **(self.measure(calls, run) if calls else {})}
        for line in lines:
            figure: dict[str, Any] = {"bench": f"{self.name}: {line.title}"}
            if isinstance(line.bar, Mapping) or self.every_isa:
                figure["isa"] = isa()
            unit = line.unit or self.unit if line.wants == LEAST else f"{line.unit or self.unit}, {line.wants}"
            ours, rival = _value(line.ours, found), _value(line.rival, found)
            if isinstance(ours, str):
                yield {**figure, "skipped": ours}
                continue
            if isinstance(rival, str):  # ours is shown all the same
                figure |= {"ours": _short(ours), "absent": rival}
            else:
                ratio = rival / ours if line.inverse else ours / rival if rival else float("inf")
                figure |= {"ours": _short(ours), "rival": _short(rival), "ratio": _short(ratio)}
            yield {**figure, "bar": line.bar_here, "unit": unit}


def load(name: str) -> bench:
    importlib.import_module(f"tests.bench.{MODULES[name]}")
    return bench.entries[name]


def absent(name: str) -> str | None:
    """Returns why there is no such module or program; None where there is one."""
    return None if find_spec(name) or shutil.which(name) else f"{name} is not installed"


def isa() -> str:
    return str(_native.select_isa(os.environ.get("STREAMTRAIN_ISA") or "auto"))


def is_met(figure: Mapping[str, Any]) -> bool | None:
    """None: the figure has no bar."""
    if figure["bar"] is None or "rival" not in figure:
        return None
    if figure["unit"].endswith(LIMIT):
        return bool(figure["ours"] <= figure["bar"])
    return bool(figure["ratio"] <= figure["bar"] if figure["unit"].endswith(MOST) else figure["ratio"] >= figure["bar"])


def _call(side: Side) -> Any:
    """A call whose result is the work that it has done, or the figure itself."""
    if not isinstance(side, tuple):
        return side
    call, work = side
    return lambda: (call(), work)[1]


def _value(name: str | float, found: Mapping[str, Any]) -> float | str:
    """A side's figure, or why there is none."""
    if not isinstance(name, str):
        return name
    side, _, part = name.partition(":")
    value = found[side]
    return value if isinstance(value, str) else float(value[part] if part else value)


def _short(value: float) -> float:
    return float(f"{value:.5g}") if abs(value) < 10_000 else round(value)


def once(calls: Mapping[str, Call], run: Run) -> Mapping[str, Value]:
    """Each side measures itself, one after the other."""
    return {name: call() for name, call in calls.items()}


def in_turns(
    calls: Mapping[str, Call], run: Run, reduced: Callable[[Sequence[float]], float] = statistics.median
) -> Mapping[str, Value]:
    """Each side measures itself `turns` times, in turns so that all meet the same machine; the median counts."""
    found: dict[str, list[Any]] = {name: [] for name in calls}
    for _ in range(run.turns):
        for name, call in calls.items():
            found[name].append(call())
    return {
        name: {part: reduced([each[part] for each in values]) for part in values[0]}
        if isinstance(values[0], Mapping) else reduced(values)
        for name, values in found.items()
    }  # fmt: skip


def rates(**clocks: Clock) -> Measure:
    """Work a second of each side by itself: the best of five windows, by the thread's processor time. With several
    clocks a part by each; the first gives the window's length."""
    clocks = clocks or {"cpu": time.thread_time}
    first = next(iter(clocks.values()))

    def rate(call: Call, seconds: float) -> Value:
        call()
        best = dict.fromkeys(clocks, 0.0)
        for _ in range(WINDOWS):
            done, begun = 0.0, {name: clock() for name, clock in clocks.items()}
            until = first() + seconds / WINDOWS
            while not done or first() < until:
                done += call()
            best = {name: max(best[name], done / (clock() - begun[name])) for name, clock in clocks.items()}
        return best if len(best) > 1 else best.popitem()[1]

    return lambda calls, run: {name: rate(call, run.seconds / len(calls)) for name, call in calls.items()}


def least_times(
    calls: Mapping[str, Call], seconds: float, clock: Clock = time.perf_counter, repeat: int = 1, turns: int = 1
) -> dict[str, float]:
    """The least time of a call, `repeat` of them in a turn; in turns so that all meet the same machine."""
    best, end, left = dict.fromkeys(calls, float("inf")), time.perf_counter() + seconds, turns
    while time.perf_counter() < end or left > 0:
        left -= 1
        for name, call in calls.items():
            start = clock()
            for _ in range(repeat):
                call()
            best[name] = min(best[name], (clock() - start) / repeat)
    return best


def best_times(clock: Clock = time.perf_counter, repeat: int = 1, turns: int = 1) -> Measure:
    """Work a second by the least time of a call, see least_times()."""

    def measure(calls: Mapping[str, Call], run: Run) -> Mapping[str, Value]:
        work = {name: call() for name, call in calls.items()}  # what is made at the first
        found = least_times(calls, run.seconds, clock, repeat, turns)
        return {name: work[name] / max(seconds, 1e-9) for name, seconds in found.items()}

    return measure


def listing() -> Iterator[str]:
    for name in sorted(MODULES):
        each = load(name)
        options = " ".join(f"--{key} {value}" for key, value in each.defaults.items())
        yield f"{name}  ({options}; {each.unit})\n    {' '.join((each.set_up.__doc__ or '').split())}"
        for line in (line for lines in each.lines().values() for line in lines):
            bar = "shown" if line.bar_here is None else f"{line.wants} {line.bar_here:g}"
            yield f"      {line.title}: {bar}"


def show(figures: Iterator[dict[str, Any]]) -> None:
    """A JSON line of each figure on the output, and a row for a person on the error output."""
    for figure in figures:
        print(json.dumps(figure), flush=True)
        name = " ".join((figure["bench"], figure.get("isa", "")))
        if reason := figure.get("skipped") or figure.get("absent"):
            print(f"- {name}: {reason}", file=sys.stderr)
            continue
        numbers = f"{figure['ours']:>15,} {figure['rival']:>15,} {figure['ratio']:>9,} {figure['bar'] or '':>6}"
        print(f"  {name:<90} {numbers} {VERDICTS[is_met(figure)]}", file=sys.stderr)
