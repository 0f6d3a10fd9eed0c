"""PyTorch: what a module is given of a job's columns, and its state out of a snapshot. Needs the extra torch.

A job trains a torch.nn.Module where its file says `[model] torch = "package.module:Net"`, and `fit` and `LiveModel`
one that is given to them: docs/torch.md.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor, from_numpy, nn

from streamtrain import _native
from streamtrain.clients.scorer import Scorer
from streamtrain.clients.snapshot_arrays import Snapshot
from streamtrain.columns.served import Served, Shape
from streamtrain.compute.model import Model, aligned
from streamtrain.compute.module_spec import COUNTERS, Inputs, ModuleSpec
from streamtrain.compute.spec import Array, InSlot, Run
from streamtrain.compute.torch.module_source import FOLDED
from streamtrain.errors import UserMistake

__all__ = ["Inputs", "inputs", "load_snapshot", "offset", "state_dict"]

_TRIAL_ROWS = 8


def state_dict(snapshot: Snapshot) -> dict[str, Tensor]:
    """The parameters and buffers of a snapshot's module by their names in it, copied; constants are not among them,
    and offset() is not in them.

    Raises UserMistake for a snapshot whose model is no PyTorch module.
    """
    spec = _spec(snapshot)
    arrays = {each.name: snapshot.parameters[each.block] for each in (*spec.parameters, *spec.averages)}
    at = 0
    for counter in spec.counters:
        arrays[counter.name] = snapshot.statistics[COUNTERS][at : at + counter.elements].reshape(counter.shape)
        at += counter.elements
    return {name: from_numpy(array.copy()) for name, array in arrays.items()}


def offset(snapshot: Snapshot) -> Tensor:
    """The log odds or log shares of the label so far, float32 [outputs], which the job's loss adds to what the module
    gives; zeros for losses that add nothing.

    Raises UserMistake for a snapshot whose model is no PyTorch module.
    """
    spec, (head,) = _spec(snapshot), Model(snapshot.manifest.model_spec).parsed.heads
    found = np.zeros(spec.inputs.outputs, np.float32)
    if (seen := snapshot.statistics.get("label.classes")) is not None:
        settings, balance = head.settings, head.settings.get("balance")
        weights = settings.get("class_weights") or ([1.0] * len(seen) if balance is None else [1 - balance, balance])
        smoothing = settings.get("label_smoothing", 0.0)
        sizes = [len(found), len(seen), smoothing]
        _native.call_kernel("smoothed_prior", "", [*sizes, seen, np.array(weights, np.float32), found])
    elif (seen := snapshot.statistics.get("label.total")) is not None:
        _native.call_kernel("poisson_prior", "", [seen, found])
    return from_numpy(found)


def load_snapshot(module: nn.Module, snapshot: Snapshot, *, fold: bool = True, own_constants: bool = False) -> None:
    """Puts a snapshot's state into a module of the same kind, with offset() folded into its output's bias: the module
    gives the logits that predictions are made of. `fit` takes it out again where training starts from the module.

    `fold=False` leaves the offset out. `own_constants`: buffers that no snapshot holds (neither float32 nor int64) stay
    the module's own. Raises UserMistake, and changes nothing, where the module is of another kind, has such buffers, or
    no bias that is added to its outputs.
    """
    found, spec = state_dict(snapshot), _spec(snapshot)
    own = dict(module.named_parameters()) | dict(module.named_buffers())
    wrong = [f"{name} {list(tensor.shape)}" for name, tensor in found.items()
             if name not in own or own[name].shape != tensor.shape]  # fmt: skip
    wrong += [f"no {name}" for name, _ in module.named_parameters() if name not in found]
    if wrong:
        _refuse(snapshot, f"a module with {'; '.join(wrong[:5])}")
    constants = [name for name in own if name not in found]
    if constants and not own_constants:
        _refuse(snapshot, f"no buffers that no snapshot holds, got {', '.join(constants[:5])}; where they are as in "
                          "training, say own_constants=True")  # fmt: skip
    added = offset(snapshot) if fold else torch.zeros(spec.inputs.outputs)
    bias = _output_bias(module, spec) if bool(added.any()) else None
    if bias is None and bool(added.any()):
        _refuse(snapshot, f"a bias of {len(added)} that is added to the module's outputs, found none; add "
                          "offset(snapshot) to the outputs, and say fold=False")  # fmt: skip
    for name, tensor in found.items():
        own[name].data.copy_(tensor)
    setattr(module, FOLDED, None if bias is None else (bias, added))
    if bias is not None:
        own[bias].data.add_(added.view(own[bias].shape))


def inputs(snapshot: Snapshot, rows: Any) -> Tensor:
    """Returns the module's inputs for rows (as for LiveModel.predict): float32 [rows, width], standardised, embedded
    and with transforms made.

    Raises UserMistake for a snapshot whose model is no PyTorch module, RecordError for a row that cannot be used.
    """
    _spec(snapshot)
    seen = _Seen()
    shape = Shape(snapshot.manifest, seen)
    state = aligned(shape.model.state_bytes)
    views = shape.model.views(state)
    for name, array in (snapshot.parameters | snapshot.statistics).items():  # type: ignore[operator]
        views[name][...] = array
    Scorer(Served(snapshot.manifest, bytes.fromhex(snapshot.digest), shape, state)).predict(rows, "raise")
    return from_numpy(np.concatenate(seen.found))


class _Seen:
    """A `Module` and its `Instance` that keep what they are given to predict for; the rest of both is never called."""

    def __init__(self) -> None:
        self.found: list[Array] = []

    def start(self, spec: ModuleSpec, seed: int) -> NoReturn:
        raise NotImplementedError

    def instance(self, spec: ModuleSpec, x_learns: bool) -> _Seen:
        return self

    def predict(self, x: Array, z: Array, *rest: Array) -> Run:
        def run(rows: int, slot: int) -> None:
            self.found.append(x[:rows].copy())
            z[:rows] = 0

        return run

    def forward(self, step: _native.StepBlock, x: Array, z: Array, *rest: Array) -> Run:
        raise NotImplementedError

    def backward(self, dz: Array, flat: Array, *rest: Array) -> Run:
        raise NotImplementedError

    def loss(self, z: Array, dz: Array, label: InSlot, weight: InSlot) -> Run:
        raise NotImplementedError

    def update(self, step: _native.StepBlock, *kept: Array) -> Run:
        raise NotImplementedError


def _spec(snapshot: Snapshot) -> ModuleSpec:
    document = snapshot.manifest.model_spec.get("torch")
    if document is None:
        raise UserMistake(f"snapshot {snapshot.version} of {snapshot.manifest.job}: its model is no PyTorch module")
    return ModuleSpec.from_dict(document)


def _refuse(snapshot: Snapshot, expected: str) -> NoReturn:
    raise UserMistake(f"snapshot {snapshot.version}: expected {expected}")


def _output_bias(module: nn.Module, spec: ModuleSpec) -> str | None:
    """The parameter whose change changes every output by as much, found by trying."""
    outputs, trains = spec.inputs.outputs, module.training
    x, change = torch.randn(_TRIAL_ROWS, spec.inputs.width), torch.arange(1.0, outputs + 1)
    module.eval()
    try:
        with torch.inference_mode():
            before = module(x).reshape(len(x), outputs).clone()
            for name, parameter in module.named_parameters():
                if parameter.numel() != outputs:
                    continue
                kept = parameter.data
                parameter.data = kept + change.view(parameter.shape)
                moved = module(x).reshape(len(x), outputs) - before
                parameter.data = kept
                if torch.allclose(moved, change.expand_as(moved), rtol=1e-3, atol=1e-3):
                    return str(name)
    finally:
        module.train(trains)
    return None
