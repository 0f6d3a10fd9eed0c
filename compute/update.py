"""The update of a model's parameters by their gradients: an optimizer's calls, with the settings of each group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from typing import Any

import numpy as np

from streamtrain.compute import optimizers
from streamtrain.compute.builder import UPDATE, Builder, Tables
from streamtrain.compute.metrics import GRADIENT
from streamtrain.compute.optimizers import GROUPS, KEPT, SETTINGS
from streamtrain.compute.spec import Argument, Ref, Refs


@dataclass(frozen=True)
class _Stretch:
    """A stretch of the flat vector of dense parameters: it ends at element `end`, and has the same settings
    throughout."""

    end: int
    group: str
    settings: Sequence[float]


class Update:
    """The optimizer of a model spec."""

    def __init__(self, name: str, settings: Mapping[str, Any]) -> None:
        """`settings`: nothing is wrong with them."""
        self.name, self._entry = name, optimizers.get(name)
        self._groups = optimizers.by_group(name, settings)
        options = self._groups["weight"]
        self.kept: tuple[str, ...] = self._entry.state(options)   # for each parameter
        self._op: str = self._entry.op(options)
        self._clip: float = options["clip_norm"]
        self._by_norm = self._clip > 0 or any(each["clip_group_norm"] > 0 for each in self._groups.values())
        self.max_norm: float = options["max_norm"]

    def state_name(self, kept: str, parameter: str = "") -> str:
        """Returns the name of the block that it keeps for a parameter. Without a parameter it is the prefix of all
        such names."""
        return f"{self.name}.{kept}.{parameter}"

    def backward(self, builder: Builder, dense: bool) -> Callable[[], None]:
        """Returns a function that adds the calls behind the backward pass. Call this before that pass is built.

        With `dense` they update the dense parameters too. Tables are updated as soon as their gradients are there.
        So they need memory one after the other, unless the norm of all has to be known first.
        """
        waiting: list[Tables] = []

        def at_once(tables: Tables) -> None:
            with builder.during(*UPDATE):
                self._rows(builder, tables, None)

        builder.on_tables = waiting.append if self._by_norm else at_once

        def update() -> None:
            stretches = self._stretches(builder) if dense and builder.parameters else []
            scales = self._scales(builder, stretches, waiting) if self._by_norm else [None] * (len(waiting) + 1)
            for tables, scale in zip(waiting, scales[1:], strict=True):
                self._rows(builder, tables, scale)
            if stretches:
                self._dense(builder, stretches, scales[0])

        return update

    def _dense(self, builder: Builder, stretches: Sequence[_Stretch], scale: Ref | None) -> None:
        flat = builder.flat("state")
        state = [builder.flat("state", self.state_name(kept)) for kept in self.kept]
        builder.call(self._op, flat.elements, len(stretches), builder.step, self._settings(builder, stretches), scale,
                     builder.flat("gradient"), flat, *_padded(state))
        for _, block in builder.places():
            if self.max_norm and block.part == "weight" and len(block.shape) == 2:
                builder.call("max_norm", *block.shape, builder.step, self.max_norm,
                             Ref("state", block.name, block.dtype, block.shape))  # fmt: skip

    def _rows(self, builder: Builder, tables: Tables, scale: Ref | None) -> None:
        parameters = tables.parameters.refs
        settings = builder.constant(f"{self.name}.settings.{parameters[0].name}", [self._row(0, "embedding")], "f64")
        state = [Refs(tuple(replace(each, name=self.state_name(kept, each.name)) for each in parameters))
                for kept in self.kept]
        builder.call(f"{self._op}_rows", builder.rows, *tables.sizes, builder.step, settings, scale, tables.places,
                     tables.ends, tables.categories, tables.lead, tables.gradient, tables.parameters, *_padded(state))

    def _scales(
        self, builder: Builder, stretches: Sequence[_Stretch], waiting: Sequence[Tables]
    ) -> list[Ref | None]:
        """Adds what clips by norm; gives by how much the dense parameters are scaled, and the tables."""
        ends = list(accumulate(map(len, waiting), initial=len(stretches)))
        count = ends[-1]
        groups = [*(stretch.group for stretch in stretches), *["embedding"] * (count - len(stretches))]
        squares, scales = builder.buffer("squares", count, dtype="f64"), builder.buffer("scales", count)
        if stretches:
            settings, flat = self._settings(builder, stretches), builder.flat("gradient")
            builder.call("gradient_squares", flat.elements, *settings.shape, settings, flat,
                         replace(squares, shape=(len(stretches),)))
        for tables, at in zip(waiting, ends[:-1], strict=True):
            entries, _, number, total = tables.sizes
            builder.call("gradient_squares_rows", builder.rows, entries, number, total, tables.places, tables.ends,
                         tables.lead, tables.gradient, replace(squares, shape=(number,), start=at))
        limits = builder.constant("clip.limits", [self._groups[group]["clip_group_norm"] for group in groups], "f64")
        group = builder.constant("clip.groups", [GROUPS.index(group) for group in groups], "i32")
        builder.call("clip_norm", count, group, limits, self._clip, squares, builder.step, scales)
        builder.call("score_gradient", builder.step, builder.statistic(GRADIENT, "score", "sum", 2)[1])
        of_tables = [replace(scales, shape=(len(tables),), start=at)
                     for tables, at in zip(waiting, ends[:-1], strict=True)]  # fmt: skip
        return [replace(scales, shape=(len(stretches),)), *of_tables]

    def _settings(self, builder: Builder, stretches: Sequence[_Stretch]) -> Ref:
        return builder.constant(f"{self.name}.settings", np.array([each.settings for each in stretches]), "f64")

    def _stretches(self, builder: Builder) -> list[_Stretch]:
        """They lie with gaps, which belong to the one before them; neighbours of the same settings are one."""
        whole, places = builder.flat("state").elements, builder.places()
        ends = [*(place for place, _ in places[1:]), whole]
        each = [_Stretch(end, block.part, self._row(end, block.part))
                for (_, block), end in zip(places, ends, strict=True)]
        if getattr(self._entry, "PER_PARAMETER", False):
            return each
        same = groupby(each, key=lambda stretch: (stretch.group if self._by_norm else "", stretch.settings[1:]))
        return [list(stretches)[-1] for _, stretches in same]

    def _row(self, end: int, group: str) -> list[float]:
        options = self._groups[group]
        plain = {**options, **dict.fromkeys(getattr(self._entry, "FOLDED", ()), 0.0), "end": end}
        return [*(float(plain[name]) for name in SETTINGS), *self._entry.factors(options)]


def _padded(arguments: Sequence[Argument]) -> list[Argument]:
    return [*arguments, *[None] * (len(KEPT) - len(arguments))]
