"""The registry of charts: an entry is lines(names) -> the lines it has of figures with these names. A chart without any
line is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from streamtrain.registry import ModuleRegistry

Source = Literal["publications", "looks", "scrapes"]
OVERVIEW: Sequence[Source] = ("publications", "looks")  # what the charts of that page are drawn of
SYSTEM: Sequence[Source] = ("scrapes",)
_MAX_LINES = 16


@dataclass(frozen=True)
class Line:
    """A line of a chart: what it is called, whose figure, and whether it is something to compare with."""

    label: str
    figure: str
    aside: bool = False
    title: str = ""   # of a chart that has none of its own


@dataclass(frozen=True)
class Chart:
    """An entry. `source` is the series of points it is drawn of; pages show charts by `order`.

    The title is "" where the chart draws the first of several figures that is there.
    """

    lines: Callable[[Iterable[str]], list[Line]]
    order: int
    source: Source
    title: str
    unit: str
    help: str


REGISTRY = ModuleRegistry(__name__, "chart", Chart)


def in_order(sources: Collection[str]) -> Sequence[tuple[str, Chart]]:
    """Every chart of these by its name, as a page shows them."""
    found = ((name, REGISTRY.get(name)) for name in REGISTRY.names())
    return sorted(((name, chart) for name, chart in found if chart.source in sources), key=lambda each: each[1].order)


def known(names: Iterable[str], *lines: Line) -> list[Line]:
    """Returns the lines whose figures are there."""
    there = set(names)
    return [line for line in lines if line.figure in there]


def by_name(names: Iterable[str], prefix: str) -> list[Line]:
    """A line for each of the first figures "prefix.name"."""
    return [Line(name.removeprefix(prefix), name) for name in sorted(names) if name.startswith(prefix)][:_MAX_LINES]


def format_figure_name(figure: str) -> str:
    """A figure's name for people."""
    return {"auc": "AUC", "r2": "R²", "rmse": "RMSE", "mae": "MAE"}.get(figure, figure.replace("_", " "))


def quality(names: Iterable[str], figures: Sequence[str]) -> list[Line]:
    """The first of the `wanted` figures that is there: by window, in total and of the constant prediction; of several
    heads each."""
    known, found = set(names), []
    of_windows = [name.removeprefix("window.") for name in known if name.startswith("window.")]
    for head in sorted({name.rpartition(".")[0] for name in of_windows}):
        own = f"{head}." if head else ""
        figure = next((name for name in figures if f"window.{own}{name}" in known), None)
        if figure is not None:
            prefix, title = f"{head}, " if head else "", format_figure_name(figure)
            found += [
                Line(f"{prefix}newest window", f"window.{own}{figure}", title=title),
                Line(f"{prefix}in total", f"total.{own}{figure}", title=title),
                Line(f"{prefix}constant prediction", f"window.{own}constant_{figure}", aside=True, title=title),
            ]
    return [line for line in found if line.figure in known]


@REGISTRY.entry(
    10, "publications", "", "", "progressive loss, by window and in total, beside the constant prediction's"
)
def progressive_loss(names: Iterable[str]) -> list[Line]:
    """The loss of each window of rows, scored before they are learned, beside the constant prediction's."""
    return quality(names, ("log_loss", "rmse", "loss"))


@REGISTRY.entry(20, "publications", "", "", "AUC (of numbers R²; of several classes macro F1), by window and in total")
def ranking(names: Iterable[str]) -> list[Line]:
    """The share of pairs of rows in the right order (AUC); of numbers, the explained share of their variance."""
    return quality(names, ("auc", "r2", "macro_f1"))


@REGISTRY.entry(
    30, "publications", "", "",
    "accuracy (of numbers the mean absolute error), by window and in total, beside the constant prediction's",
)  # fmt: skip
def hits(names: Iterable[str]) -> list[Line]:
    """The share of predictions that are right; of numbers, how far they are off."""
    return quality(names, ("accuracy", "mae"))


