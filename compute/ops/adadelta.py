"""ADADELTA (Zeiler: 2012)."""

from __future__ import annotations

from streamtrain.compute.ops._update import update

HELP = "step by g, in the unit of earlier steps"

OPS = update("adadelta", 2)
