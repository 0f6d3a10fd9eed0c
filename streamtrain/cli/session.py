"""The parts that every command has: common options, loading of the job file, check of the connection, and output."""

from __future__ import annotations

import functools
import inspect
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from streamtrain.cli.output import Output
from streamtrain.errors import UserMistake
from streamtrain.job import Job
from streamtrain.kafka.admin import Admin
from streamtrain.log import configure_logging, get_logger

log = get_logger(__name__)
COMMON = "Common options"


def finite(option: typer.CallbackParam, value: float | None) -> float | None:
    """Returns an option's value. Raises UserMistake for one that is infinite or no number."""
    if value is not None and not math.isfinite(value):
        raise UserMistake(f"{option.opts[0]}: expected a finite number, got {value}")
    return value



JobFile = Annotated[Path, typer.Argument(metavar="JOB.toml", help="The job file.", show_default=False)]
MaxRejected = Annotated[
    float,
    typer.Option(
        min=0, max=1, help="Share of rows that may be left out for a cell that no record can hold; above it, an error."
    ),
]
Files = Annotated[
    list[str] | None,
    typer.Option(
        "--files",
        metavar="FILES",
        help="Files in the place of the records topic: a path or a pattern in quotes; may be repeated.",
        show_default=False,
    ),
]
_OPTIONS: dict[str, tuple[Any, Any]] = {
    "as_json": (
        Annotated[
            bool, typer.Option("--json", help="One JSON document, or JSON lines, on stdout.", rich_help_panel=COMMON)
        ],
        False,
    ),
    "bootstrap": (
        Annotated[
            str | None,
            typer.Option(
                "--bootstrap",
                "-b",
                "--bootstrap-server",
                metavar="HOST:PORT",
                help="Kafka's address, over the job file's.",
                rich_help_panel=COMMON,
            ),
        ],
        None,
    ),
    "sets": (
        Annotated[
            list[str] | None,
            typer.Option(
                "--set",
                metavar="SECTION.NAME=VALUE",
                help="A setting over the job file's, such as train.workers=4; may be repeated.",
                rich_help_panel=COMMON,
            ),
        ],
        None,
    ),
    "verbose": (
        Annotated[
            int, typer.Option("--verbose", "-v", count=True, help="More logs; -vv: tracebacks.", rich_help_panel=COMMON)
        ],
        0,
    ),
    "quiet": (
        Annotated[int, typer.Option("--quiet", "-q", count=True, help="Fewer logs.", rich_help_panel=COMMON)],
        0,
    ),
    "log_format": (
        Annotated[
            str, typer.Option("--log-format", metavar="plain|json", help="Form of the logs.", rich_help_panel=COMMON)
        ],
        "plain",
    ),
}


class Session:
    """One call of a command."""

    def __init__(
        self, as_json: bool, bootstrap: str | None, sets: list[str] | None, verbose: int, quiet: int, log_format: str
    ) -> None:
        level = "debug" if verbose else ("info", "warning", "error")[min(quiet, 2)]
        configure_logging(level, log_format)
        self.logging = {"level": level, "format": log_format}  # for the processes a command spawns
        self.out = Output(as_json, quiet=quiet > 0)
        self.as_json = as_json
        self.bootstrap = bootstrap
        self.sets = list(sets or [])

    def job(self, path: Path, flags: Mapping[str, str] | None = None, imports: bool = True) -> Job:
        """The job of a file, under the environment, --set, and a command's flags by name, each as `train.workers=4`;
        `imports` as for Job.load."""
        job = Job.load(path, os.environ, self.sets, self.bootstrap, flags or {}, imports)
        for warning in job.warnings:
            log.warning(str(warning))
        return job

    def connected_job(self, path: Path) -> Job:
        """Returns the job as `job` does, `connected`."""
        return self.connected(self.job(path))

    def connected(self, job: Job) -> Job:
        """Returns the job after a broker has answered. Raises KafkaUnreachable within 10 s if none does."""
        self.admin(job).broker_count()
        return job

    def admin(self, job: Job) -> Admin:
        """An administration client of the job's Kafka."""
        return Admin(job.kafka.bootstrap, job.kafka_admin())


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Gives a command function the common options; it gets them as its first argument, a Session."""

    @functools.wraps(function)
    def with_options(**given: Any) -> None:
        common = {name: given.pop(name) for name in _OPTIONS}
        function(Session(**common), **given)

    signature = inspect.signature(function, eval_str=True)
    own = list(signature.parameters.values())[1:]
    keyword = inspect.Parameter.KEYWORD_ONLY
    common = [inspect.Parameter(name, keyword, default=d, annotation=a) for name, (a, d) in _OPTIONS.items()]
    parameters = [*(p.replace(kind=keyword) for p in own), *common]
    setattr(with_options, "__signature__", signature.replace(parameters=parameters))  # noqa: B010 - mypy knows no such attribute
    with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del with_options.__wrapped__
    return with_options
