"""The manifest's description of a network that another library computes. It is enough to lay out, check and average
its state."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from streamtrain.compute.input import NUMBERS, InputShape
from streamtrain.errors import UserMistake

PREFIX = "module."   # of its blocks' names
COUNTERS = f"{PREFIX}counters"
MAX_ELEMENTS, MAX_RANK = 1 << 40, 8   # of a tensor
MAX_LEAST_ROWS = 1 << 20


@dataclass(frozen=True)
class Tensor:
    name: str   # as the library has it: "encoder.0.weight"
    shape: tuple[int, ...]

    @property
    def block(self) -> str:
        return PREFIX + self.name

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def part(self) -> str:
        """The group of settings that the job's optimizer has for it, by what modules commonly call theirs."""
        if self.name.rpartition(".")[2].startswith("bias"):
            return "bias"
        return "weight" if len(self.shape) > 1 else "norm"


@dataclass(frozen=True)
class Inputs:
    """The inputs of the network: float32 [rows, width]. `columns` has the slice of each input by its name. All
    numbers together are "numbers", unless a column is called so."""

    width: int
    outputs: int   # that it gives: float32 [rows, outputs], or [rows] of one
    columns: Mapping[str, slice]

    def to_list(self) -> list[Any]:
        """Returns the inputs as plain data; `from_list` reads it."""
        return [self.width, self.outputs, [[name, part.start, part.stop] for name, part in self.columns.items()]]

    @staticmethod
    def from_list(given: object) -> Inputs:
        """Raises UserMistake where it is none."""
        match given:
            case [int(width), int(outputs), [*columns]] if width > 0 and outputs > 0:
                found = {}
                for each in columns:
                    match each:
                        case [str(name), int(first), int(end)] if 0 <= first <= end <= width:
                            found[name] = slice(first, end)
                        case _:
                            _wrong("inputs", "[name, first column, end]", each)
                return Inputs(width, outputs, found)
        _wrong("inputs", "[width, outputs, columns]", given)


@dataclass(frozen=True)
class Kept:
    """An array that an optimizer keeps for a parameter: float32, averaged as an optimizer's state is."""

    parameter: str
    key: str   # as the optimizer has it: "exp_avg"
    shape: tuple[int, ...]


@dataclass(frozen=True)
class OwnOptimizer:
    """The network's own optimizer, in the place of the job's for its parameters."""

    name: str   # of its class: "AdamW"
    kept: tuple[Kept, ...]
    steps: tuple[tuple[str, str], ...]   # parameter and key of what counts its steps

    def block(self, kept: Kept) -> str:
        return f"{self.name}.{kept.key}.{PREFIX}{kept.parameter}"

    def to_list(self) -> list[Any]:
        """Returns the optimizer as plain data; `from_list` reads it."""
        kept = [[each.parameter, each.key, list(each.shape)] for each in self.kept]
        return [self.name, kept, [list(each) for each in self.steps]]

    @staticmethod
    def from_list(given: object) -> OwnOptimizer:
        """Raises UserMistake where it is none."""
        match given:
            case [str(name), [*kept], [*steps]]:
                own = OwnOptimizer(name, tuple(map(_kept, kept)), tuple(map(_counting, steps)))
                if len({own.block(each) for each in own.kept}) == len(own.kept):
                    return own
        _wrong("optimizer", "[name, what it keeps, what counts steps]", given)


