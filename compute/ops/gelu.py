"""The Gaussian error linear unit in its tanh form (Hendrycks, Gimpel, 2016, section 2)."""


from streamtrain.compute.ops.activation import Activation, activation, he

HELP = "activation x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, GELU's tanh form"

ACTIVATION = Activation(he)
OPS = activation("gelu")
