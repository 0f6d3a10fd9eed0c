"""Powers and cosines without a machine's own library, whose last digits differ between machines."""

from __future__ import annotations

import math
from decimal import Context, Decimal

_CONTEXT = Context(prec=40)   # far more digits than a float has


def power(base: float, exponent: float) -> float:
    """base^exponent for a base above 0, or 0 with an exponent above 0."""
    if base == 0:
        return 1.0 if exponent == 0 else 0.0
    return float(_CONTEXT.power(Decimal(base), Decimal(exponent)))


def cosine(turn: float) -> float:
    """cos(pi turn) for a turn from 0 to 1, by its Taylor series: additions and multiplications only."""
    x = math.pi * (turn if turn <= 0.5 else 1 - turn)
    total, term = 1.0, 1.0
    for n in range(2, 28, 2):
        term *= -x * x / (n * (n - 1))
        total += term
    return total if turn <= 0.5 else -total
