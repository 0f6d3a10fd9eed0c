"""A page about what a job's processes use: processor, memory, GPU, ring, transactions.

The data come from their metrics; no topic has them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from streamtrain.ui import asking, cards, charts, html, metric_values, telling
from streamtrain.ui.followed_job import Following
from streamtrain.ui.metric_values import one
from streamtrain.ui.scraping import Address
from streamtrain.ui.selection import Selection
from streamtrain.ui.system import MB, Report

HELP = "processor, memory, GPU, ring and transaction time of a job's processes, from their metrics"
TITLE = "System"
ROUTE = "/system"
ORDER = 60
REFRESH_S = 1.0
_TRAIN = "streamtrain train JOB.toml --metrics-port 9400"
_PREDICT = "streamtrain predict JOB.toml --metrics-port 9401"
_SERVE = "streamtrain serve JOB.toml --port 8080"
_SHOW = "streamtrain ui JOB.toml --metrics http://127.0.0.1:9400 --metrics http://127.0.0.1:9401"
_TO_GIVE = (
    "No topic tells what a job's processes take: their metrics do, and no address of them is given. Start what serves "
    "them, ", html.tag("code", _TRAIN), ", ", html.tag("code", _PREDICT), " or ", html.tag("code", _SERVE),
    ", and give the page their addresses: ",
    html.tag("code", _SHOW), ".",
)  # fmt: skip
_PROCESSES = ("process", "cores", "memory (PSS)", "processor time")
_GPUS = ("GPU", "busy", "memory in use", "of")
_BEFORE = "what is shown of it is from before"
_OVER = ("ended", "failed")
_TILES = ("process", "ready", "snapshot", "processor", "memory", "rows/s", "ring", "transaction", "GPU")


def build(ui: Any, selection: Selection) -> None:
    """Tiles and a table that follow the processes, and charts that the browser draws."""
    following = asking.one_job(ui, selection, TITLE, ROUTE)
    if following is None:
        return
    said = ui.html(_said(selection, following), sanitize=False).props('aria-live="polite"')
    tiles = ui.html(_tiles(following.system.reports), sanitize=False)
    elements = cards.cards(ui, selection, charts.SYSTEM)
    table = ui.html(_processes(following.system.reports), sanitize=False).classes("st-narrow")
    cards.drawn_by_script(ui, selection, [following.name], elements, page="system")

    def refresh() -> None:
        following.watched()
        selection.cluster.scraping.watched()
        said.set_content(_said(selection, following))
        tiles.set_content(_tiles(following.system.reports))
        table.set_content(_processes(following.system.reports))

    ui.timer(REFRESH_S, refresh)


def _said(selection: Selection, following: Following) -> str:
    """Returns the notices about missing addresses and about errors."""
    scraping, reports = selection.cluster.scraping, following.system.reports
    strangers = scraping.strangers(following.name)
    parts = [_lost(each, following) for each in reports if each.error and each.at_s]
    parts += [_wrong(f"{each.given.url}: {each.error}") for each in strangers if each.error]
    if not scraping.addresses:
        parts.append(html.tag("p", html.joined(_TO_GIVE), class_="st-empty"))
    elif not reports and not parts:
        parts.append(html.tag("p", _waiting(strangers, following.name), class_="st-empty"))
    return html.joined(parts)


def _lost(report: Report, following: Following) -> html.Html:
    if report.role == "trainer" and following.state in _OVER:  # then nobody is expected to answer
        return html.tag("p", f"The trainer's run has {following.state}; {_BEFORE}.", class_="st-empty")
    return _wrong(f"{report.url}: {report.error}; {_BEFORE}")


def _wrong(text: str) -> html.Html:
    return html.tag("p", f"{text}. It is asked again and again.", class_="st-error", role="alert")


def _waiting(strangers: Sequence[Address], job: str) -> str:
    if not strangers:
        return f"The addresses that are given are of other jobs; give one of {job} too: --metrics {job}=http://HOST:PORT."
    if not all(each.ready.is_set() for each in strangers):
        return "The addresses are being asked …"
    others = "; ".join(f"{each.given.url} tells of {', '.join(sorted(each.jobs))}" for each in strangers)
    return f"None of the addresses that are given tells of {job}: {others}."


def _tiles(reports: Sequence[Report]) -> str:
    return html.joined(
        html.tag("dl", html.joined(
            html.tag("div", html.joined([html.tag("dt", name), html.tag("dd", value)]))
            for name, value in zip(_TILES, _figures(each), strict=True) if value
        ), class_="st-tiles", aria_label=f"{each.role} at {each.url}") for each in reports if each.at_s
    )  # fmt: skip


def _figures(report: Report) -> list[str]:
    """"" where there is none."""
    values = report.values
    where = report.url.removesuffix("/metrics").rpartition("/")[2]
    since = f"no answer for {telling.age(time.monotonic() - report.lost_s)}" if report.error else ""
    version, rate = one(values, metric_values.VERSION), one(values, metric_values.ROWS_PER_S)
    used, slots = one(values, metric_values.RING_USED), one(values, metric_values.RING)
    sizes = values.get(metric_values.PSS_BYTES, {})
    return [
        f"{report.role} at {where}",
        since or ("yes" if one(values, metric_values.READY) else "not yet"),
        "" if version is None else "none yet" if not version else f"{version:,.0f}",
        f"{sum(report.cores.values()):.2f} cores" if report.cores else "",
        f"{sum(sizes.values()) / MB:,.0f} MB" if sizes else "",
        "" if rate is None else f"{rate:,.0f}",
        "" if slots is None else f"{used or 0:,.0f} of {slots:,.0f} slots",
        "" if report.transaction_s is None else f"{report.transaction_s * 1000:,.0f} ms",
        ", ".join(f"{share:.0%}" for share in values.get(metric_values.GPU_USED, {}).values()),
    ]


def _processes(reports: Sequence[Report]) -> str:
    parts = []
    for each in reports:
        of = f"of the {each.role} at {each.url}"
        if each.values.get(metric_values.PSS_BYTES):
            parts.append(html.table(_PROCESSES, _rows(each), f"Processes {of}"))
        if each.values.get(metric_values.GPU_BYTES):
            parts.append(html.table(_GPUS, _devices(each), f"GPUs of the machine {of}"))
    return html.joined(parts)


def _rows(report: Report) -> list[Sequence[object]]:
    sizes, spent = report.values[metric_values.PSS_BYTES], report.values.get(metric_values.CPU_S, {})
    return [
        (name, f"{report.cores[name]:.2f}" if name in report.cores else telling.NONE, f"{sizes[name] / MB:,.1f} MB",
         telling.age(spent.get(name)))
        for name in sorted(sizes)
    ]  # fmt: skip


def _devices(report: Report) -> list[Sequence[object]]:
    used, memory = (
        report.values.get(metric_values.GPU_USED, {}),
        report.values.get(metric_values.GPU_MEMORY_USED_BYTES, {}),
    )
    return [
        (name, f"{used.get(name, 0):.0%}", f"{memory.get(name, 0) / MB:,.0f} MB", f"{size / MB:,.0f} MB")
        for name, size in sorted(report.values[metric_values.GPU_BYTES].items())
    ]  # fmt: skip
