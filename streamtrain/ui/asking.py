"""The choice of one job and its snapshots by a visitor: by links and forms, so that the address has all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamtrain.ui import html
from streamtrain.ui.followed_job import Following
from streamtrain.ui.selection import Selection

NO_SNAPSHOT = (
    "There is no snapshot yet. It is here as soon as the job has published one: ",
    html.tag("code", "streamtrain train JOB.toml"), ".",
)  # fmt: skip
_NEWEST, _NONE = "the newest", "none"


def one_job(ui: Any, selection: Selection, title: str, route: str) -> Following | None:
    """The first job of the address, under a heading with links to the others of it; else a word on where the jobs are,
    and None."""
    name = selection.jobs[0] if selection.jobs else ""
    following = selection.cluster.of(name) if name else None
    if following is None:
        text = f"There is no job {name} on {selection.cluster.bootstrap}." if name else "No job is chosen."
        back = html.link("All jobs", f"{selection.prefix}/")
        ui.html(html.tag("p", html.joined([text, " ", back]), class_="st-empty"), sanitize=False)
        return None
    following.watched()
    others = [html.link(other, f"{selection.prefix}{route}", [("job", other)]) for other in selection.jobs[1:]]
    heading = [html.tag("h1", f"{title} of {following.name}"), html.tag("nav", html.joined(others), aria_label="jobs")]
    ui.html(html.joined(heading if others else heading[:1]), sanitize=False).classes("st-choices")
    return following


def form(
    selection: Selection, route: str, fields: Sequence[html.Html], kept: Mapping[str, str], button: str
) -> html.Html:
    """A form that asks for the page again; `kept`: what of the address goes with it."""
    hidden = [_hidden("job", selection.jobs[0]), *(_hidden(name, value) for name, value in kept.items())]
    parts = html.joined([*hidden, *fields, html.tag("button", button, type="submit")])
    return html.tag("form", parts, method="get", action=f"{selection.prefix}{route}", class_="st-form")


def _hidden(name: str, value: str) -> html.Html:
    return html.tag("input", type="hidden", name=name, value=value)


def select(name: str, label: str, choices: Sequence[tuple[str, str]], chosen: str) -> html.Html:
    """`choices`: values, each with its words."""
    options = [
        html.tag("option", words, value=value, **({"selected": "selected"} if value == chosen else {}))
        for value, words in choices
    ]  # fmt: skip
    return html.tag("label", html.joined([label, " ", html.tag("select", html.joined(options), name=name)]))


def snapshots(selection: Selection, following: Following, route: str, labels: Mapping[str, str]) -> html.Html:
    """A form with a choice among the snapshots that are kept for each of the `labels`: the first is the newest where
    none is named, the others none. Empty while no snapshot is known."""
    choices = versions(following)
    if not choices:
        return html.Html("")
    fields = []
    for at, (name, label) in enumerate(labels.items()):
        chosen = selection.query.get(name, "")
        others = [] if not chosen or chosen in dict(choices) else [(chosen, f"version {chosen}")]
        fields.append(select(name, label, [("", _NONE if at else _NEWEST), *others, *choices], chosen))
    return form(selection, route, fields, {}, "Show")


def versions(following: Following) -> list[tuple[str, str]]:
    """Returns the versions that the topic has, newest first, each with its label. The label marks archived ones."""
    manifest = following.manifest
    if manifest is None:
        return []
    found = {manifest.version: manifest.archived} | {kept.version: kept.archived for kept in manifest.kept}
    return [
        (str(version), f"version {version}{', archived' if found[version] else ''}")
        for version in sorted(found, reverse=True)
    ]  # fmt: skip
