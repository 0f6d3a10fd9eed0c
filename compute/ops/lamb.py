"""LAMB (You et al.: 2020)."""

from __future__ import annotations

from streamtrain.compute.ops._update import update

HELP = "Adam whose step is as long as the parameter, by layer"

OPS = update("lamb", 4, rows=("stretches",))
