"""The exponential linear unit (Clevert, Unterthiner, Hochreiter, 2015)."""


from streamtrain.compute.ops.activation import Activation, activation, he

HELP = "activation x above 0, e^x - 1 below"

ACTIVATION = Activation(he)
OPS = activation("elu")
