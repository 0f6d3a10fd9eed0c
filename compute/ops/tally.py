"""A tally of logits, from which AUC and average precision are exact: native/base/tally.h."""

from __future__ import annotations

from streamtrain import _native
from streamtrain.compute.spec import Op, changed, given, size

HELP = "weight by label of each distinct logit of a binary model, up to 4,096"
ENTRIES, WIDTH = _native.TALLY_ENTRIES, _native.TALLY_WIDTH

ROWS = ("f32", "rows")
OPS = (
    Op(
        "tally",
        (size("rows"), given("z", *ROWS), given("label", *ROWS), given("weight", *ROWS),
         given("base", "f64", 1 + ENTRIES, WIDTH), changed("share", "f64", 1 + ENTRIES, WIDTH)),
    ),
)
