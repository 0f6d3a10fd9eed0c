"""A route with the data of the charts on a model's page, as JSON or CSV."""

from __future__ import annotations

from typing import Any

from streamtrain.ui import model_drawing
from streamtrain.ui.cluster import Cluster
from streamtrain.ui.examining import Examining
from streamtrain.ui.selection import whole

HELP = "figures of the blocks of a job's snapshots; of one chart as CSV"
PATH = "/api/model"


def answer(cluster: Cluster, request: Any) -> Any:
    from fastapi import Response
    from fastapi.responses import JSONResponse

    query = request.query_params
    following = cluster.of(query.get("job", ""))
    if following is None:
        return Response("expected a job that is there\n", 404, media_type="text/plain")
    following.watched()
    examining = cluster.beside(following, Examining)
    version, against, first = (whole(query.get(name)) for name in ("snapshot", "against", "from"))
    examining.watched(*(each for each in (version, against) if each is not None))
    chart = query.get("csv")
    if chart is None:
        return JSONResponse(model_drawing.drawn(examining.snapshots, version, against, first or 0))
    if chart not in model_drawing.CHARTS:
        return Response(f"expected one of {', '.join(model_drawing.CHARTS)}\n", 404, media_type="text/plain")
    headers = {"content-disposition": f'attachment; filename="{following.name}.{chart}.csv"'}
    return Response(
        model_drawing.as_csv(examining.snapshots, chart, first or 0), media_type="text/csv", headers=headers
    )
