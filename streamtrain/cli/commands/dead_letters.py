"""List, group, show or send again what could not be decoded or trained."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any

import typer

from streamtrain.cli.choice import one_of
from streamtrain.cli.console import table
from streamtrain.cli.decoded import to_json_rows
from streamtrain.cli.session import JobFile, Session, command
from streamtrain.clients import dead_letters
from streamtrain.clients.dead_letters import Found, Resender, Resent
from streamtrain.errors import UserMistake
from streamtrain.job import Job
from streamtrain.topics.documents import cut
from streamtrain.topics.topic import row_topics

ORDER = 95
_MAX_REFUSALS = 20  # refusals for people
app = typer.Typer(no_args_is_help=True, add_completion=False)


def _document(found: Found) -> dict[str, Any]:
    letter = found.letter
    return {
        "partition": found.partition,
        "offset": found.offset,
        "time": datetime.fromtimestamp(found.timestamp_ms / 1_000, UTC).isoformat(timespec="milliseconds"),
        "topic": letter.topic,
        "record_partition": letter.partition,
        "record_offset": letter.offset,
        "until": letter.until,
        "rows": letter.row_count,
        "path": letter.rows[0].path,
        "reason": letter.rows[0].reason,
        "run": letter.run,
        "round": letter.round,
    }


@app.command("list")
@command
def list_(
    session: Session,
    job: JobFile,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many.", show_default=False)] = None,
) -> None:
    """List the dead letters the topic holds, one a line, oldest first."""
    for found in islice(dead_letters.read_dead_letters(session.job(job)), limit):
        document = _document(found)
        place = f"{found.partition}@{found.offset}  {document['topic']}[{document['record_partition']}]"
        rows = f"{document['rows']} row{'s' if document['rows'] > 1 else ''}"
        session.out.line(
            document, f"{place}@{document['record_offset']}  {rows}  {document['path']}: {document['reason']}"
        )


@app.command("reasons")
@command
def reasons(session: Session, job: JobFile) -> None:
    """Count them by path and reason, most rows first."""
    found = dead_letters.reasons(dead_letters.read_dead_letters(session.job(job)))
    rows = [{"reason": reason, "letters": letters, "rows": count} for reason, letters, count in found]
    lines = [(f"{count:,}", f"{letters:,}", reason) for reason, letters, count in found]
    session.out.document({"reasons": rows}, table(["rows", "letters", "reason"], lines) if rows else "no dead letters")


@app.command("show")
@command
def show(
    session: Session,
    job: JobFile,
    place: Annotated[str, typer.Argument(metavar="OFFSET", help="Its offset, or partition@offset, as `list` has it.")],
) -> None:
    """Show one: every reason, the record's key, headers and dead rows, and whether they could be sent again."""
    found = session.job(job)
    letter = dead_letters.letter_at(found, place)
    rows = dead_letters.dead_rows(found, letter.letter)
    document = {
        **_document(letter),
        "key": letter.letter.key,
        "headers": [list(header) for header in letter.letter.headers],
        "reasons": [
            {"from": part.row_from, "to": part.row_to, "path": part.path, "reason": part.reason}
            for part in letter.letter.rows
        ],
        "dead_rows": to_json_rows(rows.rows),
        "value": cut(letter.letter.value),
        "still_bad": rows.still_bad,
        "refused": rows.refused,
    }
    session.out.document(document, table(["", ""], [(name, _text(value)) for name, value in document.items()]))


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(map(_text, value))
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else "" if value is None else str(value)


@app.command("resend")
@command
def resend(
    session: Session,
    job: JobFile,
    to: Annotated[str, typer.Option("--to", **one_of(row_topics, "The topic they go to"))] = "records",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be sent, and send nothing.")] = False,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Skip, for good, dead letters whose rows are still bad.")
    ] = False,
) -> None:
    """Send the dead rows of every letter since the last time again, once what was wrong is mended.

    Only dead rows are sent: the good rows of their records have been trained. How far it got is committed in the
    same transaction, so no row is sent twice, whatever is killed. Refused by name: the undecodable rest of a record,
    and a letter by reference whose record is gone.
    """
    found = session.job(job)
    resender = Resender(found)
    result = resender.look()
    if result.still_bad and not (dry_run or skip_bad):
        raise UserMistake(_still_bad(found, result))
    if not dry_run:
        result = Resent()
        for result in resender.send(str(found.topic(to).name)):
            if not session.as_json:
                session.out.say(f"{result.rows:,} rows of {result.letters:,} letters sent")
    document = {
        "letters": result.letters,
        "rows": result.rows,
        "refused": result.refused,
        "still_bad": dict(result.still_bad),
        "dry_run": dry_run,
    }
    session.out.document(document, *_summary(result, dry_run))
    if result.refused:
        raise typer.Exit(1)


def _still_bad(job: Job, result: Resent) -> str:
    most = "; ".join(f"{count} x {path}" for path, count in result.still_bad.most_common(5))
    return (
        f"{job.topic('dead-letters').name}: {result.still_bad.total()} rows would be dead letters again: {most}; "
        "nothing was sent; mend the job file, or leave them behind with --skip-bad"
    )


def _summary(result: Resent, dry_run: bool) -> list[str]:
    lines = [f"refused: {text}" for text in result.refused[:_MAX_REFUSALS]]
    if len(result.refused) > _MAX_REFUSALS:
        lines.append(f"refused: {len(result.refused) - _MAX_REFUSALS} more")
    if dry_run:
        lines += [f"still bad: {count} rows at {path}" for path, count in result.still_bad.most_common()]
        lines.append(f"{result.rows:,} rows of {result.letters:,} letters would be sent")
    elif not result.letters:
        lines.append("nothing to send")
    return lines
