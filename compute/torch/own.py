"""A module's own optimizer: what configure_optimizers() gives, and what that keeps, found by two steps of it."""

from __future__ import annotations

from typing import Any

from streamtrain.compute.module_spec import Kept, OwnOptimizer
from streamtrain.compute.torch.instance import WHERE, raised
from streamtrain.errors import UserMistake


def optimizer_of(name: str, module: Any) -> OwnOptimizer | None:
    """None where the module has no configure_optimizers(). `module` is the caller's, who is done with it.

    UserMistake where the optimizer keeps what cannot be averaged.
    """
    import torch

    if not hasattr(module, "configure_optimizers"):
        return None
    try:
        optimizer = module.configure_optimizers()
        for parameter in module.parameters():
            if parameter.requires_grad:
                parameter.grad = torch.zeros_like(parameter)
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise TypeError(f"expected a torch.optim.Optimizer, got {type(optimizer).__name__}")
        own = {id(parameter) for parameter in module.parameters()}
        others = sum(id(each) not in own for group in optimizer.param_groups for each in group["params"])
        if others:
            raise ValueError(f"expected an optimizer of the module's own parameters, got {others} that are not")
        looks = []
        for _ in range(2):
            optimizer.step()
            state_items = _state(module, optimizer).items()
            looks.append({key: {what: _plain(value) for what, value in each.items()} for key, each in state_items})
    except Exception as error:
        raise raised(name, "in configure_optimizers(), or a step of what that gave,", error) from error
    kept, steps = [], []
    for key, its in _state(module, optimizer).items():
        for what, value in its.items():
            if [look[key].get(what) for look in looks] == [1.0, 2.0]:
                steps.append((key, what))
            elif isinstance(value, torch.Tensor) and value.dtype == torch.float32:
                kept.append(Kept(key, what, tuple(value.shape)))
            elif value is not None:
                type_name = value.dtype if isinstance(value, torch.Tensor) else type(value).__name__
                raise UserMistake(
                    f"{WHERE}: {name}: expected an optimizer that keeps tensors of torch.float32 and counts of its "
                    f"steps, got {what} of {key}: {type_name}"
                )
    return OwnOptimizer(type(optimizer).__name__, tuple(kept), tuple(steps))


def _state(module: Any, optimizer: Any) -> dict[str, Any]:
    """Returns what the optimizer keeps, by the parameter's name."""
    return {key: optimizer.state[tensor] for key, tensor in module.named_parameters() if tensor in optimizer.state}


def _plain(value: Any) -> float | None:
    """A number, or a tensor that is one."""
    import torch

    if isinstance(value, torch.Tensor):
        return float(value) if value.dim() == 0 else None
    return float(value) if isinstance(value, int | float) else None
