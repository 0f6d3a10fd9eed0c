"""The sigmoid in three straight pieces (Howard et al., 2019)."""


from streamtrain.compute.ops.activation import Activation, activation, glorot

HELP = "activation x / 6 + 1 / 2 held between 0 and 1"

ACTIVATION = Activation(glorot)
OPS = activation("hard_sigmoid")
