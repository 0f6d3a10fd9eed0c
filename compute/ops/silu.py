"""The sigmoid linear unit, also called swish (Elfwing, Uchibe, Doya, 2017; Ramachandran, Zoph, Le, 2017)."""


from streamtrain.compute.ops.activation import Activation, activation, he

HELP = "activation x / (1 + e^-x), also called swish"

ACTIVATION = Activation(he)
OPS = activation("silu")
