"""One job, or up to four over each other: how it stands, how it learns, what happened."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from streamtrain.clients.dead_letters import not_ours
from streamtrain.ui import cards, charts, html, telling
from streamtrain.ui.drawing import BY_ROWS, BY_TIME
from streamtrain.ui.followed_job import Following
from streamtrain.ui.selection import MOST_TOGETHER, Selection

HELP = "how a job stands and learns, and what happened to it; up to four over each other"
TITLE = "Overview"
ROUTE = "/overview"
ORDER = 20
REFRESH_S = 0.5
HAPPENED = "happened"  # the chart of marks
_MAX_MARKS = 20
_WHEN = "%Y-%m-%d %H:%M:%S"
_TILES = ("state", "snapshot", "learned", "speed", "lag", "loss", "AUC or accuracy", "run")


def build(ui: Any, selection: Selection) -> None:
    """Tiles and tables that follow the first job, and charts that the browser draws and goes on drawing."""
    jobs = [found for name in selection.jobs[:MOST_TOGETHER] if (found := selection.cluster.of(name)) is not None]
    unknown = [name for name in selection.jobs if selection.cluster.of(name) is None]
    if unknown or not jobs:
        _nothing(ui, selection, unknown)
        return
    ui.html(_choices(selection, jobs), sanitize=False).classes("st-choices")
    said = ui.html("", sanitize=False).props('aria-live="polite"')
    tiles = ui.html(_tiles(jobs), sanitize=False)
    elements = {**cards.cards(ui, selection, charts.OVERVIEW), HAPPENED: _happened(ui)}
    tables = ui.html(_tables(jobs[0]), sanitize=False)
    cards.drawn_by_script(ui, selection, [each.name for each in jobs], elements)

    def refresh() -> None:
        for each in jobs:
            each.watched()
        said.set_content(_said(jobs))
        tiles.set_content(_tiles(jobs))
        tables.set_content(_tables(jobs[0]))

    ui.timer(REFRESH_S, refresh)


def _nothing(ui: Any, selection: Selection, unknown: list[str]) -> None:
    text = f"There is no job {', '.join(unknown)} on {selection.cluster.bootstrap}." if unknown else "No job is chosen."
    back = html.link("All jobs", f"{selection.prefix}/")
    ui.html(html.tag("p", html.joined([text, " ", back]), class_="st-empty"), sanitize=False)


def _choices(selection: Selection, jobs: list[Following]) -> str:
    """Links, so that what is seen is what the address says: over time or rows, and which jobs."""
    names = [each.name for each in jobs]

    def pairs(which: list[str], x: str) -> list[tuple[str, str]]:
        return [*(("job", name) for name in which), ("x", x)]

    path = f"{selection.prefix}{ROUTE}"
    by = [html.link(f"over {x}", path, pairs(names, x), current=x == selection.x) for x in (BY_TIME, BY_ROWS)]
    others = [each.name for each in selection.cluster.jobs if each.name not in names]
    room = len(names) < MOST_TOGETHER
    more = [html.link(f"with {name}", path, pairs([*names, name], BY_ROWS)) for name in others if room]
    fewer = [
        html.link(f"without {name}", path, pairs([n for n in names if n != name], selection.x)) for name in names[1:]
    ]
    return html.joined([html.tag("h1", " and ".join(names)), html.tag("nav", html.joined([*by, *fewer, *more]))])


def _said(jobs: list[Following]) -> str:
    text = "what is shown is from before"
    found = [f"{each.name}: {html.STATES[each.state]}; {text}. {each.error}" for each in jobs if each.error]
    found += [f"{each.name}: {warning}." for each in jobs if (warning := each.job_status.get("warning"))]
    return html.joined(html.tag("p", text, class_="st-error", role="alert") for text in found)


def _tiles(jobs: list[Following]) -> str:
    return html.joined(
        html.tag("dl", html.joined(
            html.tag("div", html.joined([html.tag("dt", name), html.tag("dd", value)]))
            for name, value in zip(_TILES, _figures(each), strict=True)
        ), class_="st-tiles", aria_label=each.name) for each in jobs
    )  # fmt: skip


def _figures(following: Following) -> list[object]:
    snapshot, run, figures = telling.snapshot(following), telling.run(following), telling.window(following)
    loss = telling.loss(following)
    loss_text = "none yet" if loss is None else f"{loss[1]:.4f} {charts.format_figure_name(loss[0])}"
    if loss is not None and loss[2] is not None:
        loss_text += f", constant's {loss[2]:.4f}"
    second = next((name for name in ("auc", "accuracy", "r2", "mae") if name in figures), None)
    since_s = time.time() - run["started_ms"] / 1000 if run else None
    rate = following.job_status.get("rows_per_second")
    version = f"{snapshot['version']}, {telling.age(snapshot['age_s'])} old" if snapshot else "none yet"
    return [
        html.state(following.state),
        version,
        f"{telling.count(snapshot.get('rows_seen'))} rows",
        telling.NONE if rate is None else f"{rate:,.0f} rows/s",
        telling.NONE if following.job_status.get("lag") is None else f"{following.job_status['lag']:,} records",
        loss_text,
        telling.NONE if second is None else f"{figures[second]:.4f} {charts.format_figure_name(second)}",
        f"{run['number']} on {run['host']}, {telling.age(since_s)}" if run else "none yet",
    ]


def _happened(ui: Any) -> str:
    props = f'aria-label="What happened" data-chart="{HAPPENED}" hidden'
    with ui.element("section").classes("st-card st-wide").props(props):
        cards.head(ui, "What happened")
        element = ui.echart({"series": []}).classes("st-chart st-short")
    return f"c{element.id}"


def _tables(following: Following) -> str:
    letters: Mapping[str, int] = following.job_status.get("dead_letters") or {}
    parts: list[html.Html] = []
    if letters:
        counted = [(reason, f"{number:,}") for reason, number in letters.items()]
        parts.append(html.table(("reason", "rows"), counted, "Dead letters, the newest by reason"))
    if strays := following.job_status.get("dead_letters_not_ours"):
        parts.append(html.tag("p", f"On the dead-letters topic: {not_ours(strays)}."))
    newest = list(reversed(following.marks))[:_MAX_MARKS]
    if newest:
        rows = [(time.strftime(_WHEN, time.localtime(mark.at_ms / 1000)), mark.kind, mark.text) for mark in newest]
        parts.append(html.table(("when", "what", ""), rows, "What happened, the newest first"))
    return html.joined(parts)
