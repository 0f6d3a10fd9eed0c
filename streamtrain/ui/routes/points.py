"""A route with the new points of each chart of jobs over time."""

from __future__ import annotations

import json
from typing import Any

from streamtrain.ui import charts, drawing
from streamtrain.ui.cluster import Cluster
from streamtrain.ui.selection import MOST_TOGETHER

HELP = "points of the charts of jobs, those that are new"
PATH = "/api/points"


def answer(cluster: Cluster, request: Any) -> Any:
    """Returns what is new for each chart of the jobs. The query's `after` is JSON: by "job chart" the number of the
    last point drawn. Its `of` selects the page whose charts are returned."""
    from fastapi.responses import JSONResponse

    query = request.query_params
    after, x = _after(query.get("after", "")), query.get("x", drawing.BY_TIME)
    jobs = [found for name in query.getlist("job")[:MOST_TOGETHER] if (found := cluster.of(name)) is not None]
    for following in jobs:
        following.watched()
    several, sources = len(jobs) > 1, charts.OVERVIEW
    if query.get("of") == "system":
        sources = charts.SYSTEM
        cluster.scraping.watched()
    return JSONResponse({
        "charts": {
            name: [drawing.drawn(each, chart, x, after.get(f"{each.name} {name}", -1), several) for each in jobs]
            for name, chart in charts.in_order(sources)
        },
        "marks": [{"job": each.name, "marks": drawing.marked(each, x)} for each in jobs],
        "errors": [each.error for each in jobs if each.error],
    })  # fmt: skip


def _after(text: str) -> dict[str, int]:
    """Returns the table in `text`; empty if `text` is not such a table."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    found = found if isinstance(found, dict) else {}
    return {name: number for name, number in found.items() if isinstance(number, int)}
