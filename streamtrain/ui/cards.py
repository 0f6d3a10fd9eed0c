"""Charts of a page: a card each, empty until the browser draws it, and the script that goes on drawing them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from streamtrain.ui import charts, html
from streamtrain.ui.selection import Selection


def cards(ui: Any, selection: Selection, sources: Collection[str]) -> dict[str, str]:
    """A card for each chart of these; the ids of their elements, by chart."""
    return {name: _card(ui, selection, name, chart) for name, chart in charts.in_order(sources)}


def _card(ui: Any, selection: Selection, name: str, chart: charts.Chart) -> str:
    """A chart without points, and beside it the words for those who do not see it."""
    with ui.element("section").classes("st-card").props(f'data-chart="{name}" hidden'):
        pairs = [("job", job) for job in selection.jobs]
        csv = html.link("CSV", f"{selection.prefix}/api/csv/{name}", pairs[:1], name=f"CSV of {chart.title}")
        head(ui, chart.title, chart.help, csv)
        element = ui.echart({"series": []}).classes("st-chart")
    return f"c{element.id}"


def head(ui: Any, title: str, tooltip: str = "", csv: str = "") -> None:
    """Adds the head of a card: the title of its plot, its last figures, and downloads of points and picture."""
    called = html.tag("h2", title, title=tooltip)
    png = html.tag("button", "PNG", type="button", class_="st-png", aria_label=f"PNG of {title}")
    taken = html.tag("span", html.joined([csv, png]), class_="st-taken")
    content = html.joined([called, html.tag("span", "", class_="st-last"), taken])
    ui.html(content, sanitize=False).classes("st-head")


def drawn_by_script(
    ui: Any, selection: Selection, jobs: Collection[str], elements: Mapping[str, str], page: str = ""
) -> None:
    """`page`: whose charts are asked for, where that is not the overview."""
    every = charts.in_order((*charts.OVERVIEW, *charts.SYSTEM))
    settings = {
        "jobs": list(jobs), "x": "time" if page else selection.x, "of": page, "prefix": selection.prefix,
        "elements": elements,
        "units": {name: chart.unit for name, chart in every if name in elements},
    }  # fmt: skip
    settings_json = json.dumps(settings).replace("<", "\\u003c")
    ui.add_body_html(
        f'<script type="application/json" id="st-settings">{settings_json}</script>'
        f'<script type="module" src="{selection.prefix}/assets/charts.js"></script>'
    )
