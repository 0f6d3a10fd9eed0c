"""From slot blocks to the input matrix: numbers, standardised where asked for, embeddings of categories, vectors, bags,
pictures. A clip of sound is a vector with a block of its own.

Side by side in that order, then what transforms with state make; sparse columns without an embedding go past it,
straight to the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate

import numpy as np

from streamtrain.compute import initializers, stateful, stateful_inputs
from streamtrain.compute.builder import STATISTICS, Builder, Gradient, Tables, Value
from streamtrain.compute.initial_values import ZERO, Start
from streamtrain.compute.initializers import AUTO
from streamtrain.compute.moments import LEAST_DEVIATION, MOMENTS
from streamtrain.compute.ops.entry_table import place_of
from streamtrain.compute.ops.first_seen import slots_of
from streamtrain.compute.spec import INSTANCES, Ref, Refs
from streamtrain.compute.stateful.transform import StatefulSpec

EMBEDDING = Start.uniform(0.05)   # what tables start from, of "auto"
GRADIENT_BYTES = 1 << 17   # of tables that are updated together: what one call leaves for the next stays in the L2
CLIP = 8.0   # deviations
FLOOR = LEAST_DEVIATION   # its inverse is a float32
NUMBERS, VECTORS = "numbers", "vectors"   # blocks of the slot


def dtype_of(block: str, standardized: Iterable[object]) -> str:
    """Returns the type of a slot's block of floats. Numbers are float64 if one of them is standardised: float32 would
    lose small differences of large numbers."""
    return "f64" if block == NUMBERS and any(standardized) else "f32"


@dataclass(frozen=True)
class Standardize:
    """The settings by which a column is standardised.

    The model sees at most `clip` deviations (0: all there are). Values further out are limited before they enter the
    mean and variance. Values seen `half_life` rows ago weigh half in these (0: as much). A column whose deviation
    is below `floor` is only centred.
    """

    clip: float = CLIP
    half_life: float = 0.0
    floor: float = FLOOR


@dataclass(frozen=True)
class Category:
    name: str
    buckets: int
    embed: int
    init: str = AUTO   # of compute/initializers.py


@dataclass(frozen=True)
class Vector:
    """Numbers that come together."""

    size: int
    standardize: Standardize | None
    block: str = VECTORS   # of the slot


@dataclass(frozen=True)
class Pixels:
    """Bytes of a block, each a number from -0.5 to 0.5."""

    block: str
    size: int


SUM, MEAN, MAX = POOLS = ("sum", "mean", "max")   # of a bag's rows; MAX of an input alone, not of the outputs


@dataclass(frozen=True)
class Bag:
    """Rows of a table, any number of them for each row of the batch: their sum, their mean, or of each
    column the largest."""

    name: str
    block: str      # of the slot, ragged: the indexes
    buckets: int
    embed: int      # 0: a number for each output, added to it
    pool: str       # one of POOLS
    width: int      # entries of a row, in the mean
    most: int       # of one row
    scales: str     # of the slot, ragged: what each is multiplied by; "": 1
    init: str = AUTO


@dataclass(frozen=True)
class InputShape:
    """The shape of the input: all that the engine must know of the columns."""

    numbers: int
    standardize: tuple[Standardize | None, ...]   # per number
    categories: tuple[Category, ...]
    classes: int
    standardize_label: Standardize | None
    vectors: tuple[Vector, ...] = ()
    bags: tuple[Bag, ...] = ()
    stateful: tuple[StatefulSpec, ...] = ()
    pixels: tuple[Pixels, ...] = ()

    @property
    def width(self) -> int:
        tables = sum(each.embed for each in self.categories) + sum(each.embed for each in self.bags)
        return self.numbers + tables + sum(self.fixed) + sum(map(stateful_inputs.width, self.stateful))

    @property
    def fixed(self) -> list[int]:
        """Columns of what takes as many in every row, but numbers and tables."""
        return [*(vector.size for vector in self.vectors), *(each.size for each in self.pixels)]

    @property
    def blocks(self) -> dict[str, tuple[Standardize | None, ...]]:
        """The slot's blocks of numbers and vectors, in the order of the input matrix, and of each its columns."""
        found = {NUMBERS: list(self.standardize)} if self.numbers else {}
        for vector in self.vectors:
            found.setdefault(vector.block, []).extend([vector.standardize] * vector.size)
        return {block: tuple(columns) for block, columns in found.items()}

    @property
    def linear(self) -> tuple[Bag, ...]:
        """Returns the bags that are no part of the input matrix."""
        return tuple(bag for bag in self.bags if not bag.embed)


# dx, whose first column is that column of the input matrix -> the gradients of the touched rows of tables
Gather = Callable[[Ref, int], None]


@dataclass(frozen=True)
class Scale:
    """The scaling of standardised columns, each [columns]: see native/kernels/standardize_scale.h."""

    mean: Ref
    scale: Ref
    clip: Ref
    low: Ref
    high: Ref


OF_NUMBERS = ("mean", "low", "high")   # of a Scale: of the numbers' type; the others are float32


