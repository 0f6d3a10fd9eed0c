"""The leaky rectifier (Maas, Hannun, Ng, 2013)."""


from streamtrain.compute.ops.activation import Activation, activation, he

HELP = "activation x above 0, x / 100 below"

ACTIVATION = Activation(he)
OPS = activation("leaky_relu")
