"""From slot blocks to the input matrix: numbers, standardised where asked for, then an embedding per category."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from streamtrain.compute.builder import Builder, Table, Value
from streamtrain.compute.moments import LEAST_DEVIATION, MOMENTS
from streamtrain.compute.spec import Ref

EMBEDDING_LIMIT = 0.05   # tables start uniform in [-0.05, 0.05)
CLIP = 8.0   # deviations
FLOOR = LEAST_DEVIATION   # its inverse is a float32


@dataclass(frozen=True)
class Standardize:
    """How a column is standardised: the model sees at most `clip` deviations (0: all there are), and what lies further
    out is held back from the moments; what was seen `half_life` rows ago weighs half in them (0: as much). A column of
    a deviation below `floor` is only centred."""

    clip: float = CLIP
    half_life: float = 0.0
    floor: float = FLOOR


@dataclass(frozen=True)
class Category:
    name: str
    buckets: int
    embed: int


@dataclass(frozen=True)
class InputShape:
    """What the engine must know of the columns."""

    numbers: int
    standardize: tuple[Standardize | None, ...]   # per number
    categories: tuple[Category, ...]
    classes: int
    standardize_label: Standardize | None

    @property
    def width(self) -> int:
        return self.numbers + sum(category.embed for category in self.categories)


@dataclass(frozen=True)
class Scale:
    """Of standardised columns, each [columns]: see native/kernels/standardize_scale.h."""

    mean: Ref
    scale: Ref
    clip: Ref
    low: Ref
    high: Ref


def scale_of(builder: Builder, block: str, chosen: Sequence[Standardize | None], x: Ref, weight: Ref) -> Scale:
    """The scale of a slot block's columns from the base's moments; the batch's own moments go into the share."""
    name, columns = f"standardize.{block}", len(chosen)
    start = np.zeros((columns, len(MOMENTS)))
    for row, settings in zip(start, chosen, strict=True):
        if settings is not None:
            for field in fields(Standardize):
                row[MOMENTS.index(field.name)] = getattr(settings, field.name)
    base, share = builder.statistic(name, "statistics", "moments", columns, len(MOMENTS), start=start)
    flags = builder.constant(f"{name}.chosen", [int(settings is not None) for settings in chosen], "u8")
    found = Scale(*(builder.buffer(f"{name}.{field.name}", columns) for field in fields(Scale)))
    parts = (found.mean, found.scale, found.clip, found.low, found.high)
    builder.call("standardize_scale", columns, base, flags, *parts)
    with builder.during("train"):
        builder.call("moments", builder.rows, columns, x, weight, *parts, share)
    return found


def build(builder: Builder, shape: InputShape) -> Value:
    """The input matrix [rows, width]; numbers alone and not standardised are used where they lie in the slot."""
    rows, width = builder.rows, shape.width
    numbers = builder.slot("numbers", "f32", shape.numbers) if shape.numbers else None
    if numbers is not None and not shape.categories and not any(shape.standardize):
        return Value(numbers, learns=False)
    x = builder.buffer("input", rows, width)
    if numbers is not None:
        if any(shape.standardize):
            found = scale_of(builder, "numbers", shape.standardize, numbers, builder.slot("weight", "f32", 1))
            mean, scale, clip = found.mean, found.scale, found.clip
        else:
            mean, scale, clip = (
                builder.constant(f"input.{name}", [number] * shape.numbers, "f32")
                for name, number in (("mean", 0.0), ("scale", 1.0), ("clip", np.inf))
            )
        builder.call("standardize", rows, shape.numbers, width, numbers, mean, scale, clip, x)
    if shape.categories:
        embed(builder, shape, x)
    return Value(x, learns=bool(shape.categories))


def embed(builder: Builder, shape: InputShape, x: Ref) -> None:
    """Adds a table <name>.embedding [buckets, embed] per category column and its gradient on the way back."""
    rows, width, columns = builder.rows, shape.width, len(shape.categories)
    indices = builder.slot("categories", "i32", columns)
    weight = builder.slot("weight", "f32", 1)
    at, starts = shape.numbers, []
    for column, category in enumerate(shape.categories):
        table = builder.table(f"{category.name}.embedding", category.buckets, category.embed, EMBEDDING_LIMIT)
        builder.call(
            "embedding_forward", rows, columns, column, category.buckets, category.embed, width, at, indices, table, x
        )
        starts.append((column, category, table, at))
        at += category.embed

    def backward(dx: Ref) -> tuple[Ref | None, bool]:
        for column, category, table, start in starts:
            seen = builder.buffer(f"{category.name}.seen", category.buckets, dtype="i32")
            lead = builder.buffer(f"{category.name}.lead", rows, dtype="i32")
            gradient = builder.buffer(f"{category.name}.gradient", rows, category.embed, dtype="f64")
            builder.call("embedding_lead", rows, columns, column, category.buckets, indices, weight, seen, lead)
            builder.call("embedding_gradient", rows, category.embed, width, start, dx, lead, gradient)
            builder.tables.append(Table(table, gradient, indices, column, lead))
        return None, True

    builder.on_backward(backward, Value(x, learns=False))
