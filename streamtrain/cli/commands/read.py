"""Read a topic of a job, decoded."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from streamtrain.cli.choice import one_of
from streamtrain.cli.decoded import decoder, human
from streamtrain.cli.session import JobFile, Session, command
from streamtrain.clients.topic_reader import read_messages
from streamtrain.topics import REGISTRY

ORDER = 90
app = typer.Typer(add_completion=False)


@app.command()
@command
def read(
    session: Session,
    job: JobFile,
    topic: Annotated[
        str,
        typer.Argument(
            show_default=False, **one_of(lambda: [*map(REGISTRY.display_name, REGISTRY.names())], "The topic to read")
        ),
    ],
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Read existing messages too, not only new ones.")
    ] = False,
    until_end: Annotated[
        bool, typer.Option("--until-end", help="Read from the beginning to the current end, and stop.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many messages.", show_default=False)] = None,
) -> None:
    """Read a topic of a job, decoded, one message a line. Joins no group and commits nothing."""
    found = session.job(job)
    decode = decoder(found, topic)
    messages = read_messages(found, topic, from_beginning=from_beginning or until_end, until_end=until_end)
    for message in islice(messages, limit):
        document = decode(message)
        session.out.line(document, human(topic, document))
