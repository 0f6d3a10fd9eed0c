"""A page about a job's data: its oldest and newest rows side by side, and its dead letters, one of them opened."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from streamtrain.clients.dead_letters import not_ours
from streamtrain.ui import asking, data_tables, html
from streamtrain.ui.followed_job import Following
from streamtrain.ui.sampling import Letters, Sampling
from streamtrain.ui.selection import Selection

HELP = "columns of a job's oldest and newest rows, and its dead letters"
TITLE = "Data"
ROUTE = "/data"
ORDER = 40
REFRESH_S = 1.0
_WHAT_TO_DO = (
    "The job's columns are not known yet: they are as soon as it has published a snapshot, or to ",
    html.tag("code", "streamtrain ui JOB.toml"), ".",
)  # fmt: skip


def build(ui: Any, selection: Selection) -> None:
    """Tables that are there as soon as the rows are read; a letter that the address names is opened above them."""
    following = asking.one_job(ui, selection, TITLE, ROUTE)
    if following is None:
        return
    sampling = selection.cluster.beside(following, Sampling)
    sampling.renew()
    again = html.link("Read again", f"{selection.prefix}{ROUTE}", [("job", following.name)])
    ui.html(html.tag("nav", again, aria_label="data"), sanitize=False)
    letter = ui.html("", sanitize=False).props('aria-live="polite"').classes("st-narrow")
    columns = ui.html("", sanitize=False).props('aria-live="polite"')
    letters = ui.html("", sanitize=False)

    def refresh() -> None:
        following.watched()
        if not following.is_known:
            columns.set_content(_waiting(following))
            return
        place = selection.query.get("letter", "")
        if place:
            letter.set_content(_render(sampling.letter(place), data_tables.letter, f"{place} is looked for …"))
        columns.set_content(
            _render(sampling.sample(), data_tables.columns, "Rows at both ends of the topic are read …")
        )
        letters.set_content(
            _render(sampling.letters(), lambda found: _letters(selection, found), "Dead letters are looked for …")
        )

    refresh()
    ui.timer(REFRESH_S, refresh)


def _render(found: Future[Any], tell: Any, waiting: str) -> str:
    if not found.done():
        return html.tag("p", waiting)
    if (error := found.exception()) is not None:
        return html.tag("p", str(error), class_="st-error", role="alert")
    return str(tell(found.result()))


def _waiting(following: Following) -> str:
    if following.error:
        return html.tag("p", following.error, class_="st-error", role="alert")
    text = html.joined(_WHAT_TO_DO) if following.ready.is_set() else "Looking …"
    return html.tag("p", text, class_="st-empty")


def _letters(selection: Selection, found: Letters) -> html.Html:
    def link(place: str) -> html.Html:
        return html.link(place, f"{selection.prefix}{ROUTE}", [("job", selection.jobs[0]), ("letter", place)])

    parts = [data_tables.letters(found.newest, link)]
    if found.strays:
        parts.append(html.tag("p", f"Among the newest: {not_ours(found.strays)}."))
    return html.joined(parts)
