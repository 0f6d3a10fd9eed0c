"""y = x, in training without a share of it (Srivastava et al.: Dropout, 2014)."""

from __future__ import annotations

from streamtrain.compute.builder import FORWARD, INFERENCE, Builder, Gradient, Value
from streamtrain.compute.options import Number, Option
from streamtrain.compute.shape import alike
from streamtrain.compute.spec import Before, Ref

HELP = "in training a share of the elements becomes 0 and the others grow by as much; nothing in a prediction"
OPTIONS: dict[str, Option] = {"rate": Number(least=0, below=1, help="share of the elements to drop")}
EXAMPLES = ({"rate": 0.3},)
shape = alike


def build(builder: Builder, name: str, x: Value, rate: float) -> Value:
    y, stream = builder.buffer(f"{name}.output", *x.ref.shape), builder.stream()
    before = Before(x.columns * x.rows.times)
    with builder.during(*FORWARD):
        builder.call("dropout", y.elements, before, builder.step, stream, rate, y, x.ref)
    with builder.during(*INFERENCE):
        builder.call("affine", y.elements, 1.0, 0.0, y, x.ref)

    def backward(dy: Ref) -> list[Gradient | None]:
        builder.call("dropout", dy.elements, before, builder.step, stream, rate, dy, dy)
        return [Gradient(dy) if x.learns else None]

    return builder.on_backward(backward, [x], Value(y, learns=x.learns))
