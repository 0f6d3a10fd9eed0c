"""The plain data of the charts on a model's page: lines of each block over versions, and histograms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from streamtrain.ui.block_figures import BlockFigures
from streamtrain.ui.examined import Examined, Snapshots

BLOCKS = 12  # drawn at a time
RULE = -3.0  # log10 of an update to its parameters: a usual one
Document = dict[str, Any]


class OverVersions(NamedTuple):
    title: str
    help: str
    across: float | None = None  # a line straight across


CHARTS = {
    "magnitude": OverVersions("Mean magnitude", "mean of the absolute values, by block and snapshot"),
    "norm": OverVersions("Norm", "square root of the sum of squares, by block and snapshot"),
    "ratio": OverVersions(
        "Update : parameter, log10",
        "mean change since the snapshot before to the mean magnitude, of one update, if updates are independent; "
        "10^-3 is usual", RULE,
    ),
}  # fmt: skip


def block_names(found: Examined | None, first: int) -> list[str]:
    """Returns the names of the blocks that are drawn, from block number `first` on."""
    return [] if found is None else list(found.blocks)[first : first + BLOCKS]


def chosen(snapshots: Snapshots, version: int | None) -> Examined | None:
    """The newest that has been looked into where none is named."""
    if version is not None:
        return snapshots.of(version)
    known = snapshots.all
    return known[-1] if known else None


def before(snapshots: Snapshots, found: Examined) -> Examined | None:
    """The one of its lineage that was looked into before it."""
    older = [each for each in snapshots.all if each.version < found.version and each.lineage == found.lineage]
    return older[-1] if older else None


def drawn(snapshots: Snapshots, version: int | None, against: int | None, first: int) -> Document:
    """Every chart by name: its title, its lines, and where a line goes straight across."""
    found = chosen(snapshots, version)
    names, known = block_names(found, first), snapshots.all
    charts: Document = {}
    for name, chart in CHARTS.items():
        lines = _over_versions(snapshots, known, names, name)
        charts[name] = {"title": chart.title, "across": chart.across, "x": "version", "lines": lines}
    if found is not None:
        other = None if against is None else snapshots.of(against)
        for at, name in enumerate(names):
            pair = [each for each in (found, other) if each is not None and name in each.blocks]
            lines = [_bars(each.blocks[name], f"version {each.version}", each is other) for each in pair]
            charts[f"block{at}"] = {"title": name, "across": None, "x": "value", "lines": lines}
    return {"charts": charts}


def _over_versions(snapshots: Snapshots, known: Sequence[Examined], names: Iterable[str], chart: str) -> list[Document]:
    lines = []
    for name in names:
        if chart == "ratio":
            found = [(after, snapshots.change(one.version, after.version).get(name)) for one, after in pairwise(known)]
            points = [(after.version, _log10(change.most)) for after, change in found if change is not None]
        else:
            points = [(each.version, getattr(each.blocks[name], chart)) for each in known if name in each.blocks]
        lines.append({"name": name, "aside": False, "points": [[x, y] for x, y in points if math.isfinite(y)]})
    return lines


def _log10(value: float) -> float:
    return math.log10(value) if value > 0 else -math.inf


def _bars(figures: BlockFigures, name: str, aside: bool) -> Document:
    """Share of the values for each unit of length: two of other widths can be held against each other."""
    whole = sum(figures.counts)
    points = [[figures.edges[0], 0.0]]
    for left, right, count in zip(figures.edges[:-1], figures.edges[1:], figures.counts, strict=True):
        points.append([left, count / whole / (right - left)])
    return {"name": name, "aside": aside, "steps": True, "points": [*points, [figures.edges[-1], 0.0]]}


def as_csv(snapshots: Snapshots, chart: str, first: int) -> str:
    """The lines of a chart over versions, a version a line."""
    names, known = block_names(chosen(snapshots, None), first), snapshots.all
    lines = _over_versions(snapshots, known, names, chart)
    columns = [dict(map(tuple, line["points"])) for line in lines]
    rows = [",".join(["version", "time_ms", *names])]
    for each in known:
        values = ["" if (value := column.get(each.version)) is None else repr(value) for column in columns]
        rows.append(",".join([str(each.version), str(each.created_ms), *values]))
    return "\n".join([*rows, ""])
