"""The registry of charts: a file is one. It has HELP, TITLE, UNIT, ORDER, SOURCE (the series of points it is drawn of:
publications, looks or scrapes) and lines(names) -> the lines it has of figures with these names; one without any is
left out. The TITLE of one that draws the first figure there is of several is "".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType

from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "chart")


@dataclass(frozen=True)
class Line:
    """A line of a chart: what it is called, whose figure, and whether it is something to compare with."""

    label: str
    figure: str
    aside: bool = False
    title: str = ""   # of a chart that has none of its own


OVERVIEW: Sequence[str] = ("publications", "looks")  # what the charts of that page are drawn of
SYSTEM: Sequence[str] = ("scrapes",)


def in_order(sources: Collection[str]) -> Sequence[tuple[str, ModuleType]]:
    """Every chart of these by its name, as a page shows them."""
    found = ((name, REGISTRY.get(name)) for name in REGISTRY.names())
    return sorted(((name, chart) for name, chart in found if chart.SOURCE in sources), key=lambda each: each[1].ORDER)


def known(lines: Iterable[Line], names: Iterable[str]) -> list[Line]:
    """Returns the lines whose figures are there."""
    there = set(names)
    return [line for line in lines if line.figure in there]


def by_name(names: Iterable[str], prefix: str, most: int = 16) -> list[Line]:
    """A line for each of the first `most` figures "prefix.name"."""
    return [Line(name.removeprefix(prefix), name) for name in sorted(names) if name.startswith(prefix)][:most]


def shown(figure: str) -> str:
    """A figure's name for people."""
    return {"auc": "AUC", "r2": "R²", "rmse": "RMSE", "mae": "MAE"}.get(figure, figure.replace("_", " "))


def quality(names: Iterable[str], wanted: Sequence[str]) -> list[Line]:
    """The first of the `wanted` figures that is there: by window, in total and of the constant prediction; of several
    heads each."""
    known, found = set(names), []
    of_windows = [name.removeprefix("window.") for name in known if name.startswith("window.")]
    for head in sorted({name.rpartition(".")[0] for name in of_windows}):
        own = f"{head}." if head else ""
        figure = next((name for name in wanted if f"window.{own}{name}" in known), None)
        if figure is not None:
            told, title = f"{head}, " if head else "", shown(figure)
            found += [
                Line(f"{told}newest window", f"window.{own}{figure}", title=title),
                Line(f"{told}in total", f"total.{own}{figure}", title=title),
                Line(f"{told}constant prediction", f"window.{own}constant_{figure}", aside=True, title=title),
            ]
    return [line for line in found if line.figure in known]
