"""One job's network and what its parameters are like, in one snapshot, over the versions, beside another snapshot."""

from __future__ import annotations

import json
from typing import Any

from streamtrain.columns.served import schema_and_model
from streamtrain.compute.explain import vertices
from streamtrain.compute.graph_picture import picture
from streamtrain.errors import StreamtrainError
from streamtrain.topics.manifest import Manifest
from streamtrain.ui import asking, cards, html, model_drawing, model_tables
from streamtrain.ui.examined import Examined
from streamtrain.ui.examining import Examining
from streamtrain.ui.followed_job import Following
from streamtrain.ui.selection import Selection, whole

HELP = "a job's network, and figures of its parameters by block: one snapshot, over versions, two side by side"
TITLE = "Model"
ROUTE = "/model"
ORDER = 30
REFRESH_S = 1.0
PATH = "/api/model"
_CHOICES = {"snapshot": "Snapshot", "against": "beside"}
_READ = "Snapshots are being read …"


def build(ui: Any, selection: Selection) -> None:
    """A picture, tables that follow what is looked into, and charts that the browser draws."""
    following = asking.one_job(ui, selection, TITLE, ROUTE)
    if following is None:
        return
    version, against = (whole(selection.query.get(name)) for name in ("snapshot", "against"))
    examining = selection.cluster.beside(following, Examining)
    versions = [each for each in (version, against) if each is not None]
    examining.watched(*versions)
    choice = ui.html(asking.snapshots(selection, following, ROUTE, _CHOICES), sanitize=False)
    said = ui.html(_said(following, examining, version), sanitize=False).props('aria-live="polite"')
    network = ui.html(_network(following), sanitize=False)
    elements = {name: _card(ui, selection, name, chart) for name, chart in model_drawing.CHARTS.items()}
    elements |= {f"block{at}": _card(ui, selection, f"block{at}", None) for at in range(model_drawing.BLOCKS)}
    tables = ui.html(_tables(selection, examining), sanitize=False)
    _script(ui, selection, following, elements)

    def refresh() -> None:
        following.watched()
        examining.watched(*versions)
        if not choice.content:  # else it would be taken from under who is choosing
            choice.set_content(asking.snapshots(selection, following, ROUTE, _CHOICES))
        said.set_content(_said(following, examining, version))
        network.set_content(_network(following))
        tables.set_content(_tables(selection, examining))

    ui.timer(REFRESH_S, refresh)


def _script(ui: Any, selection: Selection, following: Following, elements: dict[str, str]) -> None:
    pairs = [(name, value) for name, value in selection.query.items() if name in ("snapshot", "against", "from")]
    settings = {
        "prefix": selection.prefix, "path": PATH, "asked": [("job", following.name), *pairs], "name": following.name,
        "elements": elements,
    }  # fmt: skip
    settings_json = json.dumps(settings).replace("<", "\\u003c")
    ui.add_body_html(
        f'<script type="application/json" id="st-settings">{settings_json}</script>'
        f'<script type="module" src="{selection.prefix}/assets/figures.js"></script>'
    )


def _card(ui: Any, selection: Selection, name: str, chart: model_drawing.OverVersions | None) -> str:
    """A chart without points, hidden until there are some; the id of its element."""
    with ui.element("section").classes("st-card").props(f'data-chart="{name}" hidden'):
        if chart is None:
            cards.head(ui, "")  # a block's, which the script tells
        else:
            pairs = [("job", selection.jobs[0]), ("from", selection.query.get("from", "0")), ("csv", name)]
            csv = html.link("CSV", f"{selection.prefix}{PATH}", pairs, name=f"CSV of {chart.title}")
            cards.head(ui, chart.title, chart.help, csv)
        element = ui.echart({"series": []}).classes("st-chart")
    return f"c{element.id}"


def _said(following: Following, examining: Examining, version: int | None) -> str:
    current = version if version is not None else max((each.version for each in examining.entries), default=0)
    refusal = examining.refusal(current)
    wrong = [examining.error or following.error, f"Version {current} cannot be shown: {refusal}" if refusal else ""]
    parts = [html.tag("p", each, class_="st-error", role="alert") for each in wrong if each]
    known, versions = examining.snapshots.all, {each.version for each in examining.entries}
    if not known:
        if not parts:
            waits = following.manifest is not None or not following.ready.is_set()
            parts.append(html.tag("p", _READ if waits else html.joined(asking.NO_SNAPSHOT), class_="st-empty"))
        return html.joined(parts)
    kept = sum(each.version in versions for each in known)
    archived = sum(each.archived for each in examining.entries)
    text = f"{len(known)} snapshots are drawn: {kept} that the topic keeps"
    text += f" ({archived} of them archived)" if archived else ""
    text += f", {len(known) - kept} seen since this page's server began to look" if len(known) > kept else ""
    text += f"; {examining.left} more are being read …" if examining.left else "."
    if version is not None and versions and version not in versions and examining.snapshots.of(version) is None:
        text = f"The topic has no version {version} any more, or not yet. {text}"
    return html.joined([*parts, html.tag("p", text)])


def _network(following: Following) -> str:
    manifest = following.manifest
    if manifest is None:
        return ""
    try:
        return html.tag("div", html.Html(_drawn_network(manifest)), class_="st-scroll st-network")
    except StreamtrainError as error:
        return html.tag("p", f"The network cannot be drawn: {error}", class_="st-error", role="alert")


def _drawn_network(manifest: Manifest) -> str:
    _, model = schema_and_model(manifest)
    found = vertices(model)
    label = "The network: " + "; ".join(
        f"{each['name']} {each['kind']}, {each['columns']} columns, {each['parameters']} parameters"
        f"{', reads ' + ' and '.join(each['reads']) if each['reads'] else ''}" for each in found
    )  # fmt: skip
    return picture(found, "", label)


def _tables(selection: Selection, examining: Examining) -> str:
    version, against, first = (whole(selection.query.get(name)) for name in ("snapshot", "against", "from"))
    found = model_drawing.chosen(examining.snapshots, version)
    if found is None:
        return ""
    tables = model_tables.tables(examining.snapshots, found, against, first or 0)
    return html.joined([*tables, _more(selection, found, first or 0)])


def _more(selection: Selection, found: Examined, first: int) -> html.Html:
    """Links to the other blocks, where they are not all drawn."""
    count, size = len(found.blocks), model_drawing.BLOCKS
    if count <= size:
        return html.Html("")
    kept = [(name, selection.query[name]) for name in ("snapshot", "against") if name in selection.query]
    pairs, path = [("job", selection.jobs[0]), *kept], f"{selection.prefix}{ROUTE}"
    links = [
        html.link(f"blocks {at + 1} to {min(at + size, count)}", path, [*pairs, ("from", str(at))], current=at == first)
        for at in range(0, count, size)
    ]
    return html.tag("nav", html.joined(links), aria_label="blocks", class_="st-more")
