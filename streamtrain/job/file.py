"""The job file as one model: its sections, and every value checked by itself. What spans sections is in checks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, get_args, get_origin

from pydantic import BaseModel, Field, ValidationError
from pydantic.fields import FieldInfo

from streamtrain.columns.column import Column
from streamtrain.job.lines import Path
from streamtrain.job.mistakes import Mistake, show_path, show_value
from streamtrain.job.sections import (
    Ingest,
    JobName,
    Model,
    Optimizer,
    Predict,
    Publish,
    Records,
    Section,
    Topics,
    Train,
)
from streamtrain.job.setting_sources import APART, Gathered
from streamtrain.job.words import bare, plain, takes
from streamtrain.registry import nearest


class JobFile(Section):
    """A job file without [kafka] and [registry]."""

    name: JobName = Field(description="the job's name; topics begin with it, the trainer writes as streamtrain.<name>")
    topics: Topics = Field(default={}, description="names and creation settings of topics")
    records: Records = Records()
    columns: dict[str, Column] = Field(min_length=1, description="what of a record is used, and as what")
    transforms: dict[str, dict[str, Any]] = Field(
        default={}, description="what becomes of columns, in written order: each makes columns of its own name"
    )
    model: Model = Model()
    optimizer: Optimizer = Optimizer()
    train: Train = Train()
    ingest: Ingest = Ingest()
    publish: Publish = Publish()
    predict: Predict = Predict()


SECTIONS = [*JobFile.model_fields, *APART]


def _walk(path: Path) -> tuple[FieldInfo | None, Any]:
    """The field at a path of a job file and what it holds; None where no model describes it."""
    kind: Any = JobFile
    field: FieldInfo | None = None
    for part in path:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            field = next((field for name, field in kind.model_fields.items() if (field.alias or name) == part), None)
            kind = bare(field.annotation) if field is not None else None
        elif get_origin(kind) in (dict, list):
            field, kind = None, bare(get_args(kind)[-1])
        else:
            return None, None
    return field, kind


def names_at(path: Path) -> list[str]:
    """The names allowed in the table at a path; none where any name is."""
    _, kind = _walk(path)
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return []
    names = [field.alias or name for name, field in kind.model_fields.items()]
    return [*names, *APART] if path == () else names


def _known_part(path: Path, gathered: Gathered) -> Path:
    """`path` without what pydantic adds below the value it found wrong (the member of a union)."""
    while path:
        try:
            gathered.at(path)
            return path
        except (LookupError, TypeError):
            path = path[:-1]
    return path


def _mistakes(error: ValidationError, gathered: Gathered) -> Iterator[Mistake]:
    seen: set[Path] = set()
    for item in error.errors(include_url=False):
        context = item.get("ctx", {})
        path = item["loc"] if item["type"] == "missing" else _known_part(item["loc"], gathered)
        if path in seen:
            continue
        seen.add(path)
        where, setting = gathered.where(path), show_path(path)
        field = _walk(item["loc"])[0] or _walk(path)[0]  # a name in the place of a table is wrong as its name
        if item["type"] == "extra_forbidden":
            yield Mistake.unknown(where, setting, names_at(path[:-1]), "setting" if len(path) > 1 else "section")
        elif item["type"] == "column":
            yield from column_mistakes(gathered, path, str(context["problems"]))
        elif item["type"] == "missing":
            yield Mistake(where, setting, f"missing, expected {takes(field)}" if field else "missing")
        elif item["type"] == "section":
            yield Mistake(where, setting, str(context["expected"]), show_value(gathered.at(path)))
        else:
            expected = takes(field) if field is not None else str(context.get("expected") or plain(_walk(path)[1]))
            allowed = context.get("allowed", ())
            value = gathered.at(path)
            near = (
                nearest(value, allowed or expected.removeprefix("one of ").split(", "))
                if isinstance(value, str)
                else ""
            )
            yield Mistake(where, setting, expected, show_value(value), nearest=near)


_COLUMN_PROBLEM = re.compile(rf"(?:^|; )({'|'.join(Column.model_fields)}): ")


def column_mistakes(gathered: Gathered, path: Path, problems: str) -> Iterator[Mistake]:
    """A column's problems, "buckets: …; missing: …", each at the line of its setting."""
    parts = _COLUMN_PROBLEM.split(problems)
    if parts[0]:
        yield Mistake(gathered.where(path), show_path(path), parts[0])
    for name, problem in zip(parts[1::2], parts[2::2], strict=True):
        yield Mistake(gathered.where((*path, name)), show_path((*path, name)), problem)


def check_values(gathered: Gathered) -> JobFile | None:
    """The job file; mistakes are added to `gathered`, and what is mistaken is left out.

    None where the rest is not enough to check anything else.
    """
    try:
        return JobFile.model_validate(gathered.tree)
    except ValidationError as error:
        gathered.mistakes.extend(_mistakes(error, gathered))
        paths = [_known_part(item["loc"], gathered) for item in error.errors(include_url=False)]
        try:
            return JobFile.model_validate(_without(gathered.tree, paths))
        except ValidationError:
            return None


def _without(tree: dict[str, Any], paths: list[Path]) -> dict[str, Any]:
    """A copy of the tree without the settings at `paths`; of a mistaken array the whole is left out."""
    copy = deepcopy(tree)
    for path in paths:
        table: Any = copy
        for part in path:
            inner = table.get(part)
            if part == path[-1] or not isinstance(inner, dict):
                table.pop(part, None)
                break
            table = inner
    return copy
