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
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from streamtrain import _native

HERE = Path(__file__).parent
MODULES = {   # of each bench
    name: path.stem for path in sorted(HERE.glob("*.py"))
    for name in re.findall(r'^@bench\(\s*"(\w+)"', path.read_text(), re.MULTILINE)
}  # fmt: skip
CHECKOUT = HERE.parents[1]
ISA = os.environ.get("STREAMTRAIN_ISA", "auto")
EVERY_ISA = ("v4", "v3")
LEAST, MOST, LIMIT = "ratio at least", "ratio at most", "ours at most"   # how a bar is read
WINDOWS = 5   # of a rate: the best counts, for the machine is shared
Value = float | Mapping[str, float]   # of several parts, as percentiles are, a line names one: "side:part"
Call = Callable[[], Any]
Side = Call | tuple[Call, float] | float | str   # to be measured; that with the work of a call; known; why it is absent
Sides = Mapping[str, Side]
Clock = Callable[[], float]
Measure = Callable[[Mapping[str, Call], "Run"], Mapping[str, Value]]


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


@dataclass
class Run:
    """The options of one run, and what a set-up may ask for: a folder that goes with its figures,
    a Kafka that stays."""

    seconds: float = 0.0
    turns: int = 1
    rows: int = 0
    seeds: int = 1
    only: str = ""
    _open: ExitStack = field(default_factory=ExitStack)

    def enter(self, context: AbstractContextManager[Any]) -> Any:
        """Enters it; it is left when the figures of the set-up are there."""
        return self._open.enter_context(context)

    def close(self) -> None:
        self._open.close()

    @property
    def folder(self) -> Path:
        return Path(self.enter(tempfile.TemporaryDirectory(prefix="streamtrain-bench-")))

    @property
    def kafka(self) -> str:
        """The bootstrap servers of the Kafka that STREAMTRAIN_TEST_BOOTSTRAP names, or of an embedded one."""
        return os.environ.get("STREAMTRAIN_TEST_BOOTSTRAP") or _embedded_kafka()


@functools.cache
def _embedded_kafka() -> str:
    """Runs until the process ends."""
    from streamtrain.broker import start_broker

    stack = ExitStack()
    atexit.register(stack.close)
    return str(stack.enter_context(start_broker()).bootstrap)


@dataclass(frozen=True)
class Bench:
    """A bench: its set-up, which is called with each case, and the lines of each case."""

    name: str
    set_up: Callable[..., Sides]
    cases: Mapping[tuple[Any, ...], Sequence[Line]]
    measure: Measure
    unit: str
    options: Mapping[str, Any]
    smoke: Mapping[str, Any]
    needs: Sequence[str | Callable[[], str | None]]
    every_isa: bool
    environment: Mapping[str, Mapping[str, str]]

    @property
    def about(self) -> str:
        return " ".join((self.set_up.__doc__ or "").split())

    @property
    def absent(self) -> str | None:
        """Why the first of what it needs is not here: a module, a program, or what a function says."""
        reasons = (need() if callable(need) else absent(need) for need in self.needs)
        return next(filter(None, reasons), None)

    def lines(self, only: str = "") -> Iterator[tuple[tuple[Any, ...], list[Line]]]:
        for case, lines in self.cases.items():
            chosen = [line for line in lines if only in line.title]
            if chosen:
                yield case, chosen

    def figures(self, **options: Any) -> Iterator[dict[str, Any]]:
        """Measures; gives each figure as soon as it is known."""
        given = {**self.options, **options}
        chosen = list(self.lines(given.get("only", "")))
        if self.absent:
            yield {"bench": self.name, "skipped": self.absent}
            return
        for case, lines in chosen:
            run = Run(**given)
            run.seconds /= len(chosen)
            try:
                yield from self._measured(self.set_up(run, *case), lines, run)
            finally:
                run.close()

    def _measured(self, sides: Sides, lines: Sequence[Line], run: Run) -> Iterator[dict[str, Any]]:
        names = [name.partition(":")[0] for line in lines for name in (line.ours, line.rival) if isinstance(name, str)]
        calls = {name: call for name in dict.fromkeys(names) if callable(call := _call(sides[name]))}
        found = {**sides, **(self.measure(calls, run) if calls else {})}
        for line in lines:
            known = {"bench": f"{self.name}: {line.title}"}
            if isinstance(line.bar, Mapping) or self.every_isa:
                known["isa"] = isa()
            unit = line.unit or self.unit if line.wants == LEAST else f"{line.unit or self.unit}, {line.wants}"
            ours, rival = _value(line.ours, found), _value(line.rival, found)
            if isinstance(ours, str):
                yield {**known, "skipped": ours}
            elif isinstance(rival, str):   # ours is shown all the same
                yield {**known, "ours": _short(ours), "absent": rival, "bar": bar_of(line), "unit": unit}
            else:
                ratio = rival / ours if line.inverse else ours / rival if rival else float("inf")
                yield {
                    **known, "ours": _short(ours), "rival": _short(rival), "ratio": _short(ratio),
                    "bar": bar_of(line), "unit": unit,
                }  # fmt: skip


