"""Random numbers parameters start from: Philox4x32-10 of seed, element and stream."""

from __future__ import annotations

from streamtrain.compute.spec import Op, out, size, value

HELP = "uniform random numbers from Philox, the same on every machine"

OPS = (
    Op(
        "uniform_fill",
        (size("n"), out("x", "f32", "n"), value("seed", "u64"), value("stream", "u64"), value("low"), value("high")),
        each=("n",),
    ),
)
