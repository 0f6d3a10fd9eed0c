"""A model: its state's layout and start, and plans compiled from it. Used by worker, predictor and followers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamtrain import _native
from streamtrain.compute import (
    averagings,
    backends,
    gradient_sums,
    input,
    metrics,
    module,
    schedules,
    windows,
    workspace,
)
from streamtrain.compute.bound import Memory, bound
from streamtrain.compute.builder import GRADIENT, PREDICTING, TRAINING, UPDATE, BlockSpec, Builder, Value
from streamtrain.compute.fusion import fused
from streamtrain.compute.graph import Graph, Outlet, Vertex
from streamtrain.compute.heads import add_losses
from streamtrain.compute.initial_values import ZERO
from streamtrain.compute.model_spec import ModelSpec
from streamtrain.compute.module import Module, Network
from streamtrain.compute.shape import Shape
from streamtrain.compute.shape_inference import shapes
from streamtrain.compute.spec import Array, Call, Outside, PerRow, Program, Ref, Step, flat, refs_of, size_bytes
from streamtrain.compute.state import block_view, views
from streamtrain.compute.tiling import Tiling, tiled
from streamtrain.compute.update import Update
from streamtrain.errors import UserMistake


class Model:
    """A model compiled from a model spec. Raises UserMistake where the spec does not fit.

    layout: where the blocks of its state lie. The learned part comes first (dense parameters, tables, optimizer state),
    then the statistics part.
    """

    # passes over a plan that change no bit; False in tests
    overlays = True   # buffers that are not needed at the same time may share their memory
    tiles = True      # what goes by rows is done for a tile of rows at a time, where a backend has tiles
    fuses = True      # elementwise calls that follow each other are one launch
    infers = True     # shapes are inferred before anything is built, which says what does not fit

    def __init__(self, spec: Mapping[str, Any], module: Module | None = None) -> None:
        """`module`: the network of a spec that names one; without it the state is laid out and nothing computed."""
        self.spec = dict(spec)
        self.module = module
        self.parsed = ModelSpec.from_dict(spec)
        if self.infers and self.parsed.module is None:
            self.shapes()
        self._update = Update(self.parsed.optimizer, self.parsed.optimizer_settings)
        builder, _ = self._build(rows=1)
        self.layout = self._layout(builder)
        self.blocks = self.layout.blocks
        begun = builder.parameters + builder.table_blocks + builder.averages
        self._begins = {block.name: block.begin for block in begun}
        self._starts = {block.name: block.start for block in builder.statistics if block.start is not None}

    @property
    def figures(self) -> list[str]:
        """The names of what it is judged by (compute/metrics.py)."""
        return metrics.names({block.name: block.shape for block in self.blocks})

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
    def graph(self) -> Graph:
        """The vertices by the names their parameters begin with; of a list of layers "dense0", "dense1"."""
        if self.parsed.graph is not None:
            return self.parsed.graph
        counts: dict[str, int] = {}
        named = []
        for layer in self.parsed.layers:
            named.append((f"{layer.kind}{counts.setdefault(layer.kind, 0)}", layer.kind, layer.options))
            counts[layer.kind] += 1
        return Graph.of_layers(named)

    def whole_graph(self) -> list[Vertex]:
        """Returns the model's computed vertices, in order, and the output layers that losses add."""
        return self.graph.whole(self._outlets)

    def shapes(self) -> dict[str, Shape]:
        """Returns the shapes of the input, its columns and all vertices by name, in order."""
        return shapes(self.graph, self.parsed.input.width or 1, self._outlets)

    @property
    def _outlets(self) -> list[Outlet]:
        """Returns what the losses take. Layers of a list have no names that a head could mean."""
        found = [head.outlet for head in self.parsed.heads]
        return found if self.parsed.graph is not None else [replace(each, taken=each.output_layer) for each in found]

    @property
    def label_dtype(self) -> str:
        """Returns the dtype of the slot's label block, where there is one."""
        return self.parsed.heads[0].label_dtype

    def initial_state(self, seed: int) -> NDArray[np.uint8]:
        """A fresh state: parameters from Philox(seed), the settings that stand among the statistics, everything else 0;
        the same bytes on every machine."""
        state = aligned(self.state_bytes)
        blocks = self.views(state)
        for stream, (name, begin) in enumerate(self._begins.items()):
            if begin != ZERO:
                begin.into(blocks[name], seed, stream)
        for name, start in self._starts.items():
            blocks[name][: len(start)] = start
        if self.parsed.module is not None:
            module.begin(self.parsed.module, self.module, seed, blocks)
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
        share: Memory | None = None, phases: Sequence[str] = TRAINING, isa: str = "", device: int = 0,
        threads: int = 1,
    ) -> _native.Plan:
        """A plan bound for its life to `state`, `base` and `share` (writable buffers or addresses, 64-byte aligned).

        It has the `phases` asked for (PLAN_PHASES), and memory for no others. To predict alone no share is needed, and
        no base for a number where nothing is standardised. `isa` is for tests; `device` chooses the CUDA device, modulo
        their number; `threads` are those that the CPU's plan deals tiles of a batch among, which changes no bit. The
        plan keeps the buffers alive, not what addresses point to.
        """
        if tuple(phases) != PREDICTING and (base is None or share is None):
            raise UserMistake(
                f"Model.compile: expected base and share for a plan that is to {', '.join(phases)}, got none; "
                "or phases=PREDICTING"
            )
        program = self.program(slot_layout, phases, backend)
        buffers = (state, base, share)
        addresses = (
            bound(state, self.state_bytes, "state"),
            bound(base, self.statistics_bytes, "base"),
            bound(share, self.statistics_bytes, "share"),
        )
        plan: _native.Plan = backends.get(backend).compile(program, addresses, isa=isa, device=device, threads=threads)
        plan._held = (buffers, program)
        return plan

    def built(self, rows: int) -> tuple[Builder, Ref]:
        """Blocks and calls for batches of at most so many rows, and what a prediction gives."""
        return self._build(rows)

    def program(
        self, slot_layout: _native.SlotLayout, phases: Sequence[str] = TRAINING, backend: str = "cpu"
    ) -> Program:
        """The calls of a plan for slots of this layout."""
        builder, output = self._build(slot_layout.row_capacity)
        calls = {phase: builder.calls_of(phase) for phase in phases}
        return self.assembled(builder, calls, output, slot_layout, backends.get(backend).TILE_ROWS)

    def assembled(
        self, builder: Builder, phases: Mapping[str, tuple[Call | Outside, ...]], output: Ref,
        slot_layout: _native.SlotLayout, tile_rows: int,
    ) -> Program:
        """Calls by phase over what a builder has laid out, and over this model's state; `tile_rows`: of a tile, 0 for a
        backend that has none."""
        found = Tiling(phases)
        if 0 < tile_rows < slot_layout.row_capacity:
            found = tiled(builder, phases, output, self.tiles)
        if self.fuses:
            found = replace(found, phases={phase: fused(steps) for phase, steps in found.phases.items()})
        buffers = _buffer_bytes(builder, found, tile_rows)
        offsets, workspace_bytes, constants = self._workspace(builder, found, output, buffers)
        offsets |= _slot_offsets(slot_layout, phases)
        offsets.setdefault((output.space, output.name), 0)   # of a plan that does not predict, which nobody reads
        return Program(
            found.phases, offsets, workspace_bytes, constants, output, slot_layout.row_capacity, self.layout,
            slot_layout.slot_bytes, tile_rows, found.local, *workspace.own(found.phases, found.local, buffers),
        )

    def _build(self, rows: int) -> tuple[Builder, Ref]:
        parsed, builder = self.parsed, Builder(PerRow(rows))
        network, zs = self._forward(builder)
        gradients, output = add_losses(builder, parsed.heads, zs)
        with builder.during(*GRADIENT):
            if network is not None:
                network.train(builder, gradients[0])
                network.loss(builder, zs[0], gradients[0], self.label_dtype)
            update = self._update.backward(builder, dense=network is None or not network.has_update)
            sums = gradient_sums.backward(builder)
            builder.run_backward(zs, gradients)
            builder.add_shared()
        with builder.during(*UPDATE):
            if network is not None and network.has_update:
                network.update(builder, self._kept_rule)
            update()
        sums()
        averagings.get(parsed.averaging).build(builder, parsed.averaging_settings)
        if parsed.schedule is not None:
            schedules.build(builder, *parsed.schedule)
        builder.statistic(_native.OPTIMIZER_STEPS, "optimizer", "highest", 1)
        windows.build(builder)
        return builder, output

    def _forward(self, builder: Builder) -> tuple[Network | None, list[Value]]:
        """The network where it is none of layers, and what it makes of a batch for each head."""
        parsed = self.parsed
        x = input.build(builder, parsed.input, self.label_dtype, own=parsed.module is not None)
        network = None if parsed.module is None else Network(builder, parsed.module, self.module, x)
        if network is not None:
            zs = [network.forward(builder, parsed.heads[0].outputs)]
        else:
            zs = self.graph.build(builder, x, self._outlets)
        return network, [input.linear(builder, parsed.input, z, head.name)
                         for z, head in zip(zs, parsed.heads, strict=True)]  # fmt: skip

    @property
    def _kept_rule(self) -> str:
        return "learned" if self.parsed.average_optimizer_state else "local"

    def _layout(self, builder: Builder) -> _native.StateLayout:
        """In the order dense parameters, tables, averages, optimizer state, statistics."""
        learned, rule = builder.parameters + builder.table_blocks, self._kept_rule
        own = self.parsed.module is not None and self.parsed.module.optimizer is not None
        kept = [
            BlockSpec(self._update.state_name(name, block.name), "optimizer", rule, block.shape, rows_of=block.rows_of)
            for name in self._update.kept for block in (builder.table_blocks if own else learned)
        ]
        specs = learned + builder.averages + builder.foreign + kept + builder.statistics
        return _native.StateLayout.make([
            _native.StateBlockSpec(spec.name, spec.group, spec.rule, spec.shape, spec.dtype, spec.rows_of)
            for spec in specs
        ])

    def _workspace(
        self, builder: Builder, tiling: Tiling, output: Ref, buffers: Mapping[str, int]
    ) -> tuple[dict[tuple[str, str], int], int, tuple[tuple[int, bytes], ...]]:
        """Offsets of everything but the slot, the workspace's size, and its constants with their offsets."""
        offsets: dict[tuple[str, str], int] = {}
        for block in self.blocks:
            offsets["state", block.name] = block.offset
            for space in ("base", "share"):
                offsets[space, block.name] = block.part_offset
        # the gradients lie as the parameters do in the state: the optimizer runs over all of them at once
        sizes: dict[tuple[str, str], int] = {}
        if any(ref.space == "gradient" for steps in tiling.phases.values() for ref in _refs(steps)):
            sizes |= {("gradient", parameter.name): _bytes(parameter) for parameter in builder.parameters}
        sizes |= {("constant", name): array.nbytes for name, array in builder.constants.items()}
        places, fixed_bytes = _native.place(list(sizes.values()))
        offsets |= dict(zip(sizes, places, strict=True))
        live = workspace.lives(tiling.phases, output, tiling.local)
        if not self.overlays:
            live = dict.fromkeys(live)
        placed, workspace_bytes = workspace.place(buffers, live, fixed_bytes)
        offsets |= {("work", name): offset for name, offset in placed.items()}
        constants = tuple((offsets["constant", name], array.tobytes()) for name, array in builder.constants.items())
        return offsets, workspace_bytes, constants


