"""One entry of a job's [columns]: what a column holds, what it is for, what stands in when it is missing."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from streamtrain import _native
from streamtrain.compute.input import CLIP, FLOOR

MOST_BUCKETS = 2**31 - 1  # a bucket is an int32 in the slot
DEFAULT_EMBED = 8
FLOAT32_MAX = 3.4028234663852886e38
UNITS: dict[str, tuple[int, int]] = {"s": (1000, 1), "ms": (1, 1), "us": (1, 1000), "ns": (1, 1_000_000)}  # to ms


LEAST_HALF_LIFE = 1_000  # rows
ROW_UNITS = {"k": 1_000, "M": 1_000_000, "G": 1_000_000_000}


def rows_of(value: object) -> object:
    """The number of rows in a text such as "1M rows"; anything else as it is."""
    match = re.fullmatch(r"\s*(\d+)\s*([kMG]?)(?:\s*rows)?\s*", value) if isinstance(value, str) else None
    return value if match is None else int(match[1]) * ROW_UNITS.get(match[2], 1)


class Standardize(BaseModel):
    """How a number is standardised, where `standardize` is a table."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    clip: Annotated[float, Field(gt=0, le=1e6)] | Literal["off"] = Field(
        CLIP, description="deviations at which what the model sees is cut; further out is an outlier"
    )
    half_life: Annotated[int | None, BeforeValidator(rows_of)] = Field(
        None,
        ge=LEAST_HALF_LIFE,
        le=10**15,
        description='rows after which what was seen weighs half, such as "1M rows"; default: all weigh the same',
    )

    floor: float = Field(
        FLOOR,
        ge=FLOOR,
        le=FLOAT32_MAX,
        description="of the deviation: a column that varies less is centred and not divided by it",
    )

    def engine(self) -> dict[str, float]:
        """As the engine takes it: 0 for none."""
        clip = 0.0 if self.clip == "off" else self.clip
        return {"clip": clip, "half_life": float(self.half_life or 0), "floor": self.floor}


class Column(BaseModel):
    """The settings of a column, or of all columns its name in braces stands for."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    kind: Literal["number", "category"] | None = Field(
        None, description="number, or category (text, integer or boolean, hashed into buckets); default number"
    )
    role: Literal["feature", "label", "weight", "key", "event_time"] = Field("feature", description="what it is for")
    standardize: bool | Standardize = Field(
        False,
        description="number: take off the running mean, divide by the running deviation; or { clip, half_life, floor }",
    )
    missing: bool | int | float | str = Field(
        "dead_letter", description="absent, null or empty: dead_letter, skip (leave the row out), or a value"
    )
    buckets: int | None = Field(None, ge=1, le=MOST_BUCKETS, description="category: how many buckets the hash has")
    embed: int | None = Field(
        None, ge=1, le=_native.MAX_COLUMNS, description=f"category: numbers per bucket; default {DEFAULT_EMBED}"
    )
    classes: list[str] | int | None = Field(None, description="label: the class names in order, or how many there are")
    unit: Literal["s", "ms", "us", "ns"] | None = Field(None, description="event_time: what one counts; default ms")

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems = [*self._kind_problems(), *self._missing_problems(), *self._class_problems()]
        if problems:
            raise PydanticCustomError("column", "{problems}", {"problems": "; ".join(problems)})
        return self

    @property
    def is_category(self) -> bool:
        return self.kind == "category" and self.role == "feature"

    @property
    def is_number(self) -> bool:
        return self.kind != "category" and self.role == "feature"

    def settings(self) -> dict[str, Any]:
        """What was set, without defaults: for the manifest."""
        return self.model_dump(exclude_defaults=True)

    def standardized(self) -> bool | dict[str, float]:
        """As the engine takes it: False, or the settings."""
        if isinstance(self.standardize, bool):
            return Standardize.model_validate({}).engine() if self.standardize else False
        return self.standardize.engine()

    def _kind_problems(self) -> list[str]:
        problems = []
        if self.kind == "category" and self.role in ("weight", "event_time"):
            problems.append(f'kind: expected "number" for role {self.role}, got "category"')
        if self.is_category and self.buckets is None:
            problems.append("buckets: expected a number of buckets for a category, got none")
        if not self.is_category:
            problems += [
                f"{name}: only a feature of kind category has one"
                for name in ("buckets", "embed")
                if getattr(self, name) is not None and self.role != "key"
            ]
        if self.standardize and (self.kind == "category" or self.role not in ("feature", "label")):
            problems.append("standardize: only a number feature or label can be standardized")
        if self.unit is not None and self.role != "event_time":
            problems.append("unit: only the event_time column has one")
        return problems

    def _missing_problems(self) -> list[str]:
        value = self.missing
        if value in ("dead_letter", "skip") and isinstance(value, str):
            return []
        if self.role == "key":
            return ["missing: a key column is only read by the producer; remove it"]
        if self.is_category:
            if isinstance(value, float) and not value.is_integer():
                return [f'missing: expected "dead_letter", "skip", a text or an integer for a category, got {value!r}']
            return []
        if self.role == "label" and isinstance(value, str):
            return []  # a class name: compared with `classes` where they are known
        if isinstance(value, str):
            return [f'missing: expected "dead_letter", "skip" or a number, got {value!r}']
        if not math.isfinite(value) or (abs(value) > FLOAT32_MAX and self.role != "event_time"):
            return [f"missing: expected a finite number that fits float32, got {value!r}"]
        if self.role == "weight" and value < 0:
            return [f"missing: expected a weight not below 0, got {value!r}"]
        return []

    def _class_problems(self) -> list[str]:
        if self.classes is None:
            return []
        if self.role != "label":
            return ["classes: only the label column has them"]
        count = len(self.classes) if isinstance(self.classes, list) else self.classes
        if isinstance(count, bool) or not 2 <= count <= _native.MAX_CLASSES:
            return [f"classes: expected 2 to {_native.MAX_CLASSES:,} classes, got {count!r}"]
        if isinstance(self.classes, list):
            if len(self.classes) < 2:
                return [f"classes: expected at least 2 names, got {len(self.classes)}"]
            if len(set(self.classes)) < len(self.classes) or "" in self.classes:
                return ["classes: expected names that differ and are not empty"]
        return []
