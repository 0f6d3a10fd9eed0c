"""What multiplies inputs with each other, against PyTorch: the cross network, and a factorization machine."""

from __future__ import annotations

import numpy as np
from looped import over

from streamtrain import _native


@over(("fields", "width"), [(2, 1), (26, 16), (5, 100)])
def test_pairs_of_fields_to_the_bit_on_all_and_without_cancellation(fields: int, width: int) -> None:
    """Fields far from 0: half of (sum)^2 - sum of squares in float32 would lose what is left."""
    rng = np.random.default_rng(fields)
    x = rng.normal(0, 1, (40, fields, width)).astype(np.float32)
    x[:, 0] += 1000
    wide = x.astype(np.float64)
    exact = ((wide.sum(1) ** 2 - (wide**2).sum(1)) / 2).sum(1)
    bits = set()
    for isa in _native.supported_isas():
        y = np.zeros(40, np.float32)
        _native.call_kernel("factorization_forward", "", [40, fields, width, x, y], isa)
        assert abs(y - exact).max() <= 1e-5 * abs(wide[:, 0]).max() * fields * np.sqrt(width)
        bits.add(y.tobytes())
    assert len(bits) == 1
    with np.errstate(all="ignore"):
        plain = ((x.sum(1) ** 2 - (x**2).sum(1)) / 2).sum(1)
    assert abs(y - exact).max() < abs(plain - exact).max() / 2
