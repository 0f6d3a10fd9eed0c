"""A setting that vector and image columns share: their size."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from streamtrain.columns.kinds.kind import Settings

MISPLACED: dict[str, Any] = {"misplaced": "only a feature of kind vector or image has one"}


class Sized(Settings):
    """The settings of columns with a size: vectors and images."""

    size: int | list[int] | None = Field(
        None, description="vector: how many numbers it has; image: its height and width, one number where they are one",
        json_schema_extra=MISPLACED,
    )  # fmt: skip
