"""A smooth rectifier (Dugas, Bengio, Bélisle, Nadeau, Garcia, 2000)."""


from streamtrain.compute.ops.activation import Activation, activation, he

HELP = "activation log(1 + e^x), above 0"

ACTIVATION = Activation(he)
OPS = activation("softplus")
