"""Adam (Kingma, Ba: 2015); table rows no batch touched keep their moments."""

from __future__ import annotations

from streamtrain.compute.builder import Builder, Table
from streamtrain.compute.optimizers._rows import touched
from streamtrain.compute.spec import Ref

HELP = "steps by the ratio of the running means of g and g^2"
DEFAULTS: dict[str, float] = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
STATE: tuple[str, ...] = ("m", "v")


def betas(options: dict[str, float]) -> tuple[float, float]:
    """What the step block's beta powers are powers of."""
    return options["beta1"], options["beta2"]


def factors(options: dict[str, float]) -> tuple[float, float, float]:
    return options["beta1"], options["beta2"], options["epsilon"]


def update(
    builder: Builder, options: dict[str, float], count: int, gradient: Ref, parameter: Ref, m: Ref, v: Ref
) -> None:
    builder.call("adam", count, builder.step, gradient, parameter, m, v, *factors(options))


def update_rows(builder: Builder, options: dict[str, float], table: Table, m: Ref, v: Ref) -> None:
    builder.call("adam_rows", *touched(builder, table), m, v, *factors(options))