BENCHES: dict[str, Bench] = {}


def absent(name: str) -> str | None:
    """Why there is no such module or program; None where there is one."""
    return None if find_spec(name) or shutil.which(name) else f"{name} is not installed"


def bench(
    name: str,
    lines: Sequence[Line] | Mapping[tuple[Any, ...], Sequence[Line]],
    measure: Measure,
    unit: str,
    smoke: Mapping[str, Any] | None = None,
    needs: Sequence[str | Callable[[], str | None]] = (),
    every_isa: bool = False,
    environment: Mapping[str, Mapping[str, str]] | None = None,
    **options: Any,
) -> Callable[[Callable[..., Sides]], Callable[..., Sides]]:
    """Enters a set-up into the table. `options`: those it has, with what they are by default; `smoke`: for a short run.

    `every_isa`: measured for AVX-512 and AVX2, each in a process. `environment`: by instruction set, before libraries.
    """

    def enter(set_up: Callable[..., Sides]) -> Callable[..., Sides]:
        cases = lines if isinstance(lines, Mapping) else {(): lines}
        short = {"seconds": 1.0, "turns": 1, **(smoke or {})}
        short = {key: value for key, value in short.items() if key in options or key == "only"}
        BENCHES[name] = Bench(
            name, set_up, cases, measure, unit, options, short, needs, every_isa, environment or {}
        )  # fmt: skip
        return set_up

    return enter


def load(name: str) -> Bench:
    importlib.import_module(f"tests.bench.{MODULES[name]}")
    return BENCHES[name]


def isa() -> str:
    return str(_native.select_isa(ISA or "auto"))


def bar_of(line: Line) -> float | None:
    return line.bar.get(isa()) if isinstance(line.bar, Mapping) else line.bar


def is_met(line: dict[str, Any]) -> bool | None:
    """None: the figure has no bar."""
    if line["bar"] is None:
        return None
    if line["unit"].endswith(LIMIT):
        return bool(line["ours"] <= line["bar"])
    return bool(line["ratio"] <= line["bar"] if line["unit"].endswith(MOST) else line["ratio"] >= line["bar"])


def _call(side: Side) -> Any:
    """A call whose result is the work that it has done, or the figure itself."""
    if not isinstance(side, tuple):
        return side
    call, work = side

    def worked() -> float:
        call()
        return work

    return worked


def _value(name: str | float, found: Mapping[str, Any]) -> float | str:
    """A side's figure, or why there is none."""
    if not isinstance(name, str):
        return name
    side, _, part = name.partition(":")
    value = found[side]
    return value if isinstance(value, str) else float(value[part] if part else value)


def _short(value: float) -> float:
    return float(f"{value:.5g}") if abs(value) < 10_000 else round(value)


