"""The oracle of compute/ops/maximum.py."""

import numpy as np

from tests.oracles.ops._pair import forward_of, gradient_of

ORACLES = {
    "maximum_forward": forward_of(np.maximum),
    "maximum_gradient": gradient_of(lambda a, b: (b <= a, b > a)),
}
