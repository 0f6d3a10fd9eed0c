"""Elements left out by chance, by the step's random key. The same call of dy gives dx."""

from __future__ import annotations

from streamtrain.compute.spec import Op, given, out, size, step_known, value

HELP = "a share of the elements becomes 0, the others grow by as much; which, the step's random key says"

OPS = (
    Op("dropout",
       (size("n"), size("before"), step_known(), value("stream", "u64"), value("rate"), out("y", "f32", "n"),
        given("x", "f32", "n")),
       each=("n",), tiles="rows"),
)
