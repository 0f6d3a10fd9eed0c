"""Scores of a binary model on a batch before its update."""

from __future__ import annotations

import numpy as np

from streamtrain import _native
from streamtrain.compute.spec import Array, Op, changed, given, size, step_changed

HELP = "log loss, histogram of logits and hits of a binary model"
BINS, MOMENTS = _native.LOGIT_BINS, _native.LOGIT_MOMENTS   # those of the place in a bin, from 0 to 1
_OF_ONE, _EVEN = _native.LOGIT_BINS_OF_ONE, _native.LOGIT_EVEN_TO
_REACH = BINS // (2 * _OF_ONE)   # of logits that are folded beyond _EVEN
_BEYOND = _REACH - _EVEN


def middle(at: Array) -> Array:
    """By bin, the logit at a place in it."""
    folded = (np.arange(BINS) + at) / _OF_ONE - _REACH
    away = abs(folded)
    with np.errstate(divide="ignore"):
        unfolded = np.where(away <= _EVEN, away, _EVEN - _BEYOND + _BEYOND**2 / np.maximum(_REACH - away, 1e-300))
    return np.asarray(np.copysign(unfolded, folded))


ROWS = ("f32", "rows")
OPS = (
    Op(
        "score_binary",
        (size("rows"), given("z", *ROWS), given("loss", *ROWS), given("label", *ROWS), given("weight", *ROWS),
         given("base_classes", "f64", 2), step_changed(), changed("share_loss", "f64", 4),
         changed("share_classes", "f64", 2), changed("hits", "f64", 2), changed("count", "i64", 1),
         changed("histogram", "f64", 2, BINS, MOMENTS)),
    ),
)
