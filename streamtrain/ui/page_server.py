"""The server: pages by NiceGUI, points and CSV by routes of our own, all behind one guard."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from streamtrain.background import in_background
from streamtrain.errors import UserMistake
from streamtrain.ui import drawing, html, pages, routes
from streamtrain.ui.cluster import Cluster
from streamtrain.ui.guard import Guard
from streamtrain.ui.routes.asset import ASSETS
from streamtrain.ui.selection import MOST_TOGETHER, Selection

_LOOK_S = 0.1


def nicegui() -> Any:
    """NiceGUI's `ui`. Raises UserMistake where the extra is not installed."""
    try:
        from nicegui import ui
    except ImportError as error:
        raise UserMistake(f"streamtrain ui needs the extra `ui`: pip install 'streamtrain[ui]'; {error}") from None
    return ui


def application(cluster: Cluster, hosts: tuple[str, ...], token: str = "", prefix: str = "") -> Any:
    """The ASGI application over a cluster's jobs; `hosts` and `token` as Guard has them, `prefix`: the path that a
    proxy puts it under."""
    ui = nicegui()
    from fastapi import FastAPI

    app = FastAPI(openapi_url=None, root_path=prefix)
    for route in routes.all_routes():
        app.add_route(route.PATH, partial(route.answer, cluster))
    for page in pages.in_order():
        ui.page(page.ROUTE, title=f"{page.TITLE} · streamtrain")(partial(_show, ui, page, cluster, prefix))
    ui.run_with(app, title="streamtrain", dark=None, favicon=ASSETS / "icon.svg", show_welcome_message=False)
    return Guard(app, hosts, token)


def _show(ui: Any, page: ModuleType, cluster: Cluster, prefix: str) -> None:
    query = ui.context.client.request.query_params
    jobs = tuple(dict.fromkeys(query.getlist("job")))[:MOST_TOGETHER]
    x = query.get("x", "")
    x = x if x in (drawing.BY_TIME, drawing.BY_ROWS) else drawing.BY_TIME
    selection = Selection(
        cluster, jobs, x, prefix, {name: value for name, value in query.items() if name not in ("job", "x")}
    )
    ui.add_head_html(f'<link rel="stylesheet" href="{prefix}/assets/style.css">')
    ui.html(_head(page, selection), sanitize=False).classes("st-top")
    with ui.element("main").classes("st-main"):
        page.build(ui, selection)


def _head(page: ModuleType, selection: Selection) -> str:
    pairs = [("job", job) for job in selection.jobs]
    links = [
        html.link(each.TITLE, f"{selection.prefix}{each.ROUTE}", pairs if each.ROUTE != "/" else [],
                  current=each is page)
        for each in pages.in_order() if each.ROUTE == "/" or selection.jobs
    ]  # fmt: skip
    return html.joined([html.tag("strong", "streamtrain"), html.tag("nav", html.joined(links), aria_label="pages")])


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
