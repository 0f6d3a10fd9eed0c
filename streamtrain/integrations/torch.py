"""PyTorch: what a module is given of a job's columns, and its state out of a snapshot. Needs the extra torch.

A job trains a torch.nn.Module where its file says `[model] torch = "package.module:Net"`, and `fit` and `LiveModel`
one that is given to them: docs/torch.md.
"""

from __future__ import annotations

from torch import Tensor, from_numpy, nn

from streamtrain.clients.snapshot import Snapshot
from streamtrain.compute.module_spec import COUNTERS, Inputs, ModuleSpec
from streamtrain.errors import UserMistake

__all__ = ["Inputs", "load_snapshot", "state_dict"]


def state_dict(snapshot: Snapshot) -> dict[str, Tensor]:
    """The parameters and buffers of a snapshot's module by their names in it, copied; constants are not among them.

    Raises UserMistake for a snapshot whose model is no PyTorch module.
    """
    told = snapshot.manifest.model_spec.get("torch")
    if told is None:
        raise UserMistake(f"snapshot {snapshot.version} of {snapshot.manifest.job}: its model is no PyTorch module")
    spec = ModuleSpec.from_dict(told)
    held = {each.name: snapshot.parameters[each.block] for each in (*spec.parameters, *spec.averages)}
    at = 0
    for counter in spec.counters:
        held[counter.name] = snapshot.statistics[COUNTERS][at : at + counter.elements].reshape(counter.shape)
        at += counter.elements
    return {name: from_numpy(array.copy()) for name, array in held.items()}


def load_snapshot(module: nn.Module, snapshot: Snapshot) -> None:
    """Puts a snapshot's state into a module of the same kind.

    Raises UserMistake where it is of another kind, and changes nothing then.
    """
    found = state_dict(snapshot)
    own = dict(module.named_parameters()) | dict(module.named_buffers())
    wrong = [f"{name} {list(tensor.shape)}" for name, tensor in found.items()
             if name not in own or own[name].shape != tensor.shape]  # fmt: skip
    wrong += [f"no {name}" for name, _ in module.named_parameters() if name not in found]
    if wrong:
        raise UserMistake(f"snapshot {snapshot.version}: expected a module with {'; '.join(wrong[:5])}")
    for name, tensor in found.items():
        own[name].data.copy_(tensor)
