"""Batch normalisation of a PyTorch module, in batches too small for a mean and variance of their own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LEAST_ROWS = 32


def running_norms(module: Any) -> list[Any]:
    """Returns the batch norm layers whose running mean and variance a training step updates. Leaves the module in
    training mode."""
    from torch.nn.modules.batchnorm import _BatchNorm

    module.train()
    return [
        part
        for part in module.modules()
        if isinstance(part, _BatchNorm) and part.training and part.running_mean is not None
    ]


class BatchNorms:
    """The batch norm layers of one module.

    A small batch is normalised by the running mean and variance. Then it updates them, with a momentum as much smaller
    as it has fewer rows: streams begin with one row, which says little about a mean. See native/kernels/batch_norm.h.
    """

    def __init__(self, module: Any) -> None:
        self._norms = running_norms(module)
        self._share = 0.0  # of the rows that a batch needs; 0: nothing is gathered
        self._moves: list[tuple[Any, float, Any, Any]] = []  # norm, part of the way, mean, variance
        for norm in self._norms:
            norm.register_forward_hook(self._see, with_kwargs=True)

    def __len__(self) -> int:
        return len(self._norms)

    @contextmanager
    def gathering(self, share: float) -> Iterator[None]:
        """A context for one training pass over a batch. `share`: its rows / those that it needs."""
        self._moves.clear()
        small = share < 1
        self._share = share if small else 0.0
        for norm in self._norms:
            norm.training = not small
        try:
            yield
        finally:
            self._share = 0.0

    def _see(self, norm: Any, args: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        if not self._share:
            return
        import torch

        x = (args[0] if args else named["input"]).detach()
        variance, mean = torch.var_mean(x, [axis for axis in range(x.ndim) if axis != 1], correction=0)
        if norm.num_batches_tracked is not None:
            norm.num_batches_tracked.add_(1)
        if norm.momentum is None:  # the running moments are the means over all batches
            part = min(self._share, 1 / int(norm.num_batches_tracked))
        else:
            part = self._share * norm.momentum
        self._moves.append((norm, part, mean, variance))

    def move(self) -> bool:
        """Updates the running mean and variance after the backward pass, which reads them; returns False if they are
        not finite."""
        for norm, part, mean, variance in self._moves:
            apart = mean - norm.running_mean
            norm.running_mean.add_(apart, alpha=part)
            norm.running_var.lerp_(variance.add_(apart.square_(), alpha=1 - part), part)
        self._moves.clear()
        return math.isfinite(sum(float((norm.running_mean + norm.running_var).sum()) for norm in self._norms))
