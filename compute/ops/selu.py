"""The self-normalizing unit (Klambauer, Unterthiner, Mayr, Hochreiter, 2017)."""


from streamtrain.compute.ops.activation import Activation, activation, lecun

HELP = "activation 1.0507 x above 0, 1.7581 (e^x - 1) below; keeps mean 0 and variance 1"

ACTIVATION = Activation(lecun)
OPS = activation("selu")
