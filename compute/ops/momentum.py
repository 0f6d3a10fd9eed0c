"""Gradient descent with momentum (Polyak, 1964)."""

from __future__ import annotations

from streamtrain.compute.ops._update import update

HELP = "u = momentum u + g, step against u"

OPS = update("momentum", 1)
