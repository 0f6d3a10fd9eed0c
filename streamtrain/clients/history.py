"""A job's history from its round log and control topic alone: what each publication added, however many snapshots are
still kept. Joins no group and commits nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from streamtrain.clients.published import Published, RunEnded, published_of
from streamtrain.kafka.admin import Admin
from streamtrain.kafka.control import ControlTopic
from streamtrain.kafka.error_codes import no_such_topic
from streamtrain.kafka.round_logs import round_logs
from streamtrain.topics import control, rounds
from streamtrain.topics.control import Control
from streamtrain.topics.manifest import Run


def history(
    job: str, bootstrap: str, kafka: Mapping[str, object] | None = None, *, topic: str | None = None
) -> Iterator[Published]:
    """Every publication whose round log the topic still holds, in order, up to the topic's end at the call.

    `topic` is the name of the rounds topic where the job file renames it. Raises UserMistake where there is no such
    topic, KafkaUnreachable when no broker answers, CheckFailed for what is no round log.
    """
    settings = {**(kafka or {}), "bootstrap.servers": bootstrap}
    name = rounds.TOPIC.name(job, topic)
    if Admin(bootstrap, kafka).describe([name])[name] is None:
        raise no_such_topic(name, bootstrap)
    known = _control(job, bootstrap, kafka)
    before: tuple[Run, Published] | None = None
    for log in round_logs(settings, name):
        if before is not None:
            yield before[1] if before[0] == log.run else replace(before[1], run_end=_end(before[0], known, log.run))
        before = log.run, published_of(log, before)
    if before is not None:
        yield replace(before[1], run_end=_end(before[0], known))


def run_ends(job: str, bootstrap: str, kafka: Mapping[str, object] | None = None) -> dict[int, RunEnded | None]:
    """Returns by number how each run in the control topic ended, also runs that published nothing.

    Raises as `history`."""
    known = _control(job, bootstrap, kafka)
    return {number: _end(entry.run, known) for number, entry in sorted(known.runs.items())}


def _control(job: str, bootstrap: str, kafka: Mapping[str, object] | None) -> Control:
    name = control.TOPIC.name(job)
    if Admin(bootstrap, kafka).describe([name])[name] is None:
        return Control()
    with ControlTopic({**(kafka or {}), "bootstrap.servers": bootstrap}, name) as runs:
        return runs.look()


def _end(run: Run, known: Control, published_next: Run | None = None) -> RunEnded | None:
    """Returns how the run ended, from its own record or the run that followed it; None if neither is known."""
    end = known.ends.get(run.number)
    if end is not None and end.run == run:
        return RunEnded(end.reason, end.exit_code, end.ended_ms)
    runs = {*known.runs, *([] if published_next is None else [published_next.number])}
    followed_by = min((number for number in runs if number > run.number), default=None)
    return None if followed_by is None else RunEnded(f"without a word; run {followed_by} followed")
