"""The oracle of compute/ops/multiply.py."""

from tests.oracles.ops._pair import forward_of, gradient_of

ORACLES = {
    "multiply_forward": forward_of(lambda a, b: a * b),
    "multiply_gradient": gradient_of(lambda a, b: (b, a)),
}
