"""FTRL-proximal (McMahan et al.: 2013)."""

from __future__ import annotations

from streamtrain.compute.ops._update import update

HELP = "follow the regularised leader, one rate a coordinate"

OPS = update("ftrl", 3)
