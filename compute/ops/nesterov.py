"""Nesterov's accelerated gradient (Sutskever et al., 2013)."""

from __future__ import annotations

from streamtrain.compute.ops._update import update

HELP = "u = momentum u + g, step against g + momentum u"

OPS = update("nesterov", 1)
