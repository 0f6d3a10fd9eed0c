"""The same number everywhere."""

from __future__ import annotations

from streamtrain.compute.spec import Op, out, size, value

HELP = "the same number everywhere"

OPS = (Op("fill", (size("n"), value("value"), out("y", "f32", "n")), each=("n",), tiles="rows"),)
