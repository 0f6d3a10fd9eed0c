"""Mish: x tanh(log(1 + e^x)) (Misra, 2019). The formula lies in native/kernels/mish.h."""


from streamtrain.compute.ops.activation import Activation, activation, he

HELP = "activation x tanh(log(1 + e^x)), smooth, unbounded above"

ACTIVATION = Activation(he)
OPS = activation("mish")
