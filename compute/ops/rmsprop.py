"""RMSProp (Tieleman, Hinton: 2012)."""

from __future__ import annotations

from streamtrain.compute.ops._update import update

HELP = "step by g over the root of the running mean of g^2"

OPS = update("rmsprop", 2)
