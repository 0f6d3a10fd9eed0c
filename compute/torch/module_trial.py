"""A check of a PyTorch module by trying it: a step is trained twice from the same start, on memory of its own.

What would break a guarantee later is refused here: a module that keeps what it learns elsewhere would neither be
averaged nor published nor replayed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.compute.module_spec import MAX_LEAST_ROWS, Inputs, ModuleSpec, Tensor
from streamtrain.compute.spec import DTYPES, Array
from streamtrain.compute.torch.batch_norms import LEAST_ROWS, running_norms
from streamtrain.compute.torch.instance import WHERE, TorchInstance, raised, tensors_of
from streamtrain.compute.torch.module_source import TorchModule, tensors_in
from streamtrain.compute.torch.own import optimizer_of
from streamtrain.errors import UserMistake

EMBEDDING_BYTES = 64 << 20   # of a table, of which every row is updated, averaged and published every time
_ROWS = 3
_SEED = 20261124


def described(source: TorchModule, inputs: Inputs, label_dtype: str) -> ModuleSpec:
    """Returns the manifest's description of the module. `label_dtype`: of the labels its own loss gets, if it has
    one. Raises UserMistake with what was expected where it cannot be trained."""
    module = source.fresh(inputs, 0)
    _check_tables(source.name, module)
    spec = _spec(source.name, inputs, module)
    with _deterministic():
        _check_outputs(source.name, inputs, module)
        spec = replace(spec, optimizer=optimizer_of(source.name, source.fresh(inputs, 0)))
        trial = _Trial(source, spec, label_dtype)
        first, second = trial.trained(_ROWS), trial.trained(_ROWS)
        if any(not np.array_equal(first[what], second[what], equal_nan=True) for what in first):
            raise UserMistake(
                f"{WHERE}: {source.name}: expected a step that depends on its parameters, its buffers, its inputs and "
                "torch.manual_seed alone; two that began alike ended otherwise: it keeps something in an attribute "
                "that is no buffer (see register_buffer), or draws numbers from elsewhere"
            )
        return replace(spec, least_rows=_least_rows(source, spec, label_dtype))


def _spec(name: str, inputs: Inputs, module: Any) -> ModuleSpec:
    import torch

    parameters = dict(module.named_parameters())
    wrong = [f"{key} is {tensor.dtype} on {tensor.device}" for key, tensor in parameters.items()
             if tensor.dtype != torch.float32 or tensor.device.type != "cpu"]
    if wrong or not parameters:
        got = ", ".join(wrong[:5]) if wrong else "none"
        raise UserMistake(f"{WHERE}: {name}: expected parameters of torch.float32 on the CPU, got {got}")
    parts: dict[Any, list[Tensor]] = {torch.float32: [], torch.int64: []}
    for key, tensor in module.named_buffers():
        parts.get(tensor.dtype, []).append(Tensor(key, tuple(tensor.shape)))   # of other types: constants
    learned, frozen = (
        tuple(Tensor(key, tuple(each.shape)) for key, each in parameters.items() if each.requires_grad is learns)
        for learns in (True, False)
    )
    averages, counters = (*frozen, *parts[torch.float32]), tuple(parts[torch.int64])
    return ModuleSpec(name, inputs, learned, averages, counters, 1, own_loss=hasattr(module, "loss"))


def _check_tables(name: str, module: Any) -> None:
    import torch

    for key, part in module.named_modules():
        if not isinstance(part, torch.nn.Embedding | torch.nn.EmbeddingBag):
            continue
        size = part.weight.numel() * part.weight.element_size()
        if part.sparse or size > EMBEDDING_BYTES:
            got = "sparse=True" if part.sparse else f"{size / 2**20:,.0f} MiB"
            raise UserMistake(
                f"{WHERE}: {name}: {key or 'it'}: expected an embedding of at most {EMBEDDING_BYTES >> 20} MiB with "
                f"dense gradients, got {got}: every row of it is updated, averaged and published each time; make the "
                'column kind = "category" with embed, whose table takes the rows a batch has and is seen in x'
            )


def _check_outputs(name: str, inputs: Inputs, module: Any) -> None:
    import torch

    shape = [_ROWS, inputs.outputs]
    with torch.random.fork_rng(devices=[]):
        try:
            y = module.train()(_batch(inputs, _ROWS))
        except Exception as error:
            raise raised(name, f"when called with float32 [{_ROWS}, {inputs.width}]", error) from error
    if not isinstance(y, torch.Tensor):
        got = f"a {type(y).__name__}"
    elif list(y.shape) not in (shape, shape[:1] if shape[1] == 1 else shape) or y.dtype != torch.float32:
        got = f"{str(y.dtype).removeprefix('torch.')} {list(y.shape)}"
    elif not y.requires_grad:
        got = "outputs that depend on no parameter that learns"
    else:
        return
    raise UserMistake(
        f"{WHERE}: {name}: expected of float32 [{_ROWS}, {inputs.width}] the outputs float32 {shape}, before the "
        f"loss's own function, got {got}"
    )


def _batch(inputs: Inputs, rows: int) -> Any:
    import torch

    return torch.from_numpy(np.random.default_rng(_SEED).standard_normal((rows, inputs.width), np.float32))


def _least_rows(source: TorchModule, spec: ModuleSpec, label_dtype: str) -> int:
    """Returns the module's attribute `least_rows`. Without it: LEAST_ROWS if it has batch norm layers, 2 if it cannot
    be trained on a single row, else 1."""
    module = source.fresh(spec.inputs, 0)
    least = getattr(module, "least_rows", LEAST_ROWS if running_norms(module) else None)
    if least is None:
        try:
            _Trial(source, spec, label_dtype).trained(1)
            return 1
        except UserMistake:
            least = 2
    if type(least) is not int or not 1 <= least <= MAX_LEAST_ROWS:
        raise UserMistake(
            f"{WHERE}: {source.name}: expected least_rows, the rows from which a batch is normalised by moments of its "
            f"own, a whole number from 1 to {MAX_LEAST_ROWS}, got {least!r}"
        )
    _Trial(source, replace(spec, least_rows=least), label_dtype).trained(1)
    return least


class _Trial:
    """Steps of one module over memory of its own, each from the same start."""

    def __init__(self, source: TorchModule, spec: ModuleSpec, label_dtype: str) -> None:
        self._name, self._spec = source.name, spec
        self._module = source.fresh(spec.inputs, 0)
        own = {name: tensor.detach().numpy().copy() for name, tensor in tensors_of(self._module).items()}
        tensors = (*spec.parameters, *spec.averages)
        self._start = {tensor.name: own[tensor.name] for tensor in tensors}
        self._state = {tensor.name: np.zeros(tensor.shape, np.float32) for tensor in tensors}
        self._instance = TorchInstance(self._module, spec, x_learns=True)
        self._labels = DTYPES[label_dtype]
        kept = () if spec.optimizer is None else spec.optimizer.kept
        self._kept: list[Array] = [np.zeros(each.shape, np.float32) for each in kept]

    def trained(self, rows: int) -> dict[str, Array]:
        """Runs one step and returns its results: outputs, gradients, buffers."""
        import torch

        spec, inputs, step = self._spec, self._spec.inputs, _native.StepBlock()
        step.random, step.number, step.weight_sum = _SEED, 1, rows
        for name, start in self._start.items():
            self._state[name][...] = start
        x, z = _batch(inputs, rows).numpy(), np.zeros((rows, inputs.outputs), np.float32)
        counts = sum(tensor.elements for tensor in spec.counters)
        base, share = np.zeros(counts, np.int64), np.zeros(counts, np.int64)
        flat = np.zeros(sum(tensor.elements for tensor in spec.parameters), np.float32)
        dx, gradients = np.zeros_like(x), dict(_split(flat, spec.parameters))
        counters = (base, share) if counts else ()
        labels: Array = np.zeros((rows, 1), self._labels)
        dz, weights = np.ones_like(z), np.ones((rows, 1), np.float32)
        calls = [
            self._instance.forward(step, x, z, *counters, *self._state.values()),
            *([self._instance.loss(z, dz, lambda slot: labels, lambda slot: weights)] if spec.own_loss else []),
            self._instance.backward(dz, flat, dx, *gradients.values()),
            *([self._instance.update(step, *self._kept)] if spec.optimizer else []),
        ]
        addresses = {name: tensor.data_ptr() for name, tensor in tensors_of(self._module).items()}
        constants = {name: tensors_of(self._module)[name].clone() for name in self._constants()}
        with torch.random.fork_rng(devices=[]):
            for call in calls:
                call(rows, 0)
        self._check_in_place(addresses, constants)
        state = {name: array.copy() for name, array in self._state.items()}
        kept = {f"kept {at}": array.copy() for at, array in enumerate(self._kept)}
        return {"outputs": z, "gradient of x": dx, "gradients": flat, "counters": share, **state, **kept}

    def _constants(self) -> set[str]:
        return set(tensors_of(self._module)) - {tensor.name for tensor in tensors_in(self._spec)}

    def _check_in_place(self, addresses: dict[str, int], constants: dict[str, Any]) -> None:
        """Everything is where it was, and what no round averages is what it was."""
        now = tensors_of(self._module)
        moved = [name for name in addresses if name not in now or now[name].data_ptr() != addresses[name]]
        new = [name for name in now if name not in addresses]
        if moved or new:
            raise UserMistake(
                f"{WHERE}: {self._name}: expected a step to change its tensors in place (copy_, add_, …), got "
                f"another tensor as {', '.join((moved + new)[:5])}"
            )
        for name, before in constants.items():
            if not bool((now[name] == before).all()):
                raise UserMistake(
                    f"{WHERE}: {self._name}: expected buffers that steps change as float32 (averaged) or int64 "
                    f"(counted), got {name} of {str(before.dtype).removeprefix('torch.')}"
                )


def _split(flat: Array, tensors: tuple[Tensor, ...]) -> Iterator[tuple[str, Array]]:
    at = 0
    for tensor in tensors:
        yield tensor.name, flat[at : at + tensor.elements].reshape(tensor.shape)
        at += tensor.elements


@contextmanager
def _deterministic() -> Iterator[None]:
    """Makes PyTorch deterministic, as in training. PyTorch refuses, by name, an algorithm that has no such form."""
    import torch

    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("error")
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)
