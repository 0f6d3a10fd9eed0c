"""About normal numbers parameters start from: sums of twelve uniform ones."""

from __future__ import annotations

from streamtrain.compute.spec import Op, out, size, value

HELP = "about normal random numbers from Philox, the same on every machine"

OPS = (
    Op(
        "normal_fill",
        (size("n"), out("x", "f32", "n"), value("seed", "u64"), value("stream", "u64"), value("mean"),
         value("deviation")),
        each=("n",),
    ),
)
