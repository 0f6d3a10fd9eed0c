"""Lion (Chen et al.: 2023)."""

from __future__ import annotations

from streamtrain.compute.ops._update import update

HELP = "step by the sign of a running mean of g"

OPS = update("lion", 2)
