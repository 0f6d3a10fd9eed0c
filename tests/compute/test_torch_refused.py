"""What would break a guarantee is refused, of a PyTorch module and of what a manifest says of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from streamtrain.compute.model_spec import ModelSpec
from streamtrain.compute.module_spec import Inputs, ModuleSpec
from streamtrain.compute.torch import TorchModule, described
from streamtrain.errors import UserMistake

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
nn = torch.nn


class Line(nn.Module):
    def __init__(self, inputs: Inputs) -> None:
        super().__init__()
        self.layer = nn.Linear(inputs.width, 1)

    def forward(self, x: Any) -> Any:
        return self.layer(x)


class Hidden(nn.Module):
    """Keeps what it has learned where nobody sees it."""

    def __init__(self, inputs: Inputs) -> None:
        super().__init__()
        self.layer, self.seen = nn.Linear(inputs.width, 1), 0.0

    def forward(self, x: Any) -> Any:
        self.seen += 0.5
        return self.layer(x) + self.seen


class Replacing(nn.Module):
    def __init__(self, inputs: Inputs) -> None:
        super().__init__()
        self.layer = nn.Linear(inputs.width, 1)
        self.register_buffer("mean", torch.zeros(1))

    def forward(self, x: Any) -> Any:
        self.mean = self.mean + 1
        return self.layer(x)


class Flag(Replacing):
    def __init__(self, inputs: Inputs) -> None:
        super().__init__(inputs)
        self.register_buffer("mean", torch.zeros(1, dtype=torch.float64))

    def forward(self, x: Any) -> Any:
        self.mean += 1
        return self.layer(x)


class Raising(nn.Module):
    def __init__(self, inputs: Inputs) -> None:
        super().__init__()
        self.layer = nn.Linear(inputs.width + 1, 1)

    def forward(self, x: Any) -> Any:
        return self.layer(x)


def unable(inputs: Inputs) -> Any:
    raise ValueError("no such width")


class Closing(Line):
    def configure_optimizers(self) -> Any:
        return torch.optim.LBFGS(self.parameters())


class Unable(Line):
    def configure_optimizers(self) -> Any:
        return [], []


class Astray(Line):
    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(Line(Inputs(5, 1, {})).parameters(), lr=0.1)


class Summing(Line):
    def loss(self, outputs: Any, labels: Any) -> Any:
        return (outputs - labels).square().sum()


REFUSED: Mapping[str, tuple[Any, str]] = {
    "no module": (lambda: 3, "expected a torch.nn.Module, got int"),
    "raises": (unable, "when made it raised ValueError: no such width"),
    "shape": (Raising, r"when called with float32 \[3, 5\] it raised RuntimeError: .*mat1"),
    "outputs": (lambda inputs: nn.Linear(inputs.width, 2), r"the outputs float32 \[3, 1\], .*, got float32 \[3, 2\]"),
    "type of outputs": (lambda inputs: nn.Sequential(nn.LSTM(inputs.width, 1)), "got a tuple"),
    "double": (lambda inputs: nn.Linear(inputs.width, 1).double(), "torch.float32 on the CPU, got weight is"),
    "no parameters": (lambda: nn.Identity(), "on the CPU, got none"),
    "nothing learns": (lambda inputs: nn.Linear(inputs.width, 1).requires_grad_(False), "no parameter that learns"),
    "hidden": (Hidden, "two that began alike ended otherwise"),
    "replaces": (Replacing, "change its tensors in place .*, got another tensor as mean"),
    "other type": (Flag, r"as float32 \(averaged\) or int64 \(counted\), got mean of float64"),
    "large table": (lambda: nn.Embedding(1 << 18, 65), "of at most 64 MiB with dense gradients, got 65 MiB"),
    "sparse table": (lambda: nn.Embedding(8, 2, sparse=True), "got sparse=True"),
    "needs a closure": (Closing, "configure_optimizers.*closure"),
    "no optimizer": (Unable, "expected a torch.optim.Optimizer, got tuple"),
    "others' optimizer": (Astray, "expected an optimizer of the module's own parameters, got 2 that are not"),
    "one loss": (Summing, r"in its loss\(\) on 3 rows it raised .*expected the loss of each row, \[3\], got \[\]"),
    "no name": ("nets", 'expected "package.module:Net", got \'nets\''),
    "no package": ("no_such_package.nets:Net", "No module named 'no_such_package'"),
    "no class": ("math:Net", "has no attribute 'Net'"),
    "no function": ("math:pi", "expected a class or a function, got float"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_break_a_guarantee_is_refused(name: str) -> None:
    make, message = REFUSED[name]
    with pytest.raises(UserMistake, match=message):
        described(TorchModule.of(make), Inputs(5, 1, {}), "f32")


@pytest.mark.parametrize("told", [
    None, {"name": 3}, {"name": "a:b", "inputs": [0, 1, []]}, {"name": "a:b", "inputs": [3, 1, [["a", 2, 5]]]},
    {"parameters": []}, {"parameters": [["w", [2]], ["w", [2]]]}, {"parameters": [["w", [1 << 41]]]},
    {"parameters": [["w", [-1]]]}, {"counters": 7}, {"least_rows": 3},
    {"own_loss": 1}, {"optimizer": ["a"]}, {"optimizer": ["a", [["x", "m", [2]]], []]}, {"optimizer": ["a", [], [3]]},
    {"optimizer": ["a", [["w", "m", [2]]] * 2, []]},
])  # fmt: skip
def test_what_a_manifest_says_is_checked(told: Any) -> None:
    right = ModuleSpec("a:b", Inputs(3, 1, {"a": slice(0, 3)}), (), (), (), 1).to_dict() | {"parameters": [["w", [2]]]}
    assert ModuleSpec.from_dict(right).to_dict() == right
    with pytest.raises(UserMistake, match=r"model\.torch"):
        ModuleSpec.from_dict(told if told is None else {**right, **told})


def test_the_norm_of_what_leads_to_an_output_is_a_modules_own_affair() -> None:
    torch_spec = ModuleSpec("a:b", Inputs(3, 1, {"a": slice(0, 3)}), (), (), (), 1).to_dict()
    spec = {"input": {"numbers": 3}, "loss": "binary_cross_entropy", "optimizer": {"name": "adam", "max_norm": 1.0},
            "torch": torch_spec | {"parameters": [["w", [2]]]}}  # fmt: skip
    with pytest.raises(UserMistake, match=r"model.optimizer.max_norm: expected 0 for a PyTorch module, .*got 1"):
        ModelSpec.from_dict(spec)
