"""How the parameters of a model follow their gradients: the calls of an optimizer, with the settings of each group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from streamtrain.compute import optimizers
from streamtrain.compute.builder import UPDATE, Builder, Table
from streamtrain.compute.optimizers import GROUPS, KEPT, SETTINGS
from streamtrain.compute.spec import Ref


@dataclass(frozen=True)
class _Stretch:
    """Of the flat vector of dense parameters: one that ends at element `end`, and whose settings are the same."""

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
        """Of the block that it keeps for a parameter; without one, what they all begin with."""
        return f"{self.name}.{kept}.{parameter}"

    def backward(self, builder: Builder, dense: bool) -> Callable[[], None]:
        """To be called before the way back; gives what adds the calls behind it. `dense`: of the dense parameters too.

        A table is updated as soon as its gradient is there, so that no two need memory at the same time, unless the
        norm of all has to be known first.
        """
        waiting: list[Table] = []

        def at_once(table: Table) -> None:
            with builder.during(*UPDATE):
                self._rows(builder, table, None)

        builder.on_table = waiting.append if self._by_norm else at_once

        def update() -> None:
            stretches = self._stretches(builder) if dense else []
            scales = self._scales(builder, stretches, waiting) if self._by_norm else [None] * (len(waiting) + 1)
            for table, scale in zip(waiting, scales[1:], strict=True):
                self._rows(builder, table, scale)
            if dense:
                self._dense(builder, stretches, scales[0])

        return update

    def _dense(self, builder: Builder, stretches: Sequence[_Stretch], scale: Ref | None) -> None:
        flat = builder.flat("state")
        held = [builder.flat("state", self.state_name(kept)) for kept in self.kept]
        builder.call(self._op, flat.elements, len(stretches), builder.step, self._settings(builder, stretches), scale,
                     builder.flat("gradient"), flat, *_padded(held))
        for _, block in builder.places():
            if self.max_norm and block.part == "weight" and len(block.shape) == 2:
                builder.call("max_norm", *block.shape, builder.step, self.max_norm,
                             Ref("state", block.name, block.dtype, block.shape))  # fmt: skip

    def _rows(self, builder: Builder, table: Table, scale: Ref | None) -> None:
        parameter = table.parameter
        settings = builder.constant(f"{self.name}.settings.{parameter.name}", [self._row(0, "embedding")], "f64")
        held = [Ref("state", self.state_name(kept, parameter.name), parameter.dtype, parameter.shape)
                for kept in self.kept]
        entries, columns = table.categories.shape
        builder.call(f"{self._op}_rows", builder.rows, entries, columns, table.column, *parameter.shape, builder.step,
                     settings, scale, table.ends, table.categories, table.lead, table.gradient, parameter,
                     *_padded(held))

    def _scales(
        self, builder: Builder, stretches: Sequence[_Stretch], tables: Sequence[Table]
    ) -> list[Ref | None]:
        """Adds what clips by norm; gives by how much the dense parameters are scaled, and each table."""
        count = len(stretches) + len(tables)
        groups = [*(stretch.group for stretch in stretches), *["embedding"] * len(tables)]
        squares, scales = builder.buffer("squares", count, dtype="f64"), builder.buffer("scales", count)
        if stretches:
            settings, flat = self._settings(builder, stretches), builder.flat("gradient")
            builder.call("gradient_squares", flat.elements, *settings.shape, settings, flat, squares)
        for at, table in enumerate(tables, len(stretches)):
            entries, dim = table.gradient.shape
            builder.call("gradient_squares_rows", builder.rows, entries, dim, table.ends, table.lead, table.gradient,
                         replace(squares, shape=(1,), start=at))
        limits = builder.constant("clip.limits", [self._groups[group]["clip_group_norm"] for group in groups], "f64")
        group = builder.constant("clip.groups", [GROUPS.index(group) for group in groups], "i32")
        builder.call("clip_norm", count, group, limits, self._clip, squares, scales)
        return [scales, *(replace(scales, shape=(1,), start=at) for at in range(len(stretches), count))]

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


def _padded(held: list[Ref]) -> list[Ref | None]:
    return [*held, *[None] * (len(KEPT) - len(held))]
