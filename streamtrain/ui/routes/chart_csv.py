"""All points of a chart as CSV."""

from __future__ import annotations

from typing import Any

from streamtrain.ui import charts, drawing
from streamtrain.ui.cluster import Cluster

HELP = "all points of a chart of a job, as CSV"
PATH = "/api/csv/{chart}"
_READ_S = 15.0  # for a job that nobody has looked at


def answer(cluster: Cluster, request: Any) -> Any:
    from fastapi import Response

    chart, job = request.path_params["chart"], request.query_params.get("job", "")
    following = cluster.of(job)
    if following is None or chart not in charts.REGISTRY.names():
        known = ", ".join(charts.REGISTRY.names())
        return Response(f"expected a job that is there and one of {known}\n", 404, media_type="text/plain")
    following.watched()
    following.detailed.wait(_READ_S)
    headers = {"content-disposition": f'attachment; filename="{job}.{chart}.csv"'}
    return Response(drawing.as_csv(following, charts.REGISTRY.get(chart)), media_type="text/csv", headers=headers)
