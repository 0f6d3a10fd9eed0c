"""Adam (Kingma, Ba: 2015)."""

from __future__ import annotations

from streamtrain.compute.ops._update import update

HELP = "Adam: step by the ratio of the running means of g and g^2"

OPS = update("adam", 3)
