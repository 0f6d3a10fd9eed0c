"""Shows a job's status to people: what `streamtrain status` has on the screen."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from streamtrain.cli.console import table
from streamtrain.cli.output import age_text
from streamtrain.cli.quality_table import quality_table, trend, window_name
from streamtrain.clients.dead_letters import not_ours
from streamtrain.compute.confusion import FIGURES
from streamtrain.compute.early_stopping import NAME
from streamtrain.compute.quality import SPANS
from streamtrain.job.early_stop import stopping_text

_MOST_LAGS = 8  # partitions told apart
_MOST_CLASSES = 12
_LINES = {NAME: stopping_text}  # how one of the metrics is told; others by their names


def status_view(document: dict[str, Any], extra: Iterable[tuple[str, object]] = ()) -> Group:
    """A screen of `JobStatus.look`'s document and `extra` lines; "error" in it is why it is an older one."""
    lines: list[tuple[str, object]] = [("job", document["job"])]
    if not document["exists"]:
        lines.append(("records", f"{document['records']} is not there; streamtrain topics create"))
    snapshot = document["snapshot"]
    if snapshot is None:
        lines.append(("snapshot", "none yet"))
    else:
        untrained = " (untrained)" if snapshot["untrained"] else ""
        version = f"{snapshot['version']}{untrained}, {age_text(snapshot['age_s'])} old, round {snapshot['round']}"
        if document["newest_row_age_s"] is not None:
            version += f", newest row {age_text(document['newest_row_age_s'])} old"
        lines += [("snapshot", version), ("rows", _rows(document)), ("lag", _lag(document))]
    if behind := document.get("behind_open_transaction"):
        text = f"{behind:,} offsets behind an open transaction, which are read when it is committed or aborted"
        lines.append(("not visible", Text(text, "bold yellow")))
    if document.get("run"):
        lines.append(("run", _run(document["run"], snapshot)))
    metrics = document.get("metrics", {})
    lines += [
        (name.replace("_", " "), _LINES.get(name, _format_value)(value))
        for name, value in metrics.items() if name not in (*SPANS, "windows") and value != {}
    ]
    if "gradient_norm" in (metrics.get("window") or {}):
        lines.append(("gradient norm", f"{metrics['window']['gradient_norm']:.4g} before clipping, in the mean"))
    lines += [("dead letters", f"{rows:,} x {reason}") for reason, rows in document["dead_letters"].items()]
    if strays := document.get("dead_letters_not_ours"):
        lines.append(("dead letters", not_ours(strays)))
    if document["warning"]:
        lines.append(("warning", Text(document["warning"], "bold yellow")))
    if "error" in document:
        lines.append(("error", Text(document["error"], "bold red")))
    parts: list[RenderableType] = [table(["", ""], [(Text(title, "bold"), value) for title, value in [*lines, *extra]])]
    total, window, *others = (metrics.get(span) or {} for span in SPANS)
    if len(total) > 2:  # more than rows and weight
        more = {name.replace("_", " "): scores for name, scores in zip(SPANS[2:], others, strict=True) if scores}
        parts += ["", quality_table({window_name(window): window, "in total": total, **more})]
    if len(document["by_class"]) > 2:  # of two the figures above say it
        parts += ["", _by_class(document["by_class"])]
    shares = trend(document["windows"])
    if shares is not None:
        parts += ["", shares]
    return Group(*parts)


def _by_class(classes: list[dict[str, Any]]) -> RenderableType:
    """The heaviest of them."""
    heaviest = sorted(classes, key=lambda each: -each["weight"])[:_MOST_CLASSES]
    lines = [
        (", ".join(filter(None, (each.get("head"), each["class"]))), f"{each['weight']:,.0f}",
         *(f"{each[name]:.4f}" for name in FIGURES)) for each in heaviest
    ]  # fmt: skip
    more = [(f"{len(classes) - len(heaviest)} more", "", "", "", "")] if len(classes) > len(heaviest) else []
    return table(["class", "weight", *FIGURES], [*lines, *more])


def _rows(document: dict[str, Any]) -> str:
    snapshot, rate = document["snapshot"], document["rows_per_second"]
    counts = snapshot["counts"]
    left_out = [f"{counts[name]:,} {what}" for name, what in _LEFT_OUT if counts[name]]
    speed = [] if rate is None else [f"{rate:,.0f}/s"]
    return ", ".join([f"{snapshot['rows_seen']:,} learned", *speed, *left_out])


_LEFT_OUT = (("dead", "dead letters"), ("filtered", "filtered"), ("tombstones", "tombstones"))


def _lag(document: dict[str, Any]) -> str:
    if document["lag"] is None:
        return "not known: the records topic is another one"
    lags = document["lags"]
    each = ", ".join(f"{partition}: {lag:,}" for partition, lag in enumerate(lags[:_MOST_LAGS]))
    more = f" and {len(lags) - _MOST_LAGS} partitions more" if len(lags) > _MOST_LAGS else ""
    return f"{document['lag']:,} offsets" + (f" ({each}{more})" if len(lags) > 1 else "")


def _run(run: dict[str, Any], snapshot: dict[str, Any] | None) -> str:
    workers = f", {snapshot['workers']} worker{'s' if snapshot['workers'] > 1 else ''}" if snapshot else ""
    deaths = f", {run['worker_deaths']} deaths" if run["worker_deaths"] else ""
    begun = age_text(max(0.0, time.time() - run["started_ms"] / 1000))
    text = f"{run['number']} on {run['host']} (process {run['process']}), begun {begun} ago{workers}{deaths}"
    ended = run["ended"]
    return text if ended is None else f"{text}; ended with {ended['exit_code']}: {ended['reason']}"


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        return "  ".join(f"{name} {_format_value(inner)}" for name, inner in value.items())
    return f"{value:.4f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
