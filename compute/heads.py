"""The heads of a model: what it predicts, each by a label, a loss and a weight of its own. Where there is one alone, it
has no name and its loss is the model's; of several, a row's loss is the weighted sum over those whose label it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from streamtrain import _native
from streamtrain.compute import losses
from streamtrain.compute.builder import EVALUATE, PREDICT, Builder, Value
from streamtrain.compute.graph import INPUT, OUTPUT, Graph, Outlet
from streamtrain.compute.input import InputShape
from streamtrain.compute.options import Problem
from streamtrain.compute.spec import Array, Ref

LABEL = "label"     # blocks of a slot, as a loss calls them
WEIGHT = "weight"


@dataclass(frozen=True)
class Head:
    """`shape`: the input with this head's label. `block`: of the slot, with that label. `of`: the vertex that its
    output layer reads; "": the last. `partial`: a row may be without the label."""

    name: str
    loss: str
    settings: dict[str, Any]   # as build() takes them
    shape: InputShape
    weight: float = 1.0
    of: str = ""
    block: str = LABEL
    partial: bool = False

    @property
    def outputs(self) -> int:
        """Columns that its loss takes."""
        found: int = losses.get(self.loss).outputs(self.shape)
        return found

    @property
    def label_dtype(self) -> str:
        """Returns the dtype of the slot's label block."""
        return losses.label_dtype(losses.label_kind(self.loss))

    def named(self, name: str) -> str:
        """Returns the head's name for a block: "score.loss" of a loss is "score.late.loss" of the head late. A
        label's mean and variance are named by the block of the slot."""
        first, _, rest = name.partition(".")
        if not self.name:
            return name
        return f"{first}.{self.block}" if rest == LABEL else f"{first}.{self.name}.{rest}"

    @property
    def outlet(self) -> Outlet:
        """Returns where a graph's vertices end in this head."""
        if not self.name:
            return Outlet(OUTPUT, OUTPUT, self.outputs)
        return Outlet(f"{OUTPUT}.{self.name}", self.name, self.outputs, self.of)


@dataclass
class HeadBuilder(Builder):
    """The builder that the loss of one of several heads calls. Label, weight and step are the head's, and so are the
    names of what it keeps. Everything goes into the builder that it wraps."""

    head: Head | None = None
    own_weight: Ref | None = None
    own_step: Ref | None = None

    @classmethod
    def of(cls, builder: Builder, head: Head) -> Self:
        """Adds the weight of the rows that have the head's label, and a step block for its loss."""
        rows = builder.rows
        weight: Ref | None = builder.slot(WEIGHT, "f32", 1)
        step = builder.buffer(f"{head.name}.step", _native.STEP_BYTES, dtype="u8")
        with builder.during(*EVALUATE):
            if head.partial:
                label, given = builder.slot(head.block, head.label_dtype, 1), weight
                weight = builder.buffer(f"{head.name}.weight", rows, 1)
                builder.call(f"head_weight_{head.label_dtype}", rows, label, given, weight)
            builder.call("head_begin", step)
        shared = {field.name: getattr(builder, field.name) for field in fields(builder)}
        return cls(**shared, head=head, own_weight=weight, own_step=step)

    @property
    def _head(self) -> Head:
        assert self.head is not None
        return self.head

    @property
    def step(self) -> Ref:
        assert self.own_step is not None
        return self.own_step

    def slot(self, name: str, dtype: str, width: int) -> Ref:
        if name == WEIGHT:
            assert self.own_weight is not None
            return self.own_weight
        return super().slot(self._head.block if name == LABEL else name, dtype, width)

    def statistic(
        self, name: str, group: str, rule: str, *shape: int, start: Array | None = None, dtype: str = ""
    ) -> tuple[Ref, Ref]:
        return super().statistic(self._head.named(name), group, rule, *shape, start=start, dtype=dtype)

    def constant(self, name: str, content: Any, dtype: str) -> Ref:
        return super().constant(f"{self._head.name}.{name}", content, dtype)


def wrong_of(given: Mapping[str, str], graph: Graph | None) -> Iterator[tuple[str, Problem]]:
    """Yields what is wrong with what the output layers of several heads read. `given`: what each reads, by head
    name; "" of none. `graph`: nothing is wrong with it; None if the network is a list of layers."""
    if graph is None:
        yield from ((name, Problem("of", "none without [model.graph], whose vertices have names", of))
                    for name, of in given.items() if of)  # fmt: skip
        return
    vertices = [vertex.name for vertex in graph.vertices]
    known = [INPUT, *(f"{INPUT}.{column}" for column in graph.columns), *vertices]
    for name, of in given.items():
        if of and of not in known:
            yield name, Problem("of", f"{INPUT}, {INPUT}.<column> or the name of a vertex", of, tuple(known))
        elif of and name in vertices:
            yield name, Problem("of", f"none: the vertex called {name} is what the loss takes, as it is", of)
    if OUTPUT in vertices and OUTPUT not in given:
        yield "", Problem(OUTPUT, "no vertex of that name: what a loss takes as it is, is called as its head", OUTPUT)


def add_losses(builder: Builder, heads: Sequence[Head], zs: Sequence[Value]) -> tuple[list[Ref], Ref]:
    """Adds each head's loss, scores and prediction; returns the gradient of each z, and the predictions side by side in
    the heads' order."""
    if not heads[0].name:
        (head,), (z,) = heads, zs
        gradient, output = losses.get(head.loss).build(builder, head.shape, z, **head.settings)
        return [gradient], output
    rows, weight, step = builder.rows, builder.slot(WEIGHT, "f32", 1), builder.step
    width, at = sum(head.outputs for head in heads), 0
    predictions, gradients = builder.buffer("predictions", rows, width), []
    with builder.during(*EVALUATE):
        builder.call("weight_sum", rows, weight, step)
    for head, z in zip(heads, zs, strict=True):
        own = HeadBuilder.of(builder, head)
        gradient, output = losses.get(head.loss).build(own, head.shape, z, **head.settings)
        count = output.shape[1]
        with builder.during(*PREDICT):
            builder.call("copy_columns", rows, count, count, 0, width, at, output, predictions)
        with builder.during(*EVALUATE):
            builder.call("head_gradient", gradient.elements, head.weight, own.step, step, gradient)
            builder.call("head_end", head.weight, own.step, step)
        gradients.append(gradient)
        at += count
    with builder.during(*EVALUATE):
        scores, count_of_rows = (builder.statistic(f"score.{name}", "score", "sum", size, dtype=dtype)[1]
                                 for name, size, dtype in (("loss", 2, "f64"), ("rows", 1, "i64")))
        builder.call("score_heads", step, scores, count_of_rows)
    return gradients, predictions