def scale_of(builder: Builder, block: str, chosen: Sequence[Standardize | None], x: Ref, weight: Ref) -> Scale:
    """The scale of a slot block's columns from the base's moments; the batch's own moments go into the share. The mean
    and the limits are of the block's type."""
    name, columns, types = f"standardize.{block}", len(chosen), INSTANCES[x.dtype]
    start = np.zeros((columns, len(MOMENTS)))
    for row, settings in zip(start, chosen, strict=True):
        if settings is not None:
            for field in fields(Standardize):
                row[MOMENTS.index(field.name)] = getattr(settings, field.name)
    base, share = builder.statistic(name, "statistics", "moments", columns, len(MOMENTS), start=start)
    flags = builder.constant(f"{name}.chosen", [int(settings is not None) for settings in chosen], "u8")
    found = Scale(*(
        builder.buffer(f"{name}.{field.name}", columns, dtype=x.dtype if field.name in OF_NUMBERS else "f32")
        for field in fields(Scale)
    ))
    parts = (found.mean, found.scale, found.clip, found.low, found.high)
    builder.call("standardize_scale", columns, base, flags, *parts, types=types)
    with builder.during(*STATISTICS):
        builder.call("moments", builder.rows, columns, x, weight, *parts, share, types=types)
    return found


def build(builder: Builder, shape: InputShape, label_dtype: str, own: bool = False) -> Value:
    """The input matrix [rows, width]; numbers alone and not standardised are used where they lie in the slot, and where
    there is nothing but linear() it is a column of zeros. `label_dtype`: of the slot's label; `own`: always a matrix
    apart from the slot."""
    rows, width, blocks = builder.rows, shape.width, shape.blocks
    if not width:
        return Value(builder.buffer("input", rows, 1), learns=False)
    for block, chosen in blocks.items():
        if len(chosen) == width and not any(chosen) and not own:
            return Value(builder.slot(block, "f32", width), learns=False)
    x = builder.buffer("input", rows, width)
    at = 0
    if shape.numbers:
        at = numbers(builder, NUMBERS, blocks.pop(NUMBERS), x, at)
    tables: list[Gather] = []
    if shape.categories:
        tables.append(embed(builder, shape.categories, builder.slot("categories", "i32", len(shape.categories)), x, at))
    learned = [at] if tables else []   # the columns of tables: their bounds, in any order
    at += sum(category.embed for category in shape.categories)
    learned += [at] if tables else []
    for block, chosen in blocks.items():
        at = numbers(builder, block, chosen, x, at)
    for bag in shape.bags:
        if bag.embed:
            begin = initializers.begin(bag.init, EMBEDDING, bag.buckets, bag.embed)
            tables.append(pool(builder, bag, x, at, begin))
            at += bag.embed
            learned += [at - bag.embed, at]
    for picture in shape.pixels:
        builder.call("pixels", rows, picture.size, width, at, builder.slot(picture.block, "u8", picture.size), x)
        at += picture.size
    for each, column, count, index in stateful_inputs.build(builder, shape.stateful, label_dtype, x, at):
        if index is not None:
            rows_of = stateful.get(each.transform).rows_of(each)
            table = Category(each.name, count, each.embed, each.init)
            tables.append(embed(builder, [table], index, x, column, rows_of))
            learned += [column, column + each.embed]
    window = (min(learned), max(learned)) if learned else (0, width)

    def backward(dx: Ref) -> tuple[()]:
        for gather in tables:
            gather(dx, 0 if dx.shape[1] == width else window[0])
        return ()

    found = Value(x, learns=bool(tables), learned=window if window != (0, width) else None)
    return builder.on_backward(backward, (), found)


def numbers(builder: Builder, block: str, chosen: Sequence[Standardize | None], x: Ref, at: int) -> int:
    """A block's columns into the input matrix from column `at` on; gives the column behind them."""
    rows, width = x.shape
    dtype = dtype_of(block, chosen)
    columns, given = len(chosen), builder.slot(block, dtype, len(chosen))
    if any(chosen):
        found = scale_of(builder, block, chosen, given, builder.slot("weight", "f32", 1))
        mean, scale, clip = found.mean, found.scale, found.clip
    else:
        mean, scale, clip = (
            builder.constant(f"{block}.{name}", [number] * columns, "f32")
            for name, number in (("mean", 0.0), ("scale", 1.0), ("clip", np.inf))
        )
    builder.call("standardize", rows, columns, width, at, given, mean, scale, clip, x, types=INSTANCES[dtype])
    return at + columns


