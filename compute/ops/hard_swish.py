"""Swish of straight pieces and a parabola (Howard et al., 2019)."""


from streamtrain.compute.ops.activation import Activation, activation, he

HELP = "activation x times hard_sigmoid(x)"

ACTIVATION = Activation(he)
OPS = activation("hard_swish")
