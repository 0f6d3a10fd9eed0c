"""The server: pages by NiceGUI, points and CSV by routes of our own, all behind one guard."""

from __future__ import annotations

import json
import mimetypes
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from streamtrain.background import in_background
from streamtrain.errors import UserMistake
from streamtrain.ui import charts, drawing, html, pages
from streamtrain.ui.cluster import Cluster
from streamtrain.ui.guard import LOOPBACK, Guard
from streamtrain.ui.shown import MOST_TOGETHER, Shown

ASSETS = Path(__file__).parent / "assets"
_LOOK_S = 0.1


def nicegui() -> Any:
    """NiceGUI's `ui`. Raises UserMistake where the extra is not installed."""
    try:
        from nicegui import ui
    except ImportError as error:
        raise UserMistake(f"streamtrain ui needs the extra `ui`: pip install 'streamtrain[ui]'; {error}") from None
    return ui


def application(cluster: Cluster, host: str, token: str = "", prefix: str = "") -> Any:
    """The ASGI application over a cluster's jobs, for a server that listens on `host`; `prefix`: the path that a proxy
    puts it under."""
    ui = nicegui()
    from fastapi import FastAPI

    app = FastAPI(openapi_url=None, root_path=prefix)
    for path, answer in (("/assets/{name}", _asset), ("/api/points", _points), ("/api/csv/{chart}", _csv)):
        app.add_route(path, partial(answer, cluster))
    for page in pages.in_order():
        ui.page(page.ROUTE, title=f"{page.TITLE} · streamtrain")(partial(_show, ui, page, cluster, prefix))
    ui.run_with(app, title="streamtrain", dark=None, favicon=ASSETS / "icon.svg", show_welcome_message=False)
    hosts = LOOPBACK if host in LOOPBACK else ()
    return Guard(app, hosts, token)


def _show(ui: Any, page: ModuleType, cluster: Cluster, prefix: str) -> None:
    asked = ui.context.client.request.query_params
    jobs = tuple(dict.fromkeys(asked.getlist("job")))[:MOST_TOGETHER]
    x = asked.get("x", "")
    shown = Shown(cluster, jobs, x if x in (drawing.BY_TIME, drawing.BY_ROWS) else drawing.BY_TIME, prefix)
    ui.add_head_html(f'<link rel="stylesheet" href="{prefix}/assets/style.css">')
    ui.html(_head(page, shown), sanitize=False).classes("st-top")
    with ui.element("main").classes("st-main"):
        page.build(ui, shown)


def _head(page: ModuleType, shown: Shown) -> str:
    asked = [("job", job) for job in shown.jobs]
    links = [
        html.link(each.TITLE, f"{shown.prefix}{each.ROUTE}", asked if each.ROUTE != "/" else [], current=each is page)
        for each in pages.in_order() if each.ROUTE == "/" or shown.jobs
    ]  # fmt: skip
    return html.joined([html.tag("strong", "streamtrain"), html.tag("nav", html.joined(links), aria_label="pages")])


def _asset(cluster: Cluster, request: Any) -> Any:
    from fastapi import Response

    path = ASSETS / request.path_params["name"]
    if path.parent != ASSETS or not path.is_file():
        return Response("no such file\n", 404, media_type="text/plain")
    return Response(path.read_bytes(), media_type=mimetypes.guess_type(path.name)[0])


def _points(cluster: Cluster, request: Any) -> Any:
    """What is new for each chart of the jobs; `after`, as JSON: by "job chart" the number of the last point drawn."""
    from fastapi.responses import JSONResponse

    asked = request.query_params
    after, x = _after(asked.get("after", "")), asked.get("x", drawing.BY_TIME)
    jobs = [found for name in asked.getlist("job")[:MOST_TOGETHER] if (found := cluster.of(name)) is not None]
    for following in jobs:
        following.watched()
    several = len(jobs) > 1
    return JSONResponse({
        "charts": {
            name: [drawing.drawn(each, chart, x, after.get(f"{each.name} {name}", -1), several) for each in jobs]
            for name, chart in charts.in_order()
        },
        "marks": [{"job": each.name, "marks": drawing.marked(each, x)} for each in jobs],
        "errors": [each.error for each in jobs if each.error],
    })  # fmt: skip


def _csv(cluster: Cluster, request: Any) -> Any:
    from fastapi import Response

    chart, job = request.path_params["chart"], request.query_params.get("job", "")
    following = cluster.of(job)
    if following is None or chart not in charts.REGISTRY.names():
        known = ", ".join(charts.REGISTRY.names())
        return Response(f"expected a job that is there and one of {known}\n", 404, media_type="text/plain")
    told = {"content-disposition": f'attachment; filename="{job}.{chart}.csv"'}
    return Response(drawing.as_csv(following, charts.REGISTRY.get(chart)), media_type="text/csv", headers=told)


def _after(text: str) -> dict[str, int]:
    """What is no such table says nothing."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    found = found if isinstance(found, dict) else {}
    return {name: number for name, number in found.items() if isinstance(number, int)}


def serve(app: Any, host: str, port: int, on_ready: Callable[[int], None], stopped: Callable[[], bool]) -> None:
    """Until `stopped()`, in a thread of its own; `on_ready` gets the port, of 0 one that is free. UserMistake where it
    is taken."""
    import uvicorn

    config = uvicorn.Config(
        app, host=host, port=port, log_level="warning", timeout_graceful_shutdown=2, access_log=False
    )  # fmt: skip
    try:
        listening = config.bind_socket()
    except SystemExit:
        raise UserMistake(f"--port {port} of --host {host}: it is taken, or no address of this machine") from None
    listening.listen()  # whoever asks from here on is answered, if only when the server is up
    server = uvicorn.Server(config)
    running = in_background(server.run, [listening], name="ui-server")
    on_ready(int(listening.getsockname()[1]))
    while not stopped() and not running.done():
        time.sleep(_LOOK_S)
    server.should_exit = True
    running.result()
