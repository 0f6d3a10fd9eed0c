"""Show how a job is doing, from its topics alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.live import Live

from streamtrain.cli.output import age_text, table
from streamtrain.cli.session import JobFile, Session, command
from streamtrain.errors import KafkaUnreachable
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.snapshots import SnapshotTopic

ORDER = 110
WATCH_S = 1.0
app = typer.Typer(add_completion=False)


@app.command()
@command
def status(
    session: Session, job: JobFile, watch: Annotated[bool, typer.Option("--watch", help="Go on showing it.")] = False
) -> None:
    """Show how a job is doing: newest snapshot, its age, lag, quality beside the constant prediction's."""
    found = session.job(job)
    admin = session.admin(found)
    with SnapshotTopic(found.name, found.kafka.bootstrap, found.kafka_consumer()) as topic:
        document = job_status(found, admin, topic)
        if not watch:
            session.out.document(document, shown(document))
        elif session.as_json:
            for now in _watched(found, admin, topic, document):
                session.out.line(now)
        elif not session.out.console.is_terminal:
            for now in _watched(found, admin, topic, document):
                session.out.say(shown(now), "")
        else:
            with Live(shown(document), console=session.out.console, auto_refresh=False) as live:
                for now in _watched(found, admin, topic, document):
                    live.update(shown(now), refresh=True)


def _watched(job: Job, admin: Admin, topic: SnapshotTopic, document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The status again and again; while Kafka is away the last one, with the error."""
    while True:
        yield document
        time.sleep(WATCH_S)
        try:
            document = job_status(job, admin, topic)
        except KafkaUnreachable as error:
            document = {**document, "error": str(error)}


def job_status(job: Job, admin: Admin, topic: SnapshotTopic) -> dict[str, Any]:
    """What the topics say of a job."""
    records = str(job.topic("records").name)
    state = admin.describe([records])[records]
    newest = topic.newest_manifest()
    document: dict[str, Any] = {"job": job.name, "records": records, "exists": state is not None, "snapshot": None}
    ends = admin.last_stable(records, state.partitions) if state is not None else []
    document["ends"] = ends
    if newest is None:
        return {**document, "lag": None}
    manifest = newest.manifest
    positions = [position.offset for position in manifest.positions.partitions]
    positions += [0] * (len(ends) - len(positions))  # partitions added since
    same = state is not None and state.topic_id == manifest.positions.topic_id
    return {
        **document,
        "snapshot": {
            "version": manifest.version,
            "digest": newest.digest.hex(),
            "lineage": manifest.lineage,
            "run": manifest.run.number,
            "round": manifest.round,
            "rows_seen": manifest.rows_seen,
            "age_s": round(max(0.0, time.time() - manifest.created_ms / 1_000), 3),
            "untrained": manifest.untrained,
        },
        "same_topic": same,
        "positions": positions,
        "lag": sum(max(0, end - position) for end, position in zip(ends, positions, strict=False)) if same else None,
        "metrics": dict(manifest.metrics),
    }


def shown(document: dict[str, Any]) -> Group:
    """The status for people."""
    snapshot = document["snapshot"]
    lines: list[tuple[str, object]] = [("job", document["job"])]
    if not document["exists"]:
        lines.append(("records", f"{document['records']} is not there; streamtrain topics create"))
    if snapshot is None:
        lines.append(("snapshot", "none yet"))
    else:
        version = f"{snapshot['version']}{' (untrained)' if snapshot['untrained'] else ''}"
        lines += [
            (
                "snapshot",
                f"{version}, {age_text(snapshot['age_s'])} old, run {snapshot['run']}, round {snapshot['round']}",
            ),
            ("rows", f"{snapshot['rows_seen']:,}"),
            (
                "lag",
                "not known: the records topic is another one"
                if document["lag"] is None
                else f"{document['lag']:,} offsets",
            ),
        ]
    if "error" in document:
        lines.append(("error", document["error"]))
    metrics = [(name, _numbers(value)) for name, value in document.get("metrics", {}).items()]
    return Group(table(["", ""], [*lines, *metrics]))


def _numbers(value: Any) -> str:
    if isinstance(value, dict):
        return "  ".join(f"{name} {_numbers(inner)}" for name, inner in value.items())
    return f"{value:.4f}" if isinstance(value, float) else str(value)
