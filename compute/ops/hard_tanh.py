"""The hyperbolic tangent in three straight pieces (Collobert, 2004)."""


from streamtrain.compute.ops.activation import Activation, activation, glorot

HELP = "activation x held between -1 and 1"

ACTIVATION = Activation(glorot)
OPS = activation("hard_tanh")
