"""AdaMax (Kingma, Ba: 2015)."""

from __future__ import annotations

from streamtrain.compute.ops._update import update

HELP = "Adam by the largest |g|, which fades"

OPS = update("adamax", 3)
