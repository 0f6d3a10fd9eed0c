"""Standardisation of a number: a setting of features and labels that are numbers."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from streamtrain.columns.kinds.kind import LARGEST, Settings
from streamtrain.columns.kinds.parsed import NumberKind, Parsed
from streamtrain.compute.input import CLIP, FLOOR

MEAN = "mean"  # as `missing`
LEAST_HALF_LIFE = 1_000  # rows
ROW_UNITS = {"k": 1_000, "M": 1_000_000, "G": 1_000_000_000}


def rows_of(value: object) -> object:
    """The number of rows in a text such as "1M rows"; anything else as it is."""
    match = re.fullmatch(r"\s*(\d+)\s*([kMG]?)(?:\s*rows)?\s*", value) if isinstance(value, str) else None
    return value if match is None else int(match[1]) * ROW_UNITS.get(match[2], 1)


class Standardize(BaseModel):
    """The settings of standardisation, where `standardize` is a table."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

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
        le=LARGEST,
        description="of the deviation: a column that varies less is centred and not divided by it",
    )

    def engine(self) -> dict[str, float]:
        """Returns the settings as the engine takes them: 0 for none."""
        clip = 0.0 if self.clip == "off" else self.clip
        return {"clip": clip, "half_life": float(self.half_life or 0), "floor": self.floor}


MISPLACED = "only a number feature or label can be standardized"


class Standardizable(Settings):
    """A column that may be standardised."""

    standardize: bool | Standardize = Field(
        False,
        description="number: take off the running mean, divide by the running deviation; or { clip, half_life, floor }",
        json_schema_extra={"misplaced": MISPLACED},
    )

    def standardized(self) -> Any:
        """Returns what the engine takes: False, or the settings."""
        if isinstance(self.standardize, bool):
            return Standardize.model_validate({}).engine() if self.standardize else False
        return self.standardize.engine()


class Standardized(Standardizable, Parsed):
    """One whose cells are numbers."""


Z = TypeVar("Z", bound=Standardized)


class StandardizedKind(NumberKind[Z]):
    """Kinds of numbers to learn from, of which a missing one may be at the mean: 0 deviations."""

    def missing_problem(self, column: Z) -> str | None:
        if column.missing != MEAN:
            return super().missing_problem(column)
        return None if column.standardize else f'"{MEAN}" is for a number that is standardised: add standardize = true'

    def stand_in(self, column: Z, loss: str) -> float:
        """For the mean stands a NaN: native/kernels/standardize.h."""
        return math.nan if column.missing == MEAN else float(column.missing)

    def read_stand_in(self, column: Z, loss: str) -> Any:
        return None if column.missing == MEAN else super().read_stand_in(column, loss)
