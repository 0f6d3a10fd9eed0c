"""AMSGrad (Reddi, Kale, Kumar: 2018)."""

from __future__ import annotations

from streamtrain.compute.ops._update import update

HELP = "Adam by the largest running mean of g^2 so far"

OPS = update("amsgrad", 3)
