"""The oracle of compute/ops/tally.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops.tally import ENTRIES, WIDTH
from streamtrain.compute.spec import Array
from tests.oracles.ops import oracle
from tests.oracles.ops._batch import weights

FULL, MARKS = ENTRIES + 1, 64


def empty() -> Array:
    """Returns a tally of no rows."""
    return np.zeros((1 + ENTRIES, WIDTH))


def marks(z: Array) -> Array:
    """Returns the marks of these float32 logits, [MARKS]: a bit at the first 11 bits of each hash that 8 divides."""
    hashes = z.astype(np.float32).view(np.uint32).astype(np.uint64)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        hashes = ((hashes ^ hashes >> np.uint64(shift)) * np.uint64(factor)) & np.uint64(0xFFFFFFFF)
    found, hashes = np.zeros(MARKS, np.uint64), hashes[hashes % np.uint64(8) == 0]
    bits = np.uint64(1) << (hashes >> np.uint64(21) & np.uint64(31))
    np.bitwise_or.at(found, (hashes >> np.uint64(26)).astype(int), bits)
    return found


def of_marks(z: Array, *full: Array) -> Array:
    """Returns a full tally with the marks of these logits, and with those of other full ones."""
    found, of_full = empty(), [each.reshape(-1)[WIDTH : WIDTH + MARKS].astype(np.uint64) for each in full]
    every = np.bitwise_or.reduce([marks(z), *of_full])
    found.reshape(-1)[: WIDTH + MARKS] = [FULL, *[0] * (WIDTH - 1), *every.astype(np.float64)]
    return found


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    z = rng.normal(0, 8, n) if n % 2 else rng.integers(-3, 4, n) / 4
    base, share = empty(), empty()
    if n % 3 == 2:
        base[0, 0] = FULL
    else:
        share[0, 0], share[1:4] = 3, [[-0.5, 1, 2], [0, 3, 0], [9, 0, 1]]
    return {"rows": n, "z": z, "label": rng.integers(0, 2, n), "weight": weights(rng, n), "base": base, "share": share}


@oracle(example, 1e-12)
def tally(rows: int, z: Array, label: Array, weight: Array, base: Array, share: Array) -> None:
    counts = (weight > 0) & ~np.isnan(z)
    if share[0, 0] == FULL or (base[0, 0] == FULL and not share[0, 0]):
        share[:] = of_marks(z[counts] + 0, *[share] * bool(share[0, 0]))   # -0 becomes 0
        return
    known = share[1 : 1 + int(share[0, 0])]
    logits = np.append(known[:, 0], z[counts].astype(np.float64)) + 0.0
    distinct, at = np.unique(logits, return_inverse=True)
    found = np.zeros((len(distinct), WIDTH))
    found[:, 0] = distinct
    found[at[: len(known)], 1:] = known[:, 1:]
    np.add.at(found, (at[len(known) :], 1 + (label[counts] >= 0.5)), weight[counts].astype(np.float64))
    if len(distinct) > ENTRIES:
        share[:] = of_marks(distinct)
    else:
        share[:] = 0
        share[0, 0], share[1 : 1 + len(distinct)] = len(distinct), found
