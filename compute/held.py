"""The transforms with state of a model: their inputs in a slot, and what they make of them.

Their columns of a slot lie side by side in two blocks, in the transforms' order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from streamtrain.compute import initializers, stateful
from streamtrain.compute.builder import Builder
from streamtrain.compute.initializers import AUTO
from streamtrain.compute.options import Problem, problems, read
from streamtrain.compute.spec import Ref
from streamtrain.compute.stateful.transform import Batch, Held, Reads

BLOCKS: dict[Reads, tuple[str, str]] = {"float": ("held.numbers", "f64"), "bucket": ("held.categories", "i32"),
          "time": ("held.times", "i64"), "hash": ("held.hashes", "i64")}   # by what a transform reads
VOCABULARY = "vocabulary"   # the transform that a category's own vocabulary is


def held_problems(transform: str, settings: dict[str, Any]) -> Iterator[Problem]:
    """Yields what is wrong with a transform's own settings."""
    yield from problems(settings, stateful.options(transform), f"setting of {transform}")


def held_of(
    name: str, transform: str, buckets: int, embed: int, settings: dict[str, Any], init: str = AUTO
) -> Held:
    """Builds a transform with state from settings in which nothing is wrong."""
    return Held(name, transform, buckets, embed, read(settings, stateful.options(transform)), init)


def described(held: Held) -> dict[str, Any]:
    """Returns the table that a model spec has for it."""
    settings = {name: list(each) if isinstance(each, tuple) else each for name, each in held.settings.items()}
    return {"name": held.name, "transform": held.transform, "buckets": held.buckets, "embed": held.embed,
            **initializers.told(held.init), "settings": settings}   # fmt: skip


def width(held: Held) -> int:
    """Columns of the input matrix."""
    return held.embed or 1


def feeds(held: Held) -> list[Reads]:
    """Returns the inputs it has a column of in a slot, in order."""
    return [reads for reads, _ in stateful.get(held.transform).feeds(held.settings)]


def build(
    builder: Builder, every: Sequence[Held], label_dtype: str, x: Ref, at: int
) -> Iterator[tuple[Held, int, int, Ref | None]]:
    """Adds each transform's calls; gives with it its column of the input matrix, and of one that makes indexes how many
    there are and i32 [rows, 1] with them: their numbers are for the caller to put there."""
    weight, label = builder.slot("weight", "f32", 1), builder.slot("label", label_dtype, 1)
    fed = [reads for held in every for reads in feeds(held)]
    slots = {reads: builder.slot(*BLOCKS[reads], fed.count(reads)) for reads in BLOCKS if reads in fed}
    used = dict.fromkeys(BLOCKS, 0)
    for held in every:
        transform = stateful.get(held.transform)
        batch = Batch({reads: (slots[reads], used[reads]) for reads in feeds(held)}, label, weight)
        for reads in feeds(held):
            used[reads] += 1
        count = transform.indexes(held)
        index = builder.buffer(f"{held.name}.index", builder.rows, 1, dtype="i32") if count else None
        transform.build(builder, held, batch, x if index is None else index, 0 if count else at)
        yield held, at, count, index
        at += width(held)
