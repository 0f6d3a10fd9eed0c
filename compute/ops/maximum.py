"""The larger of two numbers, element by element."""

import numpy as np

from streamtrain.compute.ops._pair import forward_of, gradient_of

HELP = "max(a, b), element by element"
OPS = (forward_of("maximum", np.maximum), gradient_of("maximum", lambda a, b: (b <= a, b > a)))
