"""Loss of a count by its log rate, with the predicted rate and where the log rate starts from."""

from __future__ import annotations

from streamtrain.compute.spec import Op, changed, given, out, size, step_read

HELP = "loss, gradient and rate of a count"

ROWS = ("f32", "rows")
OPS = (
    Op(
        "poisson",
        (size("rows"), given("z", *ROWS), given("label", *ROWS), given("weight", *ROWS), step_read(), out("dz", *ROWS),
         out("loss", *ROWS), out("p", *ROWS)),
        each=("rows",), tiles="rows",
    ),
    Op("poisson_rate", (size("n"), given("z", "f32", "n"), out("p", "f32", "n")), each=("n",),
       tiles="rows"),
    Op("poisson_prior", (given("seen", "f64", 2), out("offset", "f32", 1))),
    Op(
        "poisson_seen",
        (size("rows"), given("label", *ROWS), given("weight", *ROWS), changed("seen", "f64", 2)),
    ),
)
