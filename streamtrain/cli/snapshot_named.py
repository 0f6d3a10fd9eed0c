"""A snapshot by what a command line calls it: its version, or the best one."""

from __future__ import annotations

from typing import Any

import typer

from streamtrain.job import Job
from streamtrain.kafka.snapshot_reader import BEST, SnapshotTopic, Version


def option(*names: str, help: str) -> Any:
    """Returns an option that takes a version from 1 or `best`, and gives it as text."""
    return typer.Option(*names, metavar="N|best", parser=_parsed, help=help, show_default=False)


def snapshots_of(job: Job) -> SnapshotTopic:
    return SnapshotTopic(job.name, job.kafka.bootstrap, job.kafka_consumer())


def parse_version(named: str | None) -> Version | None:
    """Returns the version that option() has read; None without one."""
    return None if named is None else BEST if named == BEST else int(named)


def version_of(job: Job, named: str | None) -> int | None:
    """The version that is meant; None where none is named. UserMistake where the topic does not hold it."""
    version = parse_version(named)
    if version is None:
        return None
    with snapshots_of(job) as topic:
        return topic.named(version).manifest.version


def _parsed(given: str) -> str:
    if given != BEST and not (given.isascii() and given.isdigit() and int(given)):
        raise typer.BadParameter(f"expected a version from 1, or {BEST}, got {given!r}")
    return given
