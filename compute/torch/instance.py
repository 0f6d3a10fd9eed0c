"""A PyTorch module over the memory of one plan: its parameters and buffers are views of the state, its gradients views
of the plan's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.compute.module_spec import ModuleSpec
from streamtrain.compute.spec import Array, InSlot, Run
from streamtrain.compute.torch.batch_norms import BatchNorms
from streamtrain.errors import UserMistake

WHERE = "model.torch"


def tensors_of(module: Any) -> dict[str, Any]:
    """Returns the module's parameters and buffers by name. One with several names has the first."""
    return dict(module.named_parameters()) | dict(module.named_buffers())


def raised(name: str, when: str, error: Exception) -> UserMistake:
    """Returns the UserMistake for an error that somebody's code raised."""
    return UserMistake(f"{WHERE}: {name}: {when} it raised {type(error).__name__}: {error}")


class TorchInstance:
    """An `Instance`. One thread at a time, as the plan."""

    def __init__(self, module: Any, spec: ModuleSpec, x_learns: bool) -> None:
        """`module` is this instance's alone."""
        self.module, self._spec, self._x_learns = module, spec, x_learns
        self._tensors = tensors_of(module)
        self._counted = self._counters()
        self._norms = BatchNorms(module)
        self._trains: bool | None = None
        self._step: _native.StepBlock
        self._x: Any = None   # of the newest forward step, with its outputs
        self._y: Any = None

    def forward(self, step: _native.StepBlock, x: Array, z: Array, *rest: Array) -> Run:
        import torch

        counters, state = (rest[:2], rest[2:]) if self._spec.counters else ((), rest)
        self._step = step
        self._take(state)
        counted = self._counted
        xs, zs, random = torch.from_numpy(x), torch.from_numpy(z), torch.default_generator

        def run(rows: int, slot: int) -> None:
            filled = rows / self._spec.least_rows
            self._in_mode(train=filled >= 1 or len(self._norms) > 0)
            random.manual_seed(step.random)
            if counters:
                base, share = counters
                counted[:] = base + share
            self._x = xs[:rows].detach().requires_grad_(self._x_learns)
            with torch.enable_grad(), self._norms.gathering(filled):
                self._y = self.module(self._x)
            zs[:rows].copy_(self._y.detach().view(rows, -1))
            if counters:
                share[:] = counted - base

        return self._wrap_errors("when trained", run)

    def backward(self, dz: Array, flat: Array, *rest: Array) -> Run:
        import torch

        dx, gradients = (rest[0], rest[1:]) if self._x_learns else (None, rest)
        for tensor, gradient in zip(self._spec.parameters, gradients, strict=True):
            self._tensors[tensor.name].grad = torch.from_numpy(gradient)
        dzs, dxs = torch.from_numpy(dz), None if dx is None else torch.from_numpy(dx)

        def run(rows: int, slot: int) -> None:
            flat.fill(0)   # gradients are added to what is there, in place
            if dxs is not None:
                dxs[:rows].zero_()
                self._x.grad = dxs[:rows]
            torch.autograd.backward(self._y, dzs[:rows].view(self._y.shape))
            self._x = self._y = None
            if not self._norms.move():
                self._step.not_finite = 1

        return self._wrap_errors("in its backward pass", run)

    def loss(self, z: Array, dz: Array, label: InSlot, weight: InSlot) -> Run:
        import torch

        zs, dzs = torch.from_numpy(z), torch.from_numpy(dz)

        def run(rows: int, slot: int) -> None:
            weights = torch.from_numpy(weight(slot)[:rows, 0])
            total = weights.sum()
            if not total > 0:
                dzs[:rows].zero_()
                return
            labels = torch.from_numpy(label(slot)[:rows, 0])
            leaf = zs[:rows].detach().requires_grad_()
            losses = self.module.loss(
                leaf[:, 0] if z.shape[1] == 1 else leaf, labels if labels.is_floating_point() else labels.long()
            )
            if losses.shape != weights.shape:
                raise ValueError(f"expected the loss of each row, [{rows}], got {list(losses.shape)}")
            (gradient,) = torch.autograd.grad((losses * weights).sum() / total, leaf)
            dzs[:rows].copy_(gradient)

        return self._wrap_errors("in its loss()", run)

    def update(self, step: _native.StepBlock, *kept: Array) -> Run:
        import torch

        own, optimizer = self._spec.optimizer, self.module.configure_optimizers()
        assert own is not None
        state = {
            (each.parameter, each.key): torch.from_numpy(array) for each, array in zip(own.kept, kept, strict=True)
        }
        parameters = [self._tensors[tensor.name] for tensor in self._spec.parameters]

        newest_step = -1   # the number of its newest step

        def go_on_from(number: int) -> None:
            """Gives the optimizer our state, and sets its step counts to `number`."""
            for (name, key), tensor in state.items():
                optimizer.state[self._tensors[name]][key] = tensor
            for name, key in own.steps:
                optimizer.state[self._tensors[name]][key] = torch.tensor(float(number))

        def run(rows: int, slot: int) -> None:
            nonlocal newest_step
            if not step.weight_sum > 0:
                return
            if step.number == 1:
                optimizer.state.clear()   # it begins as it does by itself
            elif newest_step != step.number - 1:
                go_on_from(step.number - 1)
            optimizer.step()
            if step.number == 1:
                for (name, key), tensor in state.items():
                    tensor.copy_(optimizer.state[self._tensors[name]][key])
                go_on_from(1)
            newest_step = step.number
            if not all(bool(torch.isfinite(tensor).all()) for tensor in (*parameters, *state.values())):
                step.not_finite = 1

        return self._wrap_errors("in its optimizer's step", run)

    def predict(self, x: Array, z: Array, *rest: Array) -> Run:
        import torch

        counters, state = (rest[:1], rest[1:]) if self._spec.counters else ((), rest)
        self._take(state)
        counted = self._counted
        xs, zs = torch.from_numpy(x), torch.from_numpy(z)

        def run(rows: int, slot: int) -> None:
            self._in_mode(train=False)
            if counters:
                counted[:] = counters[0]
            with torch.inference_mode():
                zs[:rows].copy_(self.module(xs[:rows]).view(rows, -1))

        return self._wrap_errors("when asked to predict", run)

    def _wrap_errors(self, when: str, run: Run) -> Run:
        """The same, whose errors say that it is the module that raised them."""

        def wrapper(rows: int, slot: int) -> None:
            try:
                run(rows, slot)
            except Exception as error:
                raise raised(self._spec.name, f"{when} on {rows} rows", error) from error

        return wrapper

    def _in_mode(self, train: bool) -> None:
        if self._trains != train:   # a walk over all its parts
            self.module.train(train)
            self._trains = train

    def _take(self, state: Sequence[Array]) -> None:
        """Lets the module's tensors be views of the state."""
        import torch

        for tensor, array in zip((*self._spec.parameters, *self._spec.averages), state, strict=True):
            self._tensors[tensor.name].data = torch.from_numpy(array)

    def _counters(self) -> Array:
        """Puts a new array of zeros under the module's int64 buffers, on which it counts on, and returns the array."""
        import torch

        counted = np.zeros(sum(tensor.elements for tensor in self._spec.counters), np.int64)
        at = 0
        for tensor in self._spec.counters:
            its = counted[at : at + tensor.elements].reshape(tensor.shape)
            self._tensors[tensor.name].data = torch.from_numpy(its)
            at += tensor.elements
        return counted
