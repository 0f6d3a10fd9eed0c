"""The start values of a parameter: numbers by seed and place, the same bytes on every machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from streamtrain import _native
from streamtrain.compute.spec import Array


@dataclass(frozen=True)
class Start:
    """A distribution: an op <fill>(n, x, seed, stream, first, second) of its two numbers."""

    fill: str
    first: float
    second: float

    @classmethod
    def uniform(cls, limit: float) -> Self:
        """In [-limit, limit)."""
        return cls("uniform_fill", -limit, limit)

    @classmethod
    def constant(cls, number: float) -> Self:
        return cls("uniform_fill", number, number)

    @classmethod
    def normal(cls, deviation: float) -> Self:
        return cls("normal_fill", 0.0, deviation)

    def into(self, parameter: Array, seed: int, stream: int) -> None:
        """`stream`: another for each parameter."""
        flat = parameter.reshape(-1)
        _native.call_kernel(self.fill, "", [flat.size, flat, seed, stream, self.first, self.second])


ZERO = Start.uniform(0.0)
