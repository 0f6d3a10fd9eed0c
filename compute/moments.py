"""A standardised column's moments as native/base/moments.h has them: the columns of a `moments` block."""

from __future__ import annotations

from streamtrain import _native
from streamtrain.compute.spec import Array

MOMENTS = _native.MOMENTS
LEAST_DEVIATION = 1e-30


def named(moments: Array) -> dict[str, Array]:
    """Each column of a block [columns, 11] by name, without a copy."""
    return dict(zip(MOMENTS, moments.T, strict=True))
