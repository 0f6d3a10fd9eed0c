"""Say what a role of a job may do on a Kafka that asks who one is."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from streamtrain.cli.choice import one_of
from streamtrain.cli.session import JobFile, Session, command
from streamtrain.rights import HELD_OUT, REGISTRY, rights_of
from streamtrain.topics.topic import topics_of

ORDER = 128
app = typer.Typer(add_completion=False)


@app.command()
@command
def acl(
    session: Session,
    job: JobFile,
    role: Annotated[
        str,
        typer.Option("--for", show_default=False, **one_of(REGISTRY.names, "The role")),
    ],
    principal: Annotated[
        str, typer.Option(help="The principal that gets the rights, such as User:alice.", show_default="User:ROLE")
    ] = "",
) -> None:
    """Print the kafka-acls lines that give a role what it needs on a job's topics, and no more. Changes nothing."""
    found = session.job(job)
    topics = {key: str(found.topic(key).name) for key in topics_of(found.train.hosts)}
    early = found.train.early_stopping
    if early is not None and early.held_out is not None and early.held_out.topic is not None:
        topics[HELD_OUT] = early.held_out.topic
    whom = principal or f"User:{role}"
    given = rights_of(role, found.name, topics)
    lines = [right.line(found.kafka.bootstrap, whom) for right in given]
    session.out.document({"role": role, "principal": whom, "rights": [asdict(right) for right in given]}, *lines)
