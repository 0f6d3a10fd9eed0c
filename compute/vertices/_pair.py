"""The shared parts of vertices of two values whose op has its own gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streamtrain.compute.builder import Builder, Gradient, Value
from streamtrain.compute.spec import Ref
from streamtrain.compute.vertices._reading import learns


def build(builder: Builder, name: str, op: str, inputs: Sequence[Value]) -> Value:
    """y = op(a, b), element by element."""
    a, b = inputs
    y = builder.buffer(f"{name}.output", *a.ref.shape)
    builder.call(f"{op}_forward", y.elements, y, a.ref, b.ref)

    def backward(dy: Ref, da: Ref, db: Ref) -> None:
        builder.call(f"{op}_gradient", dy.elements, da, db, dy, a.ref, b.ref)

    return _add_output(builder, name, inputs, y, backward)


def of_rows(builder: Builder, name: str, op: str, inputs: Sequence[Value], reads_output: bool = False) -> Value:
    """y = op(a, b), one column: a number of two rows. `reads_output`: its gradient needs y too."""
    (a, b), rows, columns = inputs, inputs[0].rows, inputs[0].columns
    y = builder.buffer(f"{name}.output", rows, 1)
    builder.call(f"{op}_forward", rows, columns, a.ref, b.ref, y)

    def backward(dy: Ref, da: Ref, db: Ref) -> None:
        output = [y] if reads_output else []
        builder.call(f"{op}_gradient", rows, columns, dy, *output, a.ref, b.ref, da, db)

    return _add_output(builder, name, inputs, y, backward)


def _add_output(
    builder: Builder, name: str, inputs: Sequence[Value], y: Ref, gradient: Callable[[Ref, Ref, Ref], None]
) -> Value:
    """`gradient` adds the call that makes a's and b's of y's."""

    def backward(dy: Ref) -> list[Gradient | None]:
        da, db = (builder.buffer(f"{name}.gradient", *value.ref.shape) for value in inputs)
        gradient(dy, da, db)
        return [Gradient(dx) if value.learns else None for value, dx in zip(inputs, (da, db), strict=True)]

    return builder.on_backward(backward, inputs, Value(y, learns=learns(inputs)))
