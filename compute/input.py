"""From slot blocks to the input matrix: numbers, standardised where asked for, then an embedding per category."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamtrain.compute.builder import Builder, Table, Value
from streamtrain.compute.spec import Ref

MOMENTS = ("count", "mean", "squares")   # of a column; squares: the sum of squared deviations from the mean
EMBEDDING_LIMIT = 0.05   # tables start uniform in [-0.05, 0.05)


@dataclass(frozen=True)
class Category:
    name: str
    buckets: int
    embed: int


@dataclass(frozen=True)
class InputShape:
    """What the engine must know of the columns."""

    numbers: int
    standardize: tuple[bool, ...]   # per number
    categories: tuple[Category, ...]
    classes: int
    standardize_label: bool

    @property
    def width(self) -> int:
        return self.numbers + sum(category.embed for category in self.categories)


def scale_of(builder: Builder, name: str, columns: int, chosen: Sequence[bool], x: Ref, weight: Ref) -> tuple[Ref, Ref]:
    """Mean and scale of columns from the base's moments; the batch's own moments go into the share."""
    base, share = builder.statistic(name, "statistics", "moments", columns, len(MOMENTS))
    flags = builder.constant(f"{name}.chosen", [int(flag) for flag in chosen], "u8")
    mean, scale = builder.buffer(f"{name}.mean", columns), builder.buffer(f"{name}.scale", columns)
    builder.call("standardize_scale", columns, base, flags, mean, scale)
    with builder.during("train", "statistics"):
        builder.call("moments", builder.rows, columns, x, weight, share)
    return mean, scale


def build(builder: Builder, shape: InputShape) -> Value:
    """The input matrix [rows, width]; numbers alone and not standardised are used where they lie in the slot."""
    rows, width = builder.rows, shape.width
    numbers = builder.slot("numbers", "f32", shape.numbers) if shape.numbers else None
    if numbers is not None and not shape.categories and not any(shape.standardize):
        return Value(numbers, learns=False)
    x = builder.buffer("input", rows, width)
    if numbers is not None:
        if any(shape.standardize):
            weight = builder.slot("weight", "f32", 1)
            mean, scale = scale_of(
                builder, "standardize.moments", shape.numbers, shape.standardize, numbers, weight
            )
        else:
            mean = builder.constant("input.mean", [0.0] * shape.numbers, "f32")
            scale = builder.constant("input.scale", [1.0] * shape.numbers, "f32")
        builder.call("standardize", rows, shape.numbers, width, numbers, mean, scale, x)
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
