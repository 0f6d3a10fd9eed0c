"""The kinds of label. A loss file names its kind in LABEL: how the label is decoded, and what its block in a slot
holds."""

from __future__ import annotations

from typing import Literal

LabelKind = Literal["binary", "class", "number", "count"]   # 0 or 1; a class by name or index; any number; from 0 on
_DTYPES: dict[str, str] = {"binary": "f32", "class": "i32", "number": "f32", "count": "f32"}


def label_dtype(kind: str) -> str:
    """Returns the dtype of the slot's label block."""
    return _DTYPES[kind]
