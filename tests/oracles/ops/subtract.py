"""The oracle of compute/ops/subtract.py."""

from tests.oracles.ops._pair import forward_of

ORACLES = {
    "subtract_forward": forward_of(lambda a, b: a - b),
}