def aligned(size_bytes: int) -> NDArray[np.uint8]:
    """Zeroed memory that starts on a cache line."""
    raw = np.zeros(size_bytes + _native.CACHE_LINE, np.uint8)
    start = -raw.ctypes.data % _native.CACHE_LINE
    return raw[start : start + size_bytes]


def _buffer_bytes(builder: Builder, tiling: Tiling, tile_rows: int) -> dict[str, int]:
    """Returns the bytes of each buffer, for a batch's rows or a tile's."""
    sizes = {name: size_bytes(dtype, shape) for name, (dtype, shape) in builder.buffers.items()}
    return sizes | {name: sizes[name] // int(builder.rows) * tile_rows for name in tiling.local}


def _bytes(block: BlockSpec) -> int:
    return size_bytes(block.dtype, block.shape)


def _refs(steps: Iterable[Step]) -> Iterator[Ref]:
    for call in flat(steps):
        yield from refs_of(call.args)


def _slot_offsets(layout: _native.SlotLayout, phases: Mapping[str, Any]) -> dict[tuple[str, str], int]:
    """Offsets of the slot blocks the calls use; a UserMistake where the layout lacks one or has another shape."""
    blocks = {block.name: block for block in layout.blocks}
    offsets: dict[tuple[str, str], int] = {}
    for calls in phases.values():
        for arg in _refs(calls):
            if arg.space == "slot" and ("slot", arg.name) not in offsets:
                offsets["slot", arg.name] = _slot_offset(blocks, arg)
    return offsets


def _slot_offset(blocks: Mapping[str, _native.Block], part: Ref) -> int:
    """Returns the offset of a fixed block [rows, width]. For a ragged block it is the offset of its ends, or of its
    entries."""
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

