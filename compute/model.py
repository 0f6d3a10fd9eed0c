"""A model: its state's layout and start, and plans compiled from it. Used by worker, predictor and followers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamtrain import _native
from streamtrain.compute import backends, input, layers, losses, optimizers
from streamtrain.compute.bound import Memory, bound
from streamtrain.compute.builder import BlockSpec, Builder
from streamtrain.compute.layers import dense
from streamtrain.compute.model_spec import LayerSpec, ModelSpec
from streamtrain.compute.spec import DTYPES, Array, Call, PerRow, Program, Ref
from streamtrain.compute.state import block_view, views
from streamtrain.errors import UserMistake


class Model:
    """A model compiled from a model spec. Raises UserMistake where the spec does not fit.

    layout: where the blocks of its state lie. The learned part comes first (dense parameters, tables, optimizer state),
    then the statistics part.
    """

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self.spec = dict(spec)
        self.parsed = ModelSpec.from_dict(spec)
        self._optimizer = optimizers.get(self.parsed.optimizer)
        self._kept: tuple[str, ...] = self._optimizer.state(self.parsed.optimizer_options)   # per parameter
        builder, _ = self._build(rows=1)
        self.layout = self._layout(builder)
        self.blocks = self.layout.blocks
        self._limits = {block.name: block.limit for block in builder.parameters + builder.table_blocks}
        self._starts = {block.name: block.start for block in builder.statistics if block.start is not None}

    @property
    def learned_bytes(self) -> int:
        return self.layout.learned_bytes

    @property
    def statistics_bytes(self) -> int:
        return self.layout.statistics_bytes

    @property
    def state_bytes(self) -> int:
        return self.layout.state_bytes

    @property
    def held_bytes(self) -> int:
        """Of what transforms with state hold, among the statistics."""
        names = [each.block() for each in self.parsed.input.held]
        return sum(block.bytes for block in self.blocks if any(block.name in (n, f"{n}.all") for n in names))

    def named_layers(self) -> list[tuple[str, LayerSpec]]:
        """The layers by the names their parameters begin with: "dense0.weight"; the last one is the output."""
        counts: dict[str, int] = {}
        named = []
        for layer in self.parsed.layers:
            named.append((f"{layer.kind}{counts.setdefault(layer.kind, 0)}", layer))
            counts[layer.kind] += 1
        size = losses.get(self.parsed.loss).outputs(self.parsed.input)
        return [*named, ("output", LayerSpec("dense", {"size": size, "activation": dense.NONE}))]

    @property
    def betas(self) -> tuple[float, float]:
        """What the step block's beta1_power and beta2_power are powers of."""
        first, second = self._optimizer.betas(self.parsed.optimizer_options)
        return float(first), float(second)

    @property
    def label_dtype(self) -> str:
        """Of the slot's label block."""
        return losses.label_dtype(losses.label_kind(self.parsed.loss))

    def initial_state(self, seed: int) -> NDArray[np.uint8]:
        """A fresh state: parameters from Philox(seed), the settings that stand among the statistics, everything else 0;
        the same bytes on every machine."""
        state = aligned(self.state_bytes)
        blocks = self.views(state)
        for stream, (name, limit) in enumerate(self._limits.items()):
            if limit > 0:
                parameter = blocks[name].reshape(-1)
                _native.call_kernel("uniform_fill", "", [parameter.size, parameter, seed, stream, -limit, limit])
        for name, start in self._starts.items():
            blocks[name][: len(start)] = start
        return state

    def views(self, state: Array) -> dict[str, Array]:
        """All blocks of a whole state by name, sharing memory."""
        return views(self.layout, state)

    def scores(self, statistics: Array) -> dict[str, Array]:
        """The score blocks of a statistics part (of a snapshot, or a difference of two) by name."""
        scores = (block for block in self.blocks if block.group == "score")
        return {block.name: block_view(block, statistics, block.part_offset) for block in scores}

    def compile(
        self, backend: str, slot_layout: _native.SlotLayout, state: Memory, base: Memory | None = None,
        share: Memory | None = None, train: bool = True, isa: str = "", device: int = 0,
    ) -> _native.Plan:
        """A plan bound for its life to `state`, `base` and `share` (writable buffers or addresses, 64-byte aligned).

        With train=False only predict() works; then base may be left out for a number where nothing is standardised.
        `isa` is for tests; `device` chooses the CUDA device, modulo their number. The plan keeps the buffers alive, not
        what addresses point to.
        """
        if train and (base is None or share is None):
            raise UserMistake("Model.compile: expected base and share for a plan that trains, got none; or train=False")
        program = self.program(slot_layout, train)
        held = (state, base, share)
        addresses = (
            bound(state, self.state_bytes, "state"),
            bound(base, self.statistics_bytes, "base"),
            bound(share, self.statistics_bytes, "share"),
        )
        plan: _native.Plan = backends.get(backend).compile(program, addresses, isa=isa, device=device)
        plan._held = (held, program)
        return plan

    def program(self, slot_layout: _native.SlotLayout, train: bool) -> Program:
        """The calls of a plan for slots of this layout."""
        builder, output = self._build(slot_layout.row_capacity)
        phases = {phase: tuple(calls) if train or phase == "predict" else () for phase, calls in builder.calls.items()}
        return self.assembled(builder, phases, output, slot_layout)

    def assembled(
        self, builder: Builder, phases: Mapping[str, tuple[Call, ...]], output: Ref, slot_layout: _native.SlotLayout
    ) -> Program:
        """Calls by phase over what a builder has laid out, and over this model's state."""
        offsets, workspace_bytes, constants = self._workspace(builder)
        offsets |= _slot_offsets(slot_layout, phases)
        return Program(
            phases, offsets, workspace_bytes, constants, output, slot_layout.row_capacity, self.layout,
            slot_layout.slot_bytes,
        )

    def _build(self, rows: int) -> tuple[Builder, Ref]:
        parsed, builder = self.parsed, Builder(PerRow(rows))
        loss = losses.get(parsed.loss)
        x = input.build(builder, parsed.input, self.label_dtype)
        *hidden, (output_name, last) = self.named_layers()
        for name, layer in hidden:
            x = layers.get(layer.kind).build(builder, name, x, **layer.options)
        z = dense.build(builder, output_name, x, **last.options, zero=True)
        input.linear(builder, parsed.input, z)
        gradient, output = loss.build(builder, parsed.input, z)
        with builder.during("train"):
            builder.run_backward(gradient)
            self._update(builder)
        builder.statistic(_native.OPTIMIZER_STEPS, "optimizer", "highest", 1)
        return builder, output

    def _update(self, builder: Builder) -> None:
        """The optimizer over the flat vector of dense parameters, then table by table."""
        options, state = self.parsed.optimizer_options, self._kept
        size_bytes = _native.place([_bytes(block) for block in builder.parameters])[1]
        first, dtype = builder.parameters[0].name, builder.parameters[0].dtype
        count = size_bytes // np.dtype(DTYPES[dtype]).itemsize
        flat = Ref("state", first, dtype, (count,))
        held = [Ref("state", self._state_name(kept, first), dtype, (count,)) for kept in state]
        self._optimizer.update(builder, options, count, Ref("gradient", first, dtype, (count,)), flat, *held)
        for table in builder.tables:
            parameter = table.parameter
            of_rows = [
                Ref("state", self._state_name(kept, parameter.name), parameter.dtype, parameter.shape) for kept in state
            ]
            self._optimizer.update_rows(builder, options, table, *of_rows)

    def _state_name(self, kept: str, parameter: str) -> str:
        return f"{self.parsed.optimizer}.{kept}.{parameter}"

    def _layout(self, builder: Builder) -> _native.StateLayout:
        """In the order dense parameters, tables, optimizer state, statistics."""
        learned = builder.parameters + builder.table_blocks
        rule = "learned" if self.parsed.average_optimizer_state else "local"
        kept = [
            BlockSpec(self._state_name(name, block.name), "optimizer", rule, block.shape, rows_of=block.rows_of)
            for name in self._kept for block in learned
        ]
        specs = learned + kept + builder.statistics
        blocks = [(spec.name, spec.group, spec.rule, spec.shape) for spec in specs]
        return _native.StateLayout.make(blocks, {spec.name: spec.rows_of for spec in specs if spec.rows_of})

    def _workspace(self, builder: Builder) -> tuple[dict[tuple[str, str], int], int, tuple[tuple[int, bytes], ...]]:
        """Offsets of everything but the slot, the workspace's size, and its constants with their offsets."""
        offsets: dict[tuple[str, str], int] = {}
        for block in self.blocks:
            offsets["state", block.name] = block.offset
            for space in ("base", "share"):
                offsets[space, block.name] = block.part_offset
        # the gradients lie as the parameters do in the state: the optimizer runs over all of them at once
        sizes = {("gradient", parameter.name): _bytes(parameter) for parameter in builder.parameters}
        sizes |= {("work", name): _size_bytes(dtype, shape) for name, (dtype, shape) in builder.buffers.items()}
        sizes |= {("constant", name): array.nbytes for name, array in builder.constants.items()}
        places, workspace_bytes = _native.place(list(sizes.values()))
        offsets |= dict(zip(sizes, places, strict=True))
        constants = tuple((offsets["constant", name], array.tobytes()) for name, array in builder.constants.items())
        return offsets, workspace_bytes, constants


