"""The source of a PyTorch module: what a job file names, or what a program gives."""

from __future__ import annotations

import copy
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, Self

from streamtrain.compute.module_spec import Inputs, ModuleSpec, Tensor
from streamtrain.compute.spec import Array
from streamtrain.compute.torch.handed import packed, unpacked
from streamtrain.compute.torch.instance import WHERE, TorchInstance, raised, tensors_of
from streamtrain.errors import UserMistake

_COUNTED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)

FOLDED = "_streamtrain_folded"   # of a module: name of the bias that the label's prior was added to, and what was


def in_process_of_its_own() -> None:
    """For a process that is ours alone: one thread and algorithms that give the same bits in every run."""
    torch = _torch()
    torch.set_num_threads(1)
    torch.set_deterministic_debug_mode("error")   # use_deterministic_algorithms() imports a compiler, for seconds


class TorchModule:
    """A `Module`, made when it is first needed."""

    def __init__(self, name: str, folder: str | None = None, module: Any = None) -> None:
        """`name`: "package.module:Net", looked for in `folder` first; Net is a module's class or a function that makes
        one, and is called with the Inputs where it has an argument without a default. `made`: a torch.nn.Module or what
        makes one, in the place of what the name says."""
        self.name, self._folder, self._module = name, folder, module
        self._template: tuple[ModuleSpec, Any] | None = None

    @classmethod
    def of(cls, module: Any) -> Self:
        """Builds the source of a torch.nn.Module, of what makes one, or of the text that names it. A source is
        returned as it is."""
        if isinstance(module, cls):
            return module
        if isinstance(module, str):
            return cls(module)
        named = module if hasattr(module, "__qualname__") else type(module)
        return cls(f"{named.__module__}:{named.__qualname__}", module=module)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Builds a source from a to_dict() dict, in another process of the program, which then finds modules where the
        program does."""
        sys.path.extend(folder for folder in data["path"] if folder not in sys.path)
        return cls(data["name"], data["folder"], None if data["made"] is None else unpacked(data["made"]))

    def to_dict(self) -> dict[str, Any]:
        """For the program's own processes, and nobody else: as JSON can hold it."""
        module = None if self._module is None else packed(self._module)
        path = [os.path.abspath(folder) for folder in sys.path]
        return {"name": self.name, "folder": self._folder, "path": path, "made": module}

    def start(self, spec: ModuleSpec, seed: int) -> Mapping[str, Array]:
        """Returns what its own initialisers give after torch.manual_seed(seed). A module that was given returns what
        it holds."""
        module = self.fresh(spec.inputs, seed)
        self._check(spec, module)
        return {name: tensor.detach().numpy() for name, tensor in tensors_of(module).items()}

    def instance(self, spec: ModuleSpec, x_learns: bool) -> TorchInstance:
        if self._template is None or self._template[0] != spec:
            module = self.fresh(spec.inputs, 0)
            self._check(spec, module)
            self._template = spec, module
        return TorchInstance(copy.deepcopy(self._template[1]), spec, x_learns)

    def fresh(self, inputs: Inputs, seed: int) -> Any:
        """A torch.nn.Module, the caller's own. UserMistake where none can be had."""
        torch = _torch()
        make = self._module if self._module is not None else _found(self.name, self._folder)
        if isinstance(make, torch.nn.Module):
            return _unfolded(copy.deepcopy(make))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            module = _called(make, self.name, inputs)
            if not isinstance(module, torch.nn.Module):
                raise UserMistake(f"{WHERE}: {self.name}: expected a torch.nn.Module, got {type(module).__name__}")
            if any(torch.nn.parameter.is_lazy(tensor) for tensor in tensors_of(module).values()):
                self._see_inputs(module, inputs)
        return module

    def _see_inputs(self, module: Any, inputs: Inputs) -> None:
        """Runs a batch of zeros through the module, so that whatever it creates on its first batch exists."""
        import torch

        try:
            with torch.no_grad():
                module(torch.zeros(2, inputs.width))
        except Exception as error:
            raise raised(self.name, f"when called with float32 [2, {inputs.width}]", error) from error

    def _check(self, spec: ModuleSpec, module: Any) -> None:
        """Checks that the module's tensors are those of the spec. Raises UserMistake if not."""
        has = {name: tuple(tensor.shape) for name, tensor in tensors_of(module).items()}
        wrong = [
            f"{_describe_tensor(tensor.name, tensor.shape)}, got {_describe_tensor(tensor.name, has.get(tensor.name))}"
            for tensor in tensors_in(spec)
            if has.get(tensor.name) != tensor.shape
        ]
        names = {tensor.name for tensor in tensors_in(spec)}
        wrong += [f"no parameter {name}" for name, _ in module.named_parameters() if name not in names]
        if wrong:
            raise UserMistake(f"{WHERE}: {self.name}: expected {'; '.join(wrong[:5])}: it is not the snapshot's module")


def _unfolded(module: Any) -> Any:
    """The module without the offset that load_snapshot() has put into its output's bias: the loss adds its own."""
    if folded := getattr(module, FOLDED, None):
        name, added = folded
        bias = tensors_of(module)[name]
        bias.data.sub_(added.view(bias.shape))
        setattr(module, FOLDED, None)
    return module


def tensors_in(spec: ModuleSpec) -> tuple[Tensor, ...]:
    """All that is in the state."""
    return (*spec.parameters, *spec.averages, *spec.counters)


def _describe_tensor(name: str, shape: tuple[int, ...] | None) -> str:
    return "none" if shape is None else f"{name} {list(shape)}"


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise UserMistake(
            f"{WHERE}: PyTorch cannot be imported ({error}); install it, as the extra does: pip install "
            "'streamtrain[torch]'"
        ) from None
    return torch


def _found(name: str, folder: str | None) -> Any:
    """Returns the object that "package.module:Net" names."""
    path, colon, attribute = name.partition(":")
    if not colon or not path or not attribute:
        raise UserMistake(f'{WHERE}: expected "package.module:Net", got {name!r}')
    if folder is not None and folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found: Any = importlib.import_module(path)
        for part in attribute.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        where = f" (looked for in {folder} too)" if folder is not None and error.name == path.partition(".")[0] else ""
        raise UserMistake(f"{WHERE}: {name}: {error}{where}") from None
    except AttributeError as error:
        raise UserMistake(f"{WHERE}: {name}: {error}") from None
    except Exception as error:  # whatever somebody's code does when it is imported
        raise raised(name, f"when {path} was imported", error) from error
    return found


def _called(make: Callable[..., Any], name: str, inputs: Inputs) -> Any:
    if not callable(make):
        raise UserMistake(f"{WHERE}: {name}: expected a class or a function, got {type(make).__name__}")
    try:
        parameters = inspect.signature(make).parameters.values()
        required = [each for each in parameters if each.default is each.empty and each.kind in _COUNTED]
        return make(inputs) if required else make()
    except Exception as error:
        raise raised(name, "when made", error) from error
