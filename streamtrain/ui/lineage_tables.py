"""Tables of where a snapshot comes from: itself and its run, ranges of partitions, settings."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from streamtrain.topics.manifest import Manifest
from streamtrain.topics.publication_logs import RoundLogs
from streamtrain.ui import html, telling
from streamtrain.ui.provenance import Traced

_WHEN = "%Y-%m-%d %H:%M:%S"
_MOST_RANGES = 200
_COUNTED = ("records", "trained", "dead", "filtered", "tombstones")
Range = list[Any]  # partition, from and to as (offset, row), then sums of _COUNTED


def when(at_ms: int) -> str:
    return time.strftime(_WHEN, time.localtime(at_ms / 1000))


def facts(traced: Traced) -> html.Html:
    """Returns a table of facts about the snapshot."""
    manifest = traced.located.manifest if traced.located is not None else None
    details = _of_manifest(manifest) if manifest is not None else _of_log(traced.log)
    digest = "" if traced.digest is None else traced.digest.hex()
    rows = [
        ("version", str(traced.version)),
        ("digest", html.tag("code", digest or "not known")),
        *details,
        *_run(traced),
    ]
    return html.table(("", ""), [(name, html.tag("span", value)) for name, value in rows], f"Version {traced.version}")


def _of_manifest(manifest: Manifest) -> Iterator[tuple[str, object]]:
    yield "made", when(manifest.created_ms)
    yield "lineage", html.tag("code", manifest.lineage)
    parent = manifest.parent
    yield "trained from", "nothing: it begins its lineage" if parent is None else f"version {parent.version}"
    if manifest.restored is not None:
        yield "restored", f"its positions are version {manifest.restored.version}'s"
    for of in manifest.imported[::-1]:
        yield "its lineage came from", f"version {of.version} of job {of.job} in cluster {of.cluster}"
    yield "rows learned", f"{manifest.rows_seen:,}"
    counts = manifest.counts
    yield "of its lineage", (
        f"{counts.trained:,} rows trained, {counts.dead:,} dead lettered, {counts.filtered:,} filtered, "
        f"{counts.tombstones:,} tombstones"
    )
    yield "last round", str(manifest.round)
    yield "seed and workers", f"{manifest.seed}, {manifest.workers}"
    yield "build", html.tag("code", manifest.build)


def _of_log(log: RoundLogs | None) -> Iterator[tuple[str, object]]:
    """Yields the facts of a snapshot that the topic no longer keeps."""
    if log is not None:
        yield "made", when(log.created_ms)
        yield "lineage", html.tag("code", log.lineage)
        for each in log:
            of_host = f" of {each.host}" if each.host else ""
            yield f"seed and workers{of_host}", f"{each.terms[-1].seed}, {each.terms[-1].workers}"
            yield f"build{of_host}", html.tag("code", each.terms[-1].build)


def _run(traced: Traced) -> Iterator[tuple[str, object]]:
    run = traced.located.manifest.run if traced.located is not None else traced.log.run if traced.log else None
    if run is None:
        return
    entry, end = traced.control.runs.get(run.number), traced.control.ends.get(run.number)
    text = f"{run.number}"
    if entry is not None and entry.run == run:
        text += f" on {entry.host}, process {entry.process}, began {when(entry.started_ms)}"
    if end is not None and end.run == run:
        text += f"; ended {when(end.ended_ms)} with exit code {end.exit_code}: {end.reason}"
    yield "run", f"number {text}"


def added(log: RoundLogs) -> html.Html:
    """The ranges of the rounds between a snapshot and its parent."""
    found = merged(log)
    rows = [(str(each[0]), _place(each[1]), _place(each[2]), *(f"{count:,}" for count in each[3:])) for each in found]
    more = f"; the first {_MOST_RANGES} of {len(rows):,}" if len(rows) > _MOST_RANGES else ""
    title = f"What version {log.version} added, round {log.rounds['round'][0]} to {log.rounds['round'][-1]}{more}"
    return html.table(("partition", "from offset", "up to", *_COUNTED), rows[:_MOST_RANGES], title)


def merged(log: RoundLogs) -> list[Range]:
    """The log's ranges by partition, those that follow one another as one."""
    found: list[Range] = []
    for part in log.ranges[log.ranges["partition"].argsort(kind="stable")]:
        begin, end = (int(part["from_offset"]), int(part["from_row"])), (int(part["to_offset"]), int(part["to_row"]))
        counts = [int(part[name]) for name in _COUNTED]
        last = found[-1] if found else None
        if last is not None and (last[0], last[2]) == (part["partition"], begin):
            last[2:] = [end, *(before + count for before, count in zip(last[3:], counts, strict=True))]
        else:
            found.append([int(part["partition"]), begin, end, *counts])
    return found


def _place(place: tuple[int, int]) -> str:
    """An offset, and the row of its record where it is within one."""
    return f"{place[0]:,}" + (f" row {place[1]:,}" if place[1] else "")


def seen(traced: Traced) -> html.Html:
    """From where to where its lineage had read each partition."""
    if traced.located is None:
        return html.Html("")
    positions, begin = traced.located.manifest.positions, traced.begin
    places = {} if begin is None else begin.places
    rows = [
        (str(number), _place(places[number]) if number in places else "not told", _place(position))
        for number, position in enumerate(positions.partitions)
    ]  # fmt: skip
    title = f"What its lineage had read of topic {positions.topic_id} by then"
    if begin is not None and begin.round > 0:
        title += f"; the round log goes back to version {begin.version}"
    return html.table(("partition", "from offset", "up to"), rows, title)


def settings(traced: Traced) -> html.Html:
    """A line each; of a snapshot that is gone the terms of its rounds."""
    if traced.located is not None:
        table = html.table(("setting", "value"), flat(traced.located.manifest.job_settings), "As its manifest has them")
        return html.tag("details", html.joined([html.tag("summary", "Settings of the job, but [kafka]"), table]))
    if traced.log is None:
        return html.Html("")
    tables = []
    for log in traced.log:
        terms, of_host = log.terms[-1], f" on {log.host}" if log.host else ""
        named = {"learning_rate": terms.learning_rate, "optimizer": terms.optimizer, "format": terms.format}
        others = {"workers": terms.workers, "averaging_frequency": terms.averaging_frequency, "seed": terms.seed}
        tables.append(html.table(("term", "value"), list(flat({**named, **others})), f"Terms of its rounds{of_host}"))
    return html.joined(tables)


def flat(tree: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, object]]:
    for name, value in tree.items():
        path = f"{above}.{name}" if above else name
        if isinstance(value, Mapping) and value:
            yield from flat(value, path)
        else:
            yield path, html.tag("code", _written(value))


def _written(value: object) -> str:
    if isinstance(value, list | tuple) and not isinstance(value, str):
        return ", ".join(map(str, value)) if all(not isinstance(each, Mapping) for each in value) else str(list(value))
    return telling.NONE if value is None else str(value)

