"""Every number by a factor, and one more on top."""

from __future__ import annotations

from streamtrain.compute.spec import Op, given, out, size, value

HELP = "scale x + shift"

OPS = (
    Op("affine", (size("n"), value("scale"), value("shift"), out("y", "f32", "n"), given("x", "f32", "n")),
       each=("n",), tiles="rows"),
)