@dataclass(frozen=True)
class ModuleSpec:
    """The network: a Module makes it, and an Instance computes it."""

    name: str                        # "package.module:Net"
    inputs: Inputs
    parameters: tuple[Tensor, ...]   # float32: learned
    averages: tuple[Tensor, ...]     # float32: what steps change by themselves, or nothing does; averaged as well
    counters: tuple[Tensor, ...]     # int64: what they count by themselves; all workers' counts are added
    least_rows: int                  # a smaller batch is trained by running moments; 1: none is
    own_loss: bool = False           # it has a loss(), whose gradient stands in the place of the job's loss
    optimizer: OwnOptimizer | None = None   # of configure_optimizers()

    def to_dict(self) -> dict[str, Any]:
        """Returns the spec as plain data; `from_dict` reads it."""
        tensors = {part: [[tensor.name, list(tensor.shape)] for tensor in getattr(self, part)] for part in _TENSORS}
        own = {} if self.optimizer is None else {"optimizer": self.optimizer.to_list()}
        document = {"name": self.name, "inputs": self.inputs.to_list(), **tensors, "least_rows": self.least_rows}
        return {**document, "own_loss": self.own_loss, **own}

    @staticmethod
    def from_dict(given: object) -> ModuleSpec:
        """Raises UserMistake naming the place in the dict."""
        if not isinstance(given, Mapping) or not isinstance(given.get("name"), str):
            _wrong("", "a table with name, inputs, parameters, averages, counters and least_rows", given)
        parts = {part: tuple(_tensors(given.get(part), part)) for part in _TENSORS}
        names = [tensor.name for tensors in parts.values() for tensor in tensors]
        if not parts["parameters"] or len(set(names)) != len(names):
            _wrong("parameters", "one or more, of names that differ", names)
        least = given.get("least_rows")
        if type(least) is not int or not 1 <= least <= MAX_LEAST_ROWS:
            _wrong("least_rows", f"a whole number from 1 to {MAX_LEAST_ROWS}", least)
        own = None if given.get("optimizer") is None else OwnOptimizer.from_list(given["optimizer"])
        if own is not None and not {each.parameter for each in own.kept} <= {each.name for each in parts["parameters"]}:
            _wrong("optimizer", "what it keeps for the parameters", given["optimizer"])
        inputs, own_loss = Inputs.from_list(given.get("inputs")), given.get("own_loss")
        if not isinstance(own_loss, bool):
            _wrong("own_loss", "true or false", own_loss)
        return ModuleSpec(given["name"], inputs, **parts, least_rows=least, own_loss=own_loss, optimizer=own)


_TENSORS = ("parameters", "averages", "counters")


def _tensors(given: Any, part: str) -> list[Tensor]:
    if not isinstance(given, Sequence) or isinstance(given, str):
        _wrong(part, "a list of [name, shape]", given)
    return [_tensor(each, f"{part}[{at}]") for at, each in enumerate(given)]


def _tensor(given: Any, where: str) -> Tensor:
    match given:
        case [str(name), [*shape]] if name and _is_shape(shape):
            return Tensor(name, tuple(shape))
    _wrong(where, f"[name, shape], the shape of at most {MAX_RANK} sizes", given)


def _kept(given: Any) -> Kept:
    match given:
        case [str(parameter), str(key), [*shape]] if _is_shape(shape):
            return Kept(parameter, key, tuple(shape))
    _wrong("optimizer", "[parameter, key, shape]", given)


def _counting(given: Any) -> tuple[str, str]:
    match given:
        case [str(parameter), str(key)]:
            return parameter, key
    _wrong("optimizer", "[parameter, key]", given)


def _is_shape(given: Sequence[Any]) -> bool:
    """Returns whether it is a shape that memory may be requested for. Anybody may have written it."""
    sizes = [size for size in given if type(size) is int and size >= 0]
    return len(sizes) == len(given) <= MAX_RANK and math.prod(sizes) <= MAX_ELEMENTS


def _wrong(where: str, expected: str, got: object) -> NoReturn:
    raise UserMistake(f"model.torch{'.' if where else ''}{where}: expected {expected}, got {got!r:.200}")


def inputs_of(shape: InputShape, numbers: Sequence[str], outputs: int) -> Inputs:
    """`numbers`: the names of the columns of numbers, in the slot's order."""
    columns: dict[str, slice] = {}
    at = 0

    def take(name: str, width: int) -> None:
        nonlocal at
        columns[name] = slice(at, at + width)
        at += width

    for name in numbers:
        take(name, 1)
    together = slice(0, at)
    for category in shape.categories:
        take(category.name, category.embed)
    for block, chosen in shape.blocks.items():
        if block != NUMBERS:
            take(block, len(chosen))
    for bag in shape.bags:
        if bag.embed:
            take(bag.name, bag.embed)
    for picture in shape.pixels:
        take(picture.block, picture.size)
    for spec in shape.stateful:
        take(spec.name, spec.embed or 1)
    return Inputs(shape.width, outputs, {NUMBERS: together, **columns})
