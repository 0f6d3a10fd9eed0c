"""Stochastic gradient descent."""

from __future__ import annotations

from streamtrain.compute.ops._update import update

HELP = "step against the gradient"

OPS = update("sgd", 0)
