"""AdaGrad (Duchi, Hazan, Singer: 2011)."""

from __future__ import annotations

from streamtrain.compute.ops._update import update

HELP = "step by g over the root of the sum of g^2"

OPS = update("adagrad", 2)
