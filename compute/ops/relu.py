"""The rectifier. Dense layers have it built into their kernels; these stand alone."""


from streamtrain.compute.ops.activation import Activation, activation, he

HELP = "activation max(x, 0)"

ACTIVATION = Activation(he)
OPS = activation("relu")
