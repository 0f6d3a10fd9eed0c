"""The plain data of a chart, for the browser and for CSV: lines of points over time or rows, and marks."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from streamtrain.ui.charts import Chart, Line
from streamtrain.ui.followed_job import Following
from streamtrain.ui.marks import Mark
from streamtrain.ui.points import Point, Points, thinned

BY_TIME, BY_ROWS = "time", "rows"
LOOKS = "looks"  # the series that is over time alone
MOST_DRAWN = 1_000  # points of a line
Document = dict[str, Any]


def series_of(following: Following, chart: Chart) -> Points:
    found = getattr(following, chart.source)
    assert isinstance(found, Points)
    return found


def drawn(following: Following, chart: Chart, x: str, after: int, several: bool) -> Document:
    """Lines of the points with a number above `after` (-1: all, thinned). `several`: more jobs are in the chart, so
    that lines tell whose they are and only the first of each is drawn."""
    points = [] if x == BY_ROWS and chart.source == LOOKS else series_of(following, chart).after(after)
    anew = after < 0 or (bool(points) and points[0].number > after + 1)
    if anew and after >= 0:  # some that were new are thinned already, or older ones have come
        points = series_of(following, chart).after(-1)
    names = {name for point in points for name in point.figures}
    lines = [line for line in chart.lines(names) if not several or not line.aside]
    return {
        "job": following.name,
        "anew": anew,
        "title": chart.title or next((line.title for line in lines), ""),
        "after": points[-1].number if points else after,
        "lines": [_line(line, points, x, following.name if several else "") for line in lines],
    }


def _line(line: Line, points: Sequence[Point], x: str, job: str) -> Document:
    own = [(_at(point, x), point.figures[line.figure]) for point in points if line.figure in point.figures]
    own = [(at, value) for at, value in own if at >= 0 and math.isfinite(value)]
    kept = thinned([at for at, _ in own], [value for _, value in own], MOST_DRAWN)
    label = f"{job}: {line.label}" if job else line.label
    return {"name": label, "aside": line.aside, "points": [own[at] for at in kept]}


def _at(point: Point, x: str) -> int:
    return point.rows if x == BY_ROWS else point.at_ms


def marked(following: Following, x: str) -> list[Document]:
    """Returns the marks of the job. Over rows, a mark is at the rows learned by its time."""
    points = following.publications.after(-1)
    times, rows = [point.at_ms for point in points], [max(0, point.rows) for point in points]

    def at(mark: Mark) -> int:
        if x != BY_ROWS:
            return mark.at_ms
        place = bisect_right(times, mark.at_ms)
        return mark.rows if mark.rows >= 0 else rows[place - 1] if place else 0

    return [
        {"at": at(mark), "kind": mark.kind, "text": mark.text, "fault": mark.is_fault} for mark in following.marks
    ]  # fmt: skip


def as_csv(following: Following, chart: Chart) -> str:
    """All points of a chart, one a line: time, rows, and a column for each line that has a value."""
    points = series_of(following, chart).after(-1)
    lines = chart.lines({name for point in points for name in point.figures})
    rows = [",".join(["time_ms", "rows", *(line.figure for line in lines)])]
    for point in points:
        values = [point.figures.get(line.figure) for line in lines]
        if any(value is not None for value in values):
            cells = ["" if value is None else repr(value) for value in values]
            rows.append(",".join([str(point.at_ms), str(point.rows), *cells]))
    return "\n".join([*rows, ""])