def embed(
    builder: Builder, categories: Sequence[Category], indices: Ref, x: Ref, at: int, rows_of: str = ""
) -> Gather:
    """Adds a table <name>.embedding [buckets, embed] for each column of `indices`, of which the rows that it says go
    into x, side by side from column `at` on."""
    rows, columns = indices.shape
    tables = []
    for column, its in enumerate(categories):
        begin = initializers.begin(its.init, EMBEDDING, its.buckets, its.embed)
        table = builder.table(f"{its.name}.embedding", its.buckets, its.embed, begin, rows_of)
        tables.append((table, column, at))
        at += its.embed
    builder.call("embedding_forward", rows, columns, len(tables), x.shape[1], _places(builder, tables, "forward"),
                 indices, Refs(tuple(table for table, _, _ in tables)), x)

    def gather(dx: Ref, first: int) -> None:
        weight, slots = builder.slot("weight", "f32", 1), slots_of(rows)
        for some in _some_at_a_time(tables, rows):
            parameters, places = Refs(tuple(table for table, _, _ in some)), _places(builder, some, "gradient")
            count, total, name = len(some), sum(table.shape[1] for table, _, _ in some), parameters.refs[0].name
            seen = builder.buffer(f"{name}.seen", slots, dtype="i64")
            lead = builder.buffer(f"{name}.lead", count, rows, dtype="i32")
            gradient = builder.buffer(f"{name}.gradient", rows, total, dtype="f64")
            builder.call("embedding_lead", rows, columns, count, slots, places, indices, weight, seen, lead)
            builder.call("embedding_gradient", rows, count, total, dx.shape[1], first, places, dx, lead, gradient)
            builder.on_tables(Tables(parameters, places, gradient, indices, lead))

    return gather


_Placed = tuple[Ref, int, int]   # a table, the column of its categories, the first of its columns in the input matrix


def _places(builder: Builder, tables: Sequence[_Placed], name: str) -> Ref:
    """Returns what kernels must know of tables, in one constant."""
    before = accumulate((table.shape[1] for table, _, _ in tables), initial=0)
    found = [place_of(column, table.shape[0], table.shape[1], at, first)
             for (table, column, at), first in zip(tables, before, strict=False)]  # fmt: skip
    return builder.constant(f"{tables[0][0].name}.{name}.places", found, "i64")


def _some_at_a_time(tables: Sequence[_Placed], rows: int) -> Iterator[Sequence[_Placed]]:
    """Yields groups of tables whose gradients take at most GRADIENT_BYTES, which is memory of a step.

    A single table may take more.
    """
    some: list[_Placed] = []
    for each in tables:
        if some and 8 * rows * sum(table.shape[1] for table, _, _ in [*some, each]) > GRADIENT_BYTES:
            yield some
            some = []
        some.append(each)
    yield some


def pool(builder: Builder, bag: Bag, x: Ref, at: int, begin: Start, adds: bool = False) -> Gather:
    """Adds a table <name>.embedding [buckets, dim], whose bags go into the columns of x from `at` on: as many as the
    bag has, or with `adds` on top of what stands in all of them."""
    rows, width = x.shape
    dim, mean = bag.embed or width, int(bag.pool == MEAN)
    ends, index = builder.ragged(bag.block, "i32", bag.width, bag.most)
    scale = builder.ragged(bag.scales, "f32", bag.width, bag.most)[1] if bag.scales else None
    entries = index.elements
    table = builder.table(f"{bag.name}.embedding", bag.buckets, dim, begin)
    winner = builder.buffer(f"{bag.name}.winner", rows, dim, dtype="i32") if bag.pool == MAX else None
    read = (rows, entries, bag.buckets, dim, width, at, ends, index, scale, table)
    if winner is None:
        builder.call("bag_forward", *read, mean, int(adds), x)
    else:
        builder.call("bag_max_forward", *read, x, winner)

    def gather(dx: Ref, first: int) -> None:
        weight = builder.slot("weight", "f32", 1)
        slots = slots_of(entries)
        seen = builder.buffer(f"{bag.name}.seen", slots, dtype="i64")
        lead = builder.buffer(f"{bag.name}.lead", entries, dtype="i32")
        gradient = builder.buffer(f"{bag.name}.gradient", entries, dim, dtype="f64")
        builder.call("bag_lead", rows, entries, bag.buckets, slots, ends, index, weight, seen, lead)
        given = (rows, entries, dim, dx.shape[1], at - first, ends, scale, dx)
        if winner is None:
            builder.call("bag_gradient", *given, lead, mean, gradient)
        else:
            builder.call("bag_max_gradient", *given, winner, lead, gradient)
        indices = Ref(index.space, index.name, index.dtype, (entries, 1))
        places = _places(builder, [(table, 0, at)], "gradient")
        builder.on_tables(Tables(Refs((table,)), places, gradient, indices, replace(lead, shape=(1, entries)), ends))

    return gather


def linear(builder: Builder, shape: InputShape, z: Value, head: str = "") -> Value:
    """The outputs with the bags on top that are no part of the input matrix, in the same place: their tables start
    at 0. Each of several heads has its own, named behind it."""
    bags = [replace(bag, name=f"{bag.name}.{head}") if head else bag for bag in shape.linear]
    tables = [pool(builder, bag, z.ref, 0, ZERO, adds=True) for bag in bags]

    def backward(dz: Ref) -> list[Gradient | None]:
        for gather in tables:
            gather(dz, 0)
        return [Gradient(dz)]

    return builder.on_backward(backward, [z], Value(z.ref)) if tables else z
