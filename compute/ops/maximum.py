"""The larger of two numbers, element by element."""


from streamtrain.compute.ops._pair import forward_of, gradient_of

HELP = "max(a, b), element by element"
OPS = (forward_of("maximum"), gradient_of("maximum"))
