"""Create or describe the topics of a job."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from streamtrain.cli.console import table
from streamtrain.cli.session import JobFile, Session, command
from streamtrain.kafka.admin import TopicState
from streamtrain.topics.topic import TopicWish

ORDER = 50
app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.command("create")
@command
def create(
    session: Session,
    job: JobFile,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be created, create nothing.")] = False,
) -> None:
    """Make the job's topics that are not there; a topic that is there is never changed."""
    found = session.job(job)
    changes = session.admin(found).ensure(found.topic_wishes(), dry_run=dry_run)
    rows = [
        {
            "topic": change.wish.key.replace("_", "-"),
            "name": change.wish.name,
            "action": change.action,
            "partitions": change.wish.partitions,
            "differences": list(change.differences),
        }
        for change in changes
    ]
    lines = [(row["topic"], row["name"], row["action"], "; ".join(row["differences"])) for row in rows]  # type: ignore[arg-type]
    session.out.document({"topics": rows, "dry_run": dry_run}, table(["topic", "name", "", "differs"], lines))


@app.command("describe")
@command
def describe(session: Session, job: JobFile) -> None:
    """Show the job's topics as they are in Kafka."""
    found = session.job(job)
    wishes = found.topic_wishes()
    states = session.admin(found).describe([wish.name for wish in wishes])
    rows = [_described(wish, states[wish.name]) for wish in wishes]
    lines = [
        (
            row["topic"],
            row["name"],
            row["partitions"] if row["exists"] else "not there",
            row["replication"],
            _config(row),
        )
        for row in rows
    ]
    view = table(["topic", "name", "partitions", "copies", "settings"], lines)
    session.out.document({"topics": rows}, view)


def _described(wish: TopicWish, state: TopicState | None) -> dict[str, Any]:
    row: dict[str, Any] = {"topic": wish.key.replace("_", "-"), "name": wish.name, "exists": state is not None}
    if state is None:
        return {**row, "partitions": None, "replication": None, "id": None, "config": {}}
    return {
        **row,
        "partitions": state.partitions,
        "replication": state.replication,
        "id": state.topic_id,
        "config": {"cleanup.policy": state.cleanup_policy, **state.config},
    }


def _config(row: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(row["config"].items()))
