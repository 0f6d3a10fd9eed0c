"""One entry of a job's [columns]: what a column holds, what it is for, what stands in when it is missing.

Its settings are those of all kinds; each kind's file says which, and what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, create_model, model_validator
from pydantic_core import PydanticCustomError

from streamtrain.columns.around import AROUND_HELP, FROM, TIMESTAMP, holds_text, source_problem
from streamtrain.columns.kinds import DEFAULT, FEATURE, REGISTRY, features, kind_of, kinds, roles
from streamtrain.columns.kinds.input import HOLDS
from streamtrain.columns.kinds.kind import KEEP, SKIP_HEAD, Kind, Settings
from streamtrain.registry import nearest

_ANY_OF: Any = Literal
LABEL = "label"
INPUT = "input"  # the role of columns that transforms read and the model does not


def _describe_kinds() -> str:
    text = "; ".join(f"{name}: {help_}" for name, help_ in REGISTRY.describe().items() if name in features())
    return f"{text}; default {DEFAULT}"


def _options() -> tuple[type[Settings], ...]:
    """Each kind's own, those that build on others first, as a class's bases must stand."""
    return tuple(sorted({kind.options for kind in kinds().values()}, key=lambda each: (-len(each.__mro__), repr(each))))


_AROUND: dict[str, Any] = {FROM: (str | None, Field(None, description=AROUND_HELP))}
_Options: Any = create_model(
    "_Options",
    __base__=_options(),
    kind=(_ANY_OF[tuple(dict.fromkeys([*features(), *HOLDS]))] | None, Field(None, description=_describe_kinds())),
    role=(_ANY_OF[(FEATURE, *roles())], Field(FEATURE, description="purpose of the column")),
    **_AROUND,
)


class Column(_Options):  # type: ignore[misc]  # its bases are those found in the folder
    """The settings of a column, or of all columns its name in braces stands for."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _implied(cls, given: Any) -> Any:
        """Fills in the role of kinds that only transforms read, and each role's `missing`, if not given."""
        if not isinstance(given, dict):
            return given
        if "role" not in given and given.get("kind") in HOLDS and given["kind"] not in features():
            given = {**given, "role": INPUT}
        role = given.get("role")
        if "missing" not in given and isinstance(role, str) and role in roles():
            given = {**given, "missing": roles()[role].default_missing}
        return given

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems = [*self._kind_problems(), *self._around_problems(), *self._missing_problems()]
        if problems:
            raise PydanticCustomError("column", "{problems}", {"problems": "; ".join(problems)})
        return self

    @property
    def entry(self) -> Kind[Any]:
        """Returns the kind of the column."""
        return kind_of(self)

    @property
    def around(self) -> str | None:
        """Returns the message metadata that the cells come from; None if they are in the record."""
        source: str | None = getattr(self, FROM)
        return source

    def settings(self) -> dict[str, Any]:
        """Returns the settings that are not at their defaults, for the manifest."""
        return dict(self.model_dump(exclude_defaults=True))

    def _kind_problems(self) -> Iterator[str]:
        beside = self.entry.beside
        if self.role != FEATURE and self.kind is not None and beside is not None and self.kind not in beside:
            yield f'kind: expected "{beside[0]}" for role {self.role}, got "{self.kind}"'
        for name, field in type(self).model_fields.items():
            ours = name in self.entry.options.model_fields or name == FROM
            if not ours and getattr(self, name) != field.default:
                yield f"{name}: {field.json_schema_extra['misplaced']}"
        yield from self.entry.problems(self)

    def _around_problems(self) -> Iterator[str]:
        if self.around is None:
            return
        problem = source_problem(self.around)
        if problem is None and not self.entry.decoded:
            problem = f"a column with role {self.role} is read by the producer alone"
        if problem is None and self.entry.cells(self) != "value":
            problem = "a list is in the record"
        if problem is None and holds_text(self.around) and not self.entry.takes_text(self):
            problem = f"{self.around} is text; say how it is parsed (parse)"
        if problem is not None:
            yield f"{FROM}: {problem}"
        if self.path is not None:
            yield f"path: expected none for what is around the record, got {self.path!r}"
        if self.around == TIMESTAMP and getattr(self, "unit", None) not in (None, "ms"):
            yield f'unit: expected "ms" for a message\'s timestamp, got "{self.unit}"'

    def _missing_problems(self) -> Iterator[str]:
        if self.missing == KEEP and self.entry.default_missing != KEEP:
            yield f'missing: "{KEEP}" is for what transforms read and the model does not (role = "{INPUT}")'
        if self.missing == SKIP_HEAD and self.role != LABEL:
            yield f'missing: "{SKIP_HEAD}" is for one of several labels (role = "{LABEL}")'
        problem = self.entry.missing_problem(self) if self.has_stand_in else None
        if problem is not None:
            yield f"missing: {problem}"


def format_error(error: Any) -> str:
    """Returns the message for one of the errors of a column's ValidationError."""
    where = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        near = nearest(where, Column.model_fields)
        hint = f"; did you mean {near!r}?" if near else ""
        return f"{where}: expected one of {', '.join(Column.model_fields)}, got {where!r}{hint}"
    return f"{where}: {error['msg']}" if where else str(error["msg"])
