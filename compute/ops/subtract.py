"""The difference of two arrays."""

from streamtrain.compute.ops._pair import forward_of

HELP = "a - b"
OPS = (forward_of("subtract"),)
