"""The activation on each output of a layer: one by name, or none."""

from __future__ import annotations

from streamtrain.compute import activations
from streamtrain.compute.builder import Builder
from streamtrain.compute.options import Option, Word
from streamtrain.compute.spec import Ref

NONE = "none"
ACTIVATION: Option = Word(
    of=lambda: [NONE, *activations.names()], default=NONE, help="activation of each output"
)


def activated(builder: Builder, name: str, activation: str, z: Ref) -> Ref:
    """The outputs; z itself where nothing is done."""
    if activation == NONE:
        return z
    y = builder.buffer(f"{name}.output", *z.shape)
    builder.call(f"{activation}_forward", z.elements, y, z, types="float")
    return y


def taken_back(builder: Builder, activation: str, dy: Ref, z: Ref, y: Ref) -> None:
    """The gradient of y becomes that of z."""
    if y is not z:
        builder.call(f"{activation}_gradient", dy.elements, dy, dy, z, y, types="float")
