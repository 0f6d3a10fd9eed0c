"""A page about the lineage of a snapshot or of a prediction's snapshot, and what `verify` reports about the job."""

from __future__ import annotations

from typing import Any

from streamtrain.checks.verify import Check
from streamtrain.ui import asking, html, lineage_tables
from streamtrain.ui.followed_job import Following
from streamtrain.ui.provenance import Named, Traced, Tracing, named
from streamtrain.ui.selection import Selection, whole
from streamtrain.ui.verifying import Verified, Verifying

HELP = "which ranges, run and settings a snapshot or a prediction comes from; what verify says of the job"
TITLE = "Lineage"
ROUTE = "/lineage"
ORDER = 50
REFRESH_S = 1.0
_CHOICES = {"snapshot": "Snapshot"}
_PLACEHOLDER = "streamtrain-version: 12\nstreamtrain-digest: 5f0c…"


def build(ui: Any, selection: Selection) -> None:
    """Forms to choose by, what was found, and buttons that run `verify`."""
    following = asking.one_job(ui, selection, TITLE, ROUTE)
    if following is None:
        return
    tracing = selection.cluster.beside(following, Tracing)
    choice = ui.html(asking.snapshots(selection, following, ROUTE, _CHOICES), sanitize=False)
    ui.html(_headers_form(selection), sanitize=False)
    trace = (
        ui.html(_render_trace(selection, following, tracing), sanitize=False)
        .props('aria-live="polite"')
        .classes("st-narrow")
    )
    verified = _verify(ui, selection.cluster.beside(following, Verifying))

    def refresh() -> None:
        following.watched()
        if not choice.content:
            choice.set_content(asking.snapshots(selection, following, ROUTE, _CHOICES))
        trace.set_content(_render_trace(selection, following, tracing))
        verified()

    ui.timer(REFRESH_S, refresh)


def _headers_form(selection: Selection) -> html.Html:
    given = selection.query.get("headers", "")
    area = html.tag("textarea", given, name="headers", rows=3, placeholder=_PLACEHOLDER)
    label = html.tag("label", html.joined(["Or the headers of a prediction, as they are: ", html.tag("br"), area]))
    return asking.form(selection, ROUTE, [label], {}, "Trace")


def _render_trace(selection: Selection, following: Following, tracing: Tracing) -> str:
    parts = [html.tag("p", each, class_="st-error", role="alert") for each in (following.error,) if each]
    headers = selection.query.get("headers", "")
    pasted = named(headers) if headers else None
    if headers and pasted is None:
        text = "Expected a header streamtrain-version with a number among these, found none."
        return html.joined([*parts, html.tag("p", text, class_="st-error", role="alert")])
    version = pasted.version if pasted is not None else whole(selection.query.get("snapshot"))
    if version is None:
        if following.manifest is None:
            is_known = following.ready.is_set() and not parts
            text = html.joined(asking.NO_SNAPSHOT) if is_known else html.piece("Looking …")
            return html.joined([*parts, html.tag("p", text, class_="st-empty")])
        version = following.manifest.version
    found = tracing.of(version)
    if not found.done():
        return html.joined([*parts, html.tag("p", f"Version {version} is being looked for …", class_="st-empty")])
    if (error := found.exception()) is not None:
        return html.joined([*parts, html.tag("p", str(error), class_="st-error", role="alert")])
    return html.joined([*parts, *_traced(found.result(), pasted)])


def _traced(traced: Traced, pasted: Named | None) -> list[html.Html]:
    if traced.located is None and traced.log is None:
        text = f"Nothing tells of version {traced.version}: the topics keep it no more, or have not had it yet."
        return [html.tag("p", text, class_="st-error", role="alert")]
    parts = [] if pasted is None else [_answered(traced, pasted)]
    parts.append(lineage_tables.facts(traced))
    if traced.located is None:
        text = "The snapshot itself is not kept any more; its round log tells this."
        parts.insert(0, html.tag("p", text))
    parts.append(lineage_tables.seen(traced))
    if traced.log is not None:
        parts.append(lineage_tables.added(traced.log))
    else:
        fresh = traced.located is not None and traced.located.manifest.parent is None
        text = "It begins its lineage: no round leads to it." if fresh else "Retention has removed its round log."
        parts.append(html.tag("p", text))
    return [*parts, lineage_tables.settings(traced)]


def _answered(traced: Traced, pasted: Named) -> html.Html:
    """Reports whether the prediction's digest is that of this version."""
    if pasted.digest is None:
        return html.tag("p", f"These headers name version {pasted.version} and no digest.")
    if traced.digest is not None and traced.digest.hex() == pasted.digest:
        return html.tag("p", f"The prediction was made by version {pasted.version}: its digest is the snapshot's.")
    known = "unknown" if traced.digest is None else f"{traced.digest.hex()[:12]}…"
    text = f"Not made by this job's version {pasted.version}: expected digest {known}, got {pasted.digest[:12]}…"
    return html.tag("p", text, class_="st-error", role="alert")


def _verify(ui: Any, verifying: Verifying) -> Any:
    """Buttons and what they found; gives what brings that up to date."""
    with ui.element("section").classes("st-card st-wide").props('aria-label="verify"'):
        ui.html(html.tag("h2", "What verify says"), sanitize=False).classes("st-head")
        with ui.element("div").classes("st-form"):
            for text, fast in (("Verify, records by their log", True), ("Verify every record", False)):
                button = ui.button(text, on_click=lambda fast=fast: verifying.start(fast), color=None)
                button.props("no-caps unelevated").classes("st-button")
            stop = ui.button("Stop", on_click=verifying.stop, color=None).props("no-caps unelevated")
            stop.classes("st-button")
        said = ui.html("", sanitize=False).props('aria-live="polite"')

    def refresh() -> None:
        stop.set_visibility(verifying.running)
        said.set_content(_progress(verifying) if verifying.running else _report(verifying.result))

    refresh()
    return refresh


def _progress(verifying: Verifying) -> str:
    of = f", now of {verifying.topic}" if verifying.topic else ""
    return html.tag("p", f"It runs: {verifying.read:,} messages read{of} …", role="status")


def _report(result: Verified | None) -> str:
    if result is None:
        text = "It reads the job's topics again and holds them against what is promised; it changes nothing."
        return html.tag("p", text)
    at = lineage_tables.when(int(result.at_s * 1000))
    if result.report is None:
        return html.tag("p", f"{at}: {result.error}", class_="st-error", role="alert")
    report = result.report
    text = "every check passed" if report.ok else "A CHECK FAILED"
    counts = f"{report.rows_trained:,} rows trained, {report.rows_dead:,} dead lettered"
    caption = f"{at}, in {result.seconds:.1f} s: {text}; {counts}, {report.rows_filtered:,} filtered"
    return html.table(("check", "", "promise"), [_check(each) for each in report.checks], caption)


def _check(check: Check) -> tuple[object, ...]:
    unknown = [f"not checkable: {each}" for each in check.not_checkable[:5]]
    lines = [f"{check.promise} ({check.span})", *check.problems[:10], *unknown]
    text = html.joined(html.tag("div", line) for line in lines)
    name, style = ("ok", "training") if check.ok else ("FAILED", "failed")
    return check.name, html.tag("span", name, class_=f"st-state st-{style}"), text