def aligned(size_bytes: int) -> NDArray[np.uint8]:
    """Zeroed memory that starts on a cache line."""
    raw = np.zeros(size_bytes + _native.CACHE_LINE, np.uint8)
    start = -raw.ctypes.data % _native.CACHE_LINE
    return raw[start : start + size_bytes]


def _bytes(block: BlockSpec) -> int:
    return _size_bytes(block.dtype, block.shape)


def _size_bytes(dtype: str, shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=np.int64)) * np.dtype(DTYPES[dtype]).itemsize


def _slot_offsets(layout: _native.SlotLayout, phases: Mapping[str, Any]) -> dict[tuple[str, str], int]:
    """Offsets of the slot blocks the calls use; a UserMistake where the layout lacks one or has another shape."""
    blocks = {block.name: block for block in layout.blocks}
    offsets: dict[tuple[str, str], int] = {}
    for calls in phases.values():
        for call in calls:
            for arg in call.args:
                if isinstance(arg, Ref) and arg.space == "slot" and ("slot", arg.name) not in offsets:
                    offsets["slot", arg.name] = _slot_offset(blocks, arg)
    return offsets


def _slot_offset(blocks: Mapping[str, _native.Block], part: Ref) -> int:
    """Of a fixed block [rows, width]; of a ragged one its ends, or its entries."""
    name = part.name.removesuffix(".values")
    block = blocks.get(name)
    if len(part.shape) == 1:
        fits = block is not None and block.ragged
        if block is not None and part.name != name:
            fits = fits and (block.dtype, block.capacity) == (part.dtype, part.elements)
        expected = f"ragged {part.dtype} of {part.elements} entries" if part.name != name else "ragged"
    else:
        fits = block is not None and not block.ragged and (block.dtype, block.width) == (part.dtype, part.shape[1])
        expected = f"{part.dtype} of width {part.shape[1]}"
    if block is None or not fits:
        ragged = "ragged " if block is not None and block.ragged else ""
        got = "none" if block is None else f"{ragged}{block.dtype} of width {block.width}"
        raise UserMistake(f"slot block {name}: expected {expected}, got {got}")
    return block.values if part.name != name else block.offset

