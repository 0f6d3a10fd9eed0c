"""The product of two arrays, element by element."""

from streamtrain.compute.ops._pair import forward_of, gradient_of

HELP = "a b, element by element"
OPS = (forward_of("multiply"), gradient_of("multiply"))
