"""Guarantee 6 as far as topics tell it: what was published is of a run that took the job."""

from __future__ import annotations

from collections.abc import Iterator

from streamtrain import exits
from streamtrain.checks.verify.logs import Logs
from streamtrain.checks.verify.snapshot_check import Snapshots
from streamtrain.checks.verify.verify_report import Check
from streamtrain.errors import CheckFailed
from streamtrain.kafka.clients import Message
from streamtrain.record_sources.source_kind import Topic
from streamtrain.topics import control
from streamtrain.topics.control import MODES, NEWEST_KEY, Control, Newest, RunEnd, RunEntry
from streamtrain.topics.manifest import Run


def read_control(job: str, topic: Topic | None, end_before: int) -> tuple[Check, Control, Newest | None]:
    """Reads the control topic, and starts the check of runs.

    Returns the check, the state of control, and the newest snapshot that control named before offset `end_before`;
    None if there is none.
    """
    check = Check("runs", "what was published is of a run that control knows; the newest snapshot is the one it names")
    found, newest_before = Control(), None
    if topic is None:
        check.problems.append("the control topic is not there")
        return check, found, None
    for message in topic.messages():
        where = f"{topic.name}@{message.offset}"
        try:
            taken = found.take(message.key, message.value)
        except CheckFailed as error:
            check.problems.append(f"{where}: {error}")
        else:
            check.problems += [f"{where}: {text}" for text in _entry(job, message, taken)]
        if message.key == NEWEST_KEY and message.offset < end_before:
            newest_before = found.newest
    return check, found, newest_before


def _entry(job: str, message: Message, taken: RunEntry | RunEnd | Newest | None) -> Iterator[str]:
    """Yields what is wrong with a message whose parsed entry is `taken`."""
    written = None if taken is None else control.message(taken)
    if message.value is not None and (written is None or (written.key, written.value) != (message.key, message.value)):
        yield f"key {message.key!r}: bytes no trainer writes"
    if isinstance(taken, RunEntry) and taken.job != job:
        yield f"run {taken.run.number} is of job {taken.job}"


def check_runs(check: Check, snapshots: Snapshots, logs: Logs, found: Control, newest_before: Newest | None) -> None:
    """Completes `check` with what snapshots and round logs say."""
    for version, run, mode, build in _published(snapshots, logs):
        entry = found.runs.get(run.number)
        if entry is None or entry.run != run:
            check.problems.append(f"snapshot {version}: control has no run {run.number} with its id")
        elif entry.mode != mode:
            check.problems.append(f"snapshot {version}: of mode {mode}, its run of mode {entry.mode}")
        elif build not in (None, entry.build):
            check.problems.append(f"snapshot {version}: of build {build}, its run of {entry.build}")
    for number, end in found.ends.items():
        entry = found.runs.get(number)
        same = entry is not None and entry.run == end.run
        check.expect(same, f"the end of run {number} is of another run than its entry")
        text = f"run {number} ended with exit code {end.exit_code}, no command has that"
        check.expect(end.exit_code in exits.OF_COMMANDS, text)
    newest = snapshots.newest
    ours = Newest(newest.manifest.version, newest.digest, newest.manifest.lineage)
    if found.newest is None or found.newest.version < ours.version:
        check.problems.append(f"control names {_describe(found.newest)} as the newest, the topic has {ours.version}")
    elif newest_before is not None and newest_before.version > ours.version:
        text = f"control names {_describe(newest_before)} as the newest, the topic goes to {ours.version} only"
        check.problems.append(text)
    elif found.newest.version == ours.version:
        check.expect(found.newest == ours, f"control names another snapshot {ours.version} as the newest")
    check.span = f"{len(found.runs)} runs, {len(found.ends)} ends"


def _describe(newest: Newest | None) -> str:
    return "no snapshot" if newest is None else f"snapshot {newest.version}"


def _published(snapshots: Snapshots, logs: Logs) -> Iterator[tuple[int, Run, str, str | None]]:
    """Yields version, run, mode and build; no build of a host that may have another than the one that publishes."""
    for manifest in (each.manifest for each in snapshots.manifests):
        yield manifest.version, manifest.run, MODES[manifest.is_folded], manifest.build
    for log in logs.all:
        yield from (
            (log.version, log.run, MODES[log.host != ""], None if log.host else terms.build) for terms in log.terms
        )
