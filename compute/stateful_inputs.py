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
from streamtrain.compute.stateful.transform import Batch, Reads, StatefulSpec

BLOCKS: dict[Reads, tuple[str, str]] = {"float": ("held.numbers", "f64"), "bucket": ("held.categories", "i32"),
          "time": ("held.times", "i64"), "hash": ("held.hashes", "i64")}   # by what a transform reads
VOCABULARY = "vocabulary"   # the transform that a category's own vocabulary is


def settings_problems(transform: str, settings: dict[str, Any]) -> Iterator[Problem]:
    """Yields what is wrong with a transform's own settings."""
    yield from problems(settings, stateful.options(transform), f"setting of {transform}")


def stateful_spec(
    name: str, transform: str, buckets: int, embed: int, settings: dict[str, Any], init: str = AUTO
) -> StatefulSpec:
    """Builds a transform with state from settings in which nothing is wrong."""
    return StatefulSpec(name, transform, buckets, embed, read(settings, stateful.options(transform)), init)


def described(spec: StatefulSpec) -> dict[str, Any]:
    """Returns the table that a model spec has for it."""
    settings = {name: list(each) if isinstance(each, tuple) else each for name, each in spec.settings.items()}
    return {"name": spec.name, "transform": spec.transform, "buckets": spec.buckets, "embed": spec.embed,
            **initializers.to_dict(spec.init), "settings": settings}   # fmt: skip


def width(spec: StatefulSpec) -> int:
    """Columns of the input matrix."""
    return spec.embed or 1


def feeds(spec: StatefulSpec) -> list[Reads]:
    """Returns the inputs it has a column of in a slot, in order."""
    return [reads for reads, _ in stateful.get(spec.transform).feeds(spec.settings)]


def build(
    builder: Builder, every: Sequence[StatefulSpec], label_dtype: str, x: Ref, at: int
) -> Iterator[tuple[StatefulSpec, int, int, Ref | None]]:
    """Adds each transform's calls; gives with it its column of the input matrix, and of one that makes indexes how many
    there are and i32 [rows, 1] with them: their numbers are for the caller to put there."""
    weight, label = builder.slot("weight", "f32", 1), builder.slot("label", label_dtype, 1)
    fed = [reads for spec in every for reads in feeds(spec)]
    slots = {reads: builder.slot(*BLOCKS[reads], fed.count(reads)) for reads in BLOCKS if reads in fed}
    used = dict.fromkeys(BLOCKS, 0)
    for spec in every:
        transform = stateful.get(spec.transform)
        batch = Batch({reads: (slots[reads], used[reads]) for reads in feeds(spec)}, label, weight)
        for reads in feeds(spec):
            used[reads] += 1
        count = transform.indexes(spec)
        index = builder.buffer(f"{spec.name}.index", builder.rows, 1, dtype="i32") if count else None
        transform.build(builder, spec, batch, x if index is None else index, 0 if count else at)
        yield spec, at, count, index
        at += width(spec)