@REGISTRY.entry(
    40, "publications", "Rows a second", "rows/s", "rows learned a second, from publication to publication"
)
def throughput(names: Iterable[str]) -> list[Line]:
    """Rows learned a second, from publication to publication."""
    return known(names, Line("learned", "rows_per_second"))


@REGISTRY.entry(50, "looks", "Lag", "records", "records behind, by partition, since the page's server began")
def lag(names: Iterable[str]) -> list[Line]:
    """Records that are there and not learned yet, by partition, seen since this server began."""
    found = sorted((name for name in names if name.startswith("lag.")), key=lambda name: int(name.partition(".")[2]))
    return [Line(f"partition {name.partition('.')[2]}", name) for name in found[:_MAX_LINES]]


@REGISTRY.entry(
    60, "publications", "Freshness", "s",
    "seconds from a row's event to the snapshot that knows it, and from publication to publication",
)  # fmt: skip
def freshness(names: Iterable[str]) -> list[Line]:
    """The age of the newest row when it was published, by its event time, and the time between publications."""
    return known(
        names, Line("event to snapshot", "freshness_s"), Line("between publications", "interval_s", aside=True)
    )


@REGISTRY.entry(70, "publications", "Dead letters", "rows", "rows that became dead letters, by publication")
def dead(names: Iterable[str]) -> list[Line]:
    """Rows that were not learned but became dead letters, by publication."""
    return known(names, Line("rows", "dead"))


@REGISTRY.entry(80, "looks", "Predictions a second", "/s", "predictions a second, since the page's server began")
def predictions(names: Iterable[str]) -> list[Line]:
    """Predictions a second on the predictions topic, seen since this server began."""
    return known(names, Line("predictions", "predictions_per_second"))


@REGISTRY.entry(
    90, "looks", "Prediction delay", "ms", "from a request's time stamp to its prediction's, of a sample of the newest"
)
def delay(names: Iterable[str]) -> list[Line]:
    """The time from a request's time stamp to its prediction's, of a sample of the newest, since this server began."""
    return known(
        names, Line("median", "prediction_delay.median_ms"), Line("99 %", "prediction_delay.p99_ms", aside=True)
    )


@REGISTRY.entry(210, "scrapes", "Processor", "cores", "cores that each process keeps busy")
def processor(names: Iterable[str]) -> list[Line]:
    """Processor time of a job's processes, from their metrics."""
    return by_name(names, "cpu.")


@REGISTRY.entry(220, "scrapes", "Memory", "MB", "memory by process; what several share is split among them (PSS)")
def memory(names: Iterable[str]) -> list[Line]:
    """Memory of a job's processes, from their metrics."""
    return by_name(names, "pss.")


@REGISTRY.entry(230, "scrapes", "GPU busy", "%", "share of the time in which a GPU computed, whoever used it")
def gpu_used(names: Iterable[str]) -> list[Line]:
    """The busy share of each GPU of a job's machine."""
    return by_name(names, "gpu.used.")


@REGISTRY.entry(240, "scrapes", "GPU memory", "MB", "memory of each GPU in use, by whoever uses it")
def gpu_memory(names: Iterable[str]) -> list[Line]:
    """Memory of each GPU of a job's machine that is in use."""
    return by_name(names, "gpu.memory.")


@REGISTRY.entry(
    250, "scrapes", "Ring", "slots",
    "slots of the ring that hold rows: nearly all, the workers are slow; nearly none, reading is",
)  # fmt: skip
def ring(names: Iterable[str]) -> list[Line]:
    """The ring's slots in use: batches that wait for workers or are being learned."""
    return known(names, Line("in use", "ring.used"), Line("there are", "ring.slots", aside=True))


@REGISTRY.entry(
    260, "scrapes", "Transaction", "ms",
    "time of a publication's transaction, the mean of those since the last question",
)  # fmt: skip
def transaction(names: Iterable[str]) -> list[Line]:
    """The time that a publication's transaction takes."""
    return known(names, Line("transaction", "transaction_ms"))
