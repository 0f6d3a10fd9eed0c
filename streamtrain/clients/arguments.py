"""Checks of what other programs give: a job, its name, an address. All raise UserMistake."""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from streamtrain.errors import UserMistake
from streamtrain.job import Job
from streamtrain.job.sections import JobName
from streamtrain.kafka.snapshot_reader import BEST, Version

_NAME = TypeAdapter(JobName)


def job_name(where: str, name: object) -> str:
    """A name topics can begin with."""
    if isinstance(name, Job):
        raise UserMistake(f"{where}: expected the job's name, got a Job; give it job.name")
    try:
        return _NAME.validate_python(name)
    except ValidationError:
        raise UserMistake(
            f"{where}: expected a job's name of letters, digits, '.', '_' and '-', at most 200, got {name!r}"
        ) from None


def address(where: str, bootstrap: object) -> str:
    """host:port, or several with commas between."""
    if not isinstance(bootstrap, str) or not all(part.strip() for part in bootstrap.split(",")):
        raise UserMistake(f'{where}: expected Kafka\'s address as bootstrap ("localhost:9092"), got {bootstrap!r}')
    return bootstrap


def version_of(where: str, version: object) -> Version | None:
    """A snapshot's version from 1, "best", or None for the newest."""
    if version is None or (isinstance(version, int) and not isinstance(version, bool) and version >= 1):
        return version
    if version != BEST:
        raise UserMistake(f'{where}: expected as version a number from 1, "{BEST}" or None, got {version!r}')
    return BEST


def job_of(where: str, job: object) -> Job:
    """A Job, or the job file at a path."""
    if isinstance(job, Job):
        return job
    if isinstance(job, str | Path):
        return Job.load(job)
    raise UserMistake(f"{where}: expected a Job or the path of a job file, got {type(job).__name__}")
