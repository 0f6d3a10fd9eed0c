"""Every job of the cluster, a line each."""

from __future__ import annotations

from typing import Any

from streamtrain.ui import charts, html, telling
from streamtrain.ui.followed_job import Following
from streamtrain.ui.selection import Selection

HELP = "every job found on the cluster, a line each"
TITLE = "Jobs"
ROUTE = "/"
ORDER = 10
REFRESH_S = 1.0
_WHAT_TO_DO = (
    "See one learn: ", html.tag("code", "streamtrain demo --ui"), ". Begin one of your own: ",
    html.tag("code", "streamtrain init --from FILE"), ", then ", html.tag("code", "streamtrain train JOB.toml"),
    ". It is here as soon as it has topics.",
)  # fmt: skip
_HEAD = ("job", "state", "version", "age", "rows", "rows/s", "lag", "loss", "constant's", "", "run", "host")


def build(ui: Any, selection: Selection) -> None:
    """A table that follows the jobs; what to do where there is none; what is wrong where Kafka is away."""
    table = ui.html(_content(selection), sanitize=False).props('role="region" aria-label="jobs" aria-live="off"')

    def refresh() -> None:
        selection.cluster.glanced()
        table.set_content(_content(selection))

    ui.timer(REFRESH_S, refresh)


def _content(selection: Selection) -> str:
    cluster, jobs = selection.cluster, selection.cluster.jobs
    parts: list[html.Html] = []
    if cluster.error:
        text = f"{cluster.bootstrap} does not answer; it is asked again every few seconds. {cluster.error}"
        parts.append(html.tag("p", text, class_="st-error", role="alert"))
    if jobs:
        parts.append(html.table(_HEAD, [_row(each, selection.prefix) for each in jobs], f"Jobs on {cluster.bootstrap}"))
    elif not cluster.error:
        waits = "Looking for jobs …" if not cluster.looked.is_set() else f"No job on {cluster.bootstrap} yet."
        parts.append(html.tag("p", waits, class_="st-empty"))
        if cluster.looked.is_set():
            parts.append(html.tag("p", html.joined(_WHAT_TO_DO)))
    return html.joined(parts)


def _row(following: Following, prefix: str) -> list[object]:
    snapshot, run = telling.snapshot(following), telling.run(following)
    loss, values = telling.loss(following), telling.losses(following)
    name, own, constant = loss or ("", None, None)
    label = f"{name} of the newest windows, the constant prediction's as a straight line" if name else ""
    return [
        html.link(following.name, f"{prefix}/overview", [("job", following.name)]),
        html.state(following.state),
        telling.count(snapshot.get("version")),
        telling.age(snapshot.get("age_s")),
        telling.count(snapshot.get("rows_seen")),
        telling.count(following.job_status.get("rows_per_second")),
        telling.count(following.job_status.get("lag")),
        telling.NONE if own is None else f"{own:.4f} {charts.format_figure_name(name)}",
        telling.NONE if constant is None else f"{constant:.4f}",
        html.sparkline(values, constant, label),
        telling.count(run.get("number")),
        run.get("host") or telling.NONE,
    ]
