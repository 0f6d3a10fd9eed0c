"""The logistic function; also what turns a binary model's output into a probability."""


from streamtrain.compute.ops.activation import Activation, activation, glorot

HELP = "activation 1 / (1 + e^-x), between 0 and 1"

ACTIVATION = Activation(glorot)
OPS = activation("sigmoid")
