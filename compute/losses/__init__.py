"""The registry of losses. A loss file has HELP, PREDICTION, LABEL (the kind of its label), EXAMPLES (label settings),
outputs() and build(), whose score blocks say what its figures are (compute/metrics.py).
"""

from __future__ import annotations

from collections.abc import Callable

from streamtrain.compute.losses._label import LabelKind, label_dtype
from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "loss")
names: Callable[[], list[str]] = REGISTRY.names
describe: Callable[[], dict[str, str]] = REGISTRY.describe
get = REGISTRY.get
__all__ = ["REGISTRY", "LabelKind", "describe", "get", "label_dtype", "label_kind", "names"]


def label_kind(loss: str) -> LabelKind:
    """What the label of a loss is. Raises UserMistake where there is no such loss."""
    kind: LabelKind = get(loss).LABEL
    return kind
