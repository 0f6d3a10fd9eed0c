"""A rectifier with a lid (Krizhevsky, 2010)."""


from streamtrain.compute.ops.activation import Activation, activation, he

HELP = "activation x held between 0 and 6"

ACTIVATION = Activation(he)
OPS = activation("relu6")
