"""The settings table: what each takes, its default, help and environment name, read from the sections."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from pydantic import BaseModel

from streamtrain.compute import optimizers
from streamtrain.job.file import JobFile
from streamtrain.job.optimizer import optimizer_settings, optimizer_takes
from streamtrain.job.sources import ENVIRONMENT_PREFIX
from streamtrain.job.words import bare, default, takes


@dataclass(frozen=True)
class Setting:
    """One setting; `default` as it stands in a file, "" where there is none; `when`: another setting it goes with."""

    path: str
    takes: str
    default: str
    help: str
    environment: str
    when: str = ""


def _rows(model: type[BaseModel], prefix: str) -> Iterator[Setting]:
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        annotation = bare(field.annotation)
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from _rows(annotation, f"{path}.")
            if path == "optimizer":
                yield from _of_optimizers()
        elif path not in ("topics", "columns"):
            yield Setting(path, takes(field), default(field), field.description or "", _variable(path))


def _of_optimizers() -> Iterator[Setting]:
    for name in optimizers.names():
        for setting, value in optimizer_settings(name).items():
            path, takes_ = f"optimizer.{setting}", optimizer_takes(setting)
            yield Setting(path, takes_, str(value), f"of {name}", _variable(path), f'optimizer.name="{name}"')


def _variable(path: str) -> str:
    return ENVIRONMENT_PREFIX + path.upper().replace(".", "__")


@cache
def settings_table() -> tuple[Setting, ...]:
    """Every setting of a job file but [kafka], [topics] and [columns], whose names are librdkafka's or the user's."""
    return tuple(_rows(JobFile, ""))
