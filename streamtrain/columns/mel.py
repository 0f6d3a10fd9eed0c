"""Bands of the mel scale, and the tables with which native/kernels/log_mel.h finds a clip's energies in them.

All of it by operations that IEEE 754 or the decimal module fix to the bit: a cosine of libm or NumPy depends on the
processor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cache

import numpy as np
from numpy.typing import NDArray

_EXACT = Context(prec=28)
_COSINE, _SINE = range(24, 0, -2), range(25, 1, -2)  # terms of Taylor's series, to 1e-19 within a quarter


@dataclass(frozen=True)
class Bands:
    """The tables for frames of `window` samples.

    They are the taper [window], the turns e^(-2 pi i k / points) [points / 2, 2], and for each band its first bin, the
    end of its weights, and the weights.
    """

    taper: NDArray[np.float32]
    turn_of: NDArray[np.float32]
    first: NDArray[np.int32]
    ends: NDArray[np.int32]
    weights: NDArray[np.float32]

    @property
    def empty(self) -> int:
        """Bands without a bin."""
        return int(np.count_nonzero(np.diff(self.ends, prepend=0) == 0))


def circle(at: int, of: int) -> tuple[float, float]:
    """Cosine and sine of 2 pi at / of."""
    quarter, rest = divmod(4 * at, of)
    x = rest / of * (math.pi / 2)
    cosine = sine = 1.0
    for even, odd in zip(_COSINE, _SINE, strict=True):
        cosine = 1.0 - x * x / (even * (even - 1)) * cosine
        sine = 1.0 - x * x / (odd * (odd - 1)) * sine
    sine *= x
    for _ in range(quarter % 4):
        cosine, sine = -sine, cosine
    return cosine, sine


@cache
def bands_of(rate: int, window: int, mel: int) -> Bands:
    """Hann's taper with the period `window` (Harris: On the use of windows for harmonic analysis with the discrete
    Fourier transform, 1978), zeros up to a power of two, and `mel` triangles that reach 1 where their neighbours reach
    0, at frequencies from 0 to half the rate that lie evenly on the scale 2595 log10(1 + f / 700), HTK's
    (O'Shaughnessy: Speech communication, 1987)."""
    points = 1 << (window - 1).bit_length()
    half = points // 2
    taper = [0.5 - 0.5 * circle(at, window)[0] for at in range(window)]
    turns = [(cosine, -sine) for cosine, sine in (circle(at, points) for at in range(half))]
    corners = _corners(rate, mel)
    bins = np.arange(1, half) * (rate / points)
    first, ends, weights = [], [], []
    for low, middle, high in zip(corners, corners[1:], corners[2:], strict=False):
        rising, falling = (bins - low) / (middle - low), (high - bins) / (high - middle)
        row = np.maximum(0, np.minimum(rising, falling))
        inside = np.flatnonzero(row)
        first.append(1 + int(inside[0]) if len(inside) else 1)
        weights += row[inside].tolist()
        ends.append(len(weights))
    places = np.array(first, np.int32), np.array(ends, np.int32)
    return Bands(np.array(taper, np.float32), np.array(turns, np.float32), *places, np.array(weights, np.float32))


def _corners(rate: int, mel: int) -> list[float]:
    """Hz where a triangle begins, and the one before it is 1."""
    top = 1 + Decimal(rate) / 1400
    parts = [_EXACT.power(top, _EXACT.divide(Decimal(at), Decimal(mel + 1))) for at in range(mel + 2)]
    return [float(700 * (part - 1)) for part in parts]
