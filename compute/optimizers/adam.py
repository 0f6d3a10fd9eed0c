"""Adam (Kingma, Ba: 2015); table rows no batch touched keep their moments."""

from __future__ import annotations

from collections.abc import Mapping

from streamtrain.compute.builder import Builder, Table
from streamtrain.compute.optimizers._rows import touched
from streamtrain.compute.options import Number, Option
from streamtrain.compute.spec import Ref

HELP = "steps by the ratio of the running means of g and g^2"
OPTIONS: dict[str, Option] = {
    "beta1": Number(least=0, below=1, default=0.9, help="share of the running mean of g that stays, a step"),
    "beta2": Number(least=0, below=1, default=0.999, help="the same of g^2"),
    "epsilon": Number(least=0, default=1e-8, help="added to the root of the mean of g^2"),
}


def state(options: Mapping[str, float]) -> tuple[str, ...]:
    return ("m", "v")


def betas(options: Mapping[str, float]) -> tuple[float, float]:
    """What the step block's beta powers are powers of."""
    return options["beta1"], options["beta2"]


def factors(options: Mapping[str, float]) -> tuple[float, float, float]:
    return options["beta1"], options["beta2"], options["epsilon"]


def update(
    builder: Builder, options: Mapping[str, float], count: int, gradient: Ref, parameter: Ref, m: Ref, v: Ref
) -> None:
    builder.call("adam", count, builder.step, gradient, parameter, m, v, *factors(options))


def update_rows(builder: Builder, options: Mapping[str, float], table: Table, m: Ref, v: Ref) -> None:
    builder.call("adam_rows", *touched(builder, table), m, v, *factors(options))
