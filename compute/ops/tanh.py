"""The hyperbolic tangent. The formula lies in native/base/math.h."""


from streamtrain.compute.ops.activation import Activation, activation, glorot

HELP = "activation tanh(x), between -1 and 1"

ACTIVATION = Activation(glorot)
OPS = activation("tanh")
