"""NAdam (Dozat: 2016)."""

from __future__ import annotations

from streamtrain.compute.ops._update import update

HELP = "Adam with Nesterov's momentum"

OPS = update("nadam", 4)
