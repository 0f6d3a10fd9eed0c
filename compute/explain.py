"""The parts of a model and the cost of a step, from the calls the model is compiled to. Nothing runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from streamtrain.compute import ops, workspace
from streamtrain.compute.graph import INPUT
from streamtrain.compute.model import Model
from streamtrain.compute.spec import Call, Outside, PerRow, Program, Step, Tiled, flat, launches, refs_of, size_bytes
from streamtrain.compute.tiling import row_bytes

TORCH = "torch"


def explained(model: Model, program: Program) -> dict[str, Any]:
    """Returns the model's plan as plain data.

    `program` is the model's for training. It has the number of rows of a batch.
    """
    return {
        "rows": program.rows,
        "vertices": vertices(model),
        "state_bytes": dict(sorted(_bytes_by_group(model).items())),
        "workspace_bytes": program.workspace_bytes,
        "workspace_bytes_apart": _apart(program),
        "phases": {phase: _phase(steps) for phase, steps in program.phases.items()},
    }


def vertices(model: Model) -> list[dict[str, Any]]:
    """Each with what it reads, its columns and how many parameters it has."""
    return list(_vertices(model))


def _vertices(model: Model) -> Iterable[dict[str, Any]]:
    def parameters(prefix: str) -> int:
        return sum(block.count for block in model.blocks
                   if block.group == "parameters" and block.name.startswith(f"{prefix}."))  # fmt: skip

    tables = {block.name: block.count for block in model.blocks
              if block.group == "parameters" and block.name.endswith(".embedding")}  # fmt: skip
    entry = {"name": INPUT, "kind": "", "reads": [], "columns": model.parsed.input.width}
    yield {**entry, "parameters": sum(tables.values()), "tables": len(tables)}
    if model.parsed.module is not None:
        spec = model.parsed.module
        entry = {"name": spec.name, "kind": TORCH, "reads": [INPUT], "columns": spec.inputs.outputs}
        yield {**entry, "parameters": sum(tensor.elements for tensor in spec.parameters)}
        return
    columns = {name: shape.columns for name, shape in model.shapes().items()}
    for vertex in model.whole_graph():
        entry = {"name": vertex.name, "kind": vertex.kind, "reads": list(vertex.reads), "columns": columns[vertex.name]}
        yield {**entry, "parameters": parameters(vertex.name), "like": vertex.like}


def _bytes_by_group(model: Model) -> Counter[str]:
    found: Counter[str] = Counter()
    for block in model.blocks:
        found[block.group] += block.bytes
    return found


def _apart(program: Program) -> int:
    """Returns the bytes of the workspace if every buffer had memory of its own."""
    sizes: dict[str, int] = {}   # those of tiles' sums too, which no layer asks for
    for steps in program.phases.values():
        for call in flat(steps):
            for ref in refs_of(call.args):
                if ref.space == "work":
                    sizes[ref.name] = max(sizes.get(ref.name, 0), size_bytes(ref.dtype, (ref.start + ref.elements,)))
    placed = [offset for (space, _), offset in program.offsets.items() if space == "work"]
    return workspace.place(sizes, dict.fromkeys(sizes), min(placed, default=0))[1]


def _phase(steps: Sequence[Step]) -> dict[str, Any]:
    """Returns what the passes made of the phase: how often each op is called, how many calls go by tiles of rows,
    how many launches they all are. For a row it also gives the bytes that calls read and write, and what matrix
    products multiply and add."""
    calls = list(flat(steps))
    kernels = [call for call in calls if isinstance(call, Call)]
    names = Counter(TORCH if isinstance(call, Outside) else call.op for call in calls)
    return {
        "calls": len(calls),
        "launches": sum(1 for _ in launches(steps)),
        "by_tiles": sum(1 for _ in flat(step for step in steps if isinstance(step, Tiled))),
        "ops": dict(names.most_common()),
        "bytes_per_row": sum(map(_row_bytes, kernels)),
        "product_flop_per_row": sum(map(_flop, kernels)),
    }


def _row_bytes(call: Call) -> int:
    """Returns the bytes per row that a call reads and writes in arrays with the batch's rows."""
    given = zip(ops.get(call.op).args, call.args, strict=True)
    each = ((arg, ref) for arg, value in given for ref in refs_of([value]))
    return sum(row_bytes(arg, ref, call) * (2 if arg.role == "changed" else 1) for arg, ref in each)


def _flop(call: Call) -> int:
    op = ops.get(call.op)
    if not op.products:
        return 0
    sizes = {arg.name: value for arg, value in zip(op.args, call.args, strict=True) if arg.role == "size"}
    return 2 * math.prod(sizes[name].times if isinstance(sizes[name], PerRow) else int(sizes[name])  # type: ignore
                         for name in op.products)  # fmt: skip
