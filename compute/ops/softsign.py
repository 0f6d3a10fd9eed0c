"""A sigmoid with slow ends (Turian, Bergstra, Bengio, 2009)."""


from streamtrain.compute.ops.activation import Activation, activation, glorot

HELP = "activation x / (1 + |x|), between -1 and 1"

ACTIVATION = Activation(glorot)
OPS = activation("softsign")