# how sides are measured


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
    """Work a second of each side by itself: the best of five windows. With several clocks a part by each; the first
    says how long a window is. Without any it is the thread's processor time, which a busy machine does not falsify."""
    clocks = clocks or {"cpu": time.thread_time}

    def rate(call: Call, seconds: float) -> Value:
        call()
        best = dict.fromkeys(clocks, 0.0)
        first = next(iter(clocks.values()))
        for _ in range(WINDOWS):
            done, begun = 0.0, {name: clock() for name, clock in clocks.items()}
            until = first() + seconds / WINDOWS
            while not done or first() < until:
                done += call()
            best = {name: max(best[name], done / (clock() - begun[name])) for name, clock in clocks.items()}
        return best if len(best) > 1 else best.popitem()[1]

    return lambda calls, run: {name: rate(call, run.seconds / len(calls)) for name, call in calls.items()}


def best_times(clock: Clock = time.perf_counter, repeat: int = 1, turns: int = 1) -> Measure:
    """Work a second by the least time of a call, `repeat` of them in a turn; in turns so that all meet the same
    machine, at least `turns`."""

    def measure(calls: Mapping[str, Call], run: Run) -> Mapping[str, Value]:
        work = {name: call() for name, call in calls.items()}   # what is made at the first
        best, end, left = dict.fromkeys(calls, float("inf")), time.perf_counter() + run.seconds, turns
        while time.perf_counter() < end or left > 0:
            left -= 1
            for name, call in calls.items():
                start = clock()
                for _ in range(repeat):
                    call()
                best[name] = min(best[name], (clock() - start) / repeat)
        return {name: work[name] / max(seconds, 1e-9) for name, seconds in best.items()}

    return measure


# the command


def listing() -> Iterator[str]:
    for name in sorted(MODULES):
        each = load(name)
        options = " ".join(f"--{key} {value}" for key, value in each.options.items())
        yield f"{name}  ({options}; {each.unit})\n    {each.about}"
        for _, lines in each.lines():
            for line in lines:
                bar = "shown" if bar_of(line) is None else f"{line.wants} {bar_of(line):g}"
                yield f"      {line.title}: {bar}"


def show(figures: Iterator[dict[str, Any]]) -> None:
    """A JSON line of each figure on the output, and a row for a person on the error output."""
    for figure in figures:
        print(json.dumps(figure), flush=True)
        name = " ".join((figure["bench"], figure.get("isa", "")))
        if "rival" not in figure:
            print(f"- {name}: {figure.get('skipped') or figure['absent']}", file=sys.stderr)
            continue
        sign = {True: "ok", False: "MISSED", None: ""}[is_met(figure)]
        print(
            f"  {name:<90} {figure['ours']:>15,} {figure['rival']:>15,} {figure['ratio']:>9,} "
            f"{figure['bar'] if figure['bar'] is not None else '':>6} {sign}", file=sys.stderr, flush=True,
        )  # fmt: skip


def with_options(each: Bench, smoke: bool, **options: Any) -> dict[str, Any]:
    """Those of a short run, where that is asked for, and those given."""
    given = {key: value for key, value in options.items() if value is not None}
    wrong = [f"--{key}" for key in given if key not in each.options and key != "only"]
    if wrong:
        known = ", ".join(f"--{key}" for key in each.options)
        raise SystemExit(f"{each.name} has no {', '.join(wrong)}; it has {known}")
    return {**(each.smoke if smoke else {}), **given}


def environments(each: Bench) -> list[dict[str, str]] | None:
    """Those in which the bench is to be run in a process; None: here."""
    known = [name for name in EVERY_ISA if name in _native.supported_isas()]
    isas = known if each.every_isa and "STREAMTRAIN_ISA" not in os.environ and "v3" in known else [isa()]
    wanted = [{"STREAMTRAIN_ISA": name, **each.environment.get(name, {})} for name in isas]
    here = [each.environment.get(isas[0], {}).items() <= os.environ.items()] if len(isas) == 1 else [False]
    return None if all(here) else wanted
