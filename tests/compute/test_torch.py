"""A PyTorch module in a plan: trained as in PyTorch, over the state's own memory, and refused where it cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain.compute import backends, losses
from streamtrain.compute.model import Model
from streamtrain.compute.model_spec import ModelSpec, input_shape
from streamtrain.compute.module_spec import COUNTERS, Inputs, ModuleSpec, inputs_of
from streamtrain.compute.torch import TorchModule, described
from streamtrain.errors import UserMistake
from tests.compute.conftest import Rig, spec_of

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
nn = torch.nn


def two_layers(inputs: Inputs) -> Any:
    return nn.Sequential(nn.Linear(inputs.width, 8), nn.ReLU(), nn.Linear(8, inputs.outputs))


def with_moments(inputs: Inputs) -> Any:
    return nn.Sequential(nn.Linear(inputs.width, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, inputs.outputs))


def with_dropout(inputs: Inputs) -> Any:
    return nn.Sequential(
        nn.Linear(inputs.width, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, inputs.outputs)
    )


def spec_with(make: Any, **given: Any) -> tuple[dict[str, Any], TorchModule]:
    model_spec, source = spec_of(**given), TorchModule.of(make)
    shape, loss = input_shape(model_spec), given.get("loss", "binary_cross_entropy")
    numbers = [f"n{at}" for at in range(shape.numbers)]
    inputs = inputs_of(shape, numbers, losses.get(loss).outputs(shape))
    label_dtype = losses.label_dtype(losses.label_kind(loss))
    return {**model_spec, "torch": described(source, inputs, label_dtype).to_dict()}, source


def rig_with(make: Any, rows: int = 50, capacity: int = 64, **given: Any) -> Rig:
    model_spec, source = spec_with(make, **given)
    return Rig(model_spec, rows, capacity, network=source)


@pytest.mark.parametrize("loss", losses.names())
@pytest.mark.parametrize("backend", [*(name for name in backends.names() if backends.get(name).CALLS_OUT), "reference"])
def test_it_learns_as_the_same_layers_of_ours(loss: str, backend: str) -> None:
    """The start is the same; so are outputs, gradients of parameters and of embeddings below, and the optimizer."""
    layers = [{"dense": 8, "activation": "relu"}]
    given = {"loss": loss, "numbers": 5, "standardize": True, "categories": 2}
    theirs, ours = rig_with(two_layers, **given), Rig(spec_of(layers=layers, **given))
    mine, its = ours.model.views(ours.state), theirs.model.views(theirs.state)
    for name, module in (("dense0", "module.0"), ("output", "module.2")):
        mine[f"{name}.weight"][...] = its[f"{module}.weight"].T
        mine[f"{name}.bias"][...] = its[f"{module}.bias"]
    for table in ("c0.embedding", "c1.embedding"):
        mine[table][...] = its[table]
    plans = [each.plan(backend) for each in (ours, theirs)]
    for _ in range(10):
        found = [each.step(plan) for each, plan in zip((ours, theirs), plans, strict=True)]
        assert found[0] == pytest.approx(found[1], rel=1e-4)
    assert np.allclose(mine["dense0.weight"], its["module.0.weight"].T, rtol=1e-3, atol=1e-5)
    assert np.allclose(mine["c1.embedding"], its["c1.embedding"], rtol=1e-3, atol=1e-5)
    for each, plan in zip((ours, theirs), plans, strict=True):
        plan.predict(each.address)
    assert np.allclose(plans[0].output()[:50], plans[1].output()[:50], rtol=1e-3, atol=1e-5)


def test_averages_and_counters_are_the_states() -> None:
    rigged = rig_with(with_moments)
    views = rigged.model.views(rigged.state)
    assert views["module.1.running_var"].tolist() == [1.0] * 8 and views[COUNTERS].tolist() == [0]
    plan = rigged.train()
    assert abs(views["module.1.running_mean"]).min() > 0
    block = next(block for block in rigged.model.blocks if block.name == COUNTERS)
    assert rigged.share[block.part_offset : block.part_offset + 8].view(np.int64).tolist() == [3]
    before = rigged.state.copy()
    plan.predict(rigged.address)
    assert np.array_equal(before, rigged.state)


@pytest.mark.parametrize("rows", [1, 9, 31, 32])
def test_a_batch_too_small_for_moments_takes_the_running_ones_and_moves_them(rows: int) -> None:
    """Expects what our own layer does.

    A stream's first batches have few rows. By the mean and variance of these it learned next to nothing.
    """
    layers = [{"dense": 8}, {"batch_norm": 1e-5, "activation": "relu"}]
    given = {"optimizer": "sgd"}   # adam learns by the sign of noise where a gradient is 0, as below a norm
    theirs, ours = rig_with(with_moments, rows=rows, **given), Rig(spec_of(layers=layers, **given), rows=rows)
    mine, its = ours.model.views(ours.state), theirs.model.views(theirs.state)
    for name, module in (("dense0", "module.0"), ("output", "module.3")):
        mine[f"{name}.weight"][...], mine[f"{name}.bias"][...] = its[f"{module}.weight"].T, its[f"{module}.bias"]
    mine["batch_norm0.shift"][...] = its["module.1.bias"]
    plans = [each.plan() for each in (ours, theirs)]
    for _ in range(5):
        for each in (ours, theirs):
            each.blocks["weight"][:rows] = 1
        plans[1].predict(theirs.address)
        p, label = plans[1].output()[:rows].astype(np.float64), theirs.blocks["label"][:rows]
        expected_loss = -np.log(np.where(label, p, 1 - p)).mean()
        assert theirs.step(plans[1]) == pytest.approx(expected_loss, rel=1e-4)
        assert (abs(ours.step(plans[0]) - expected_loss) < 1e-4) == (rows < 32)
    for name, module in (("mean", "mean"), ("variance", "var")):
        assert np.allclose(mine[f"batch_norm0.running_{name}"], its[f"module.1.running_{module}"], rtol=1e-4, atol=1e-6)
    assert np.allclose(mine["dense0.weight"], its["module.0.weight"].T, rtol=1e-3, atol=1e-5)
    assert abs(its["module.1.running_mean"]).min() > 0


@over("loss", losses.names())
def test_its_gradient_is_that_of_the_training_pass(loss: str) -> None:
    """Scores are of another pass; what bags add to the outputs goes into both."""
    layers = [{"dense": 8}, {"batch_norm": 1e-5, "activation": "relu"}]
    given = {"loss": loss, "optimizer": "sgd", "bags": range(3), "categories": 1, "standardize": True}
    if loss == "softmax_cross_entropy":
        given["settings"] = {"class_weights": [0.5, 2.0, 1.0], "label_smoothing": 0.1}
    sizes = 300, 512   # in tiles
    theirs, ours = rig_with(with_moments, *sizes, **given), Rig(spec_of(layers=layers, **given), *sizes)
    mine, its = ours.model.views(ours.state), theirs.model.views(theirs.state)
    names = {"dense0.weight": "0.weight", "dense0.bias": "0.bias", "batch_norm0.shift": "1.bias",
             "output.weight": "3.weight", "output.bias": "3.bias"}  # fmt: skip
    for name, view in mine.items():
        view[...] = its[f"module.{names[name]}"].T if name in names else its.get(name, view)
    for each in (ours, theirs):
        each.blocks["weight"][: each.rows] = 1
        each.train(4)
    for name in (*names, "c0.embedding", "tags.embedding", "wide.embedding"):
        assert np.allclose(mine[name], its[f"module.{names[name]}"].T if name in names else its[name], 1e-3, 1e-5), name


@over("rows", [9, 50])
def test_running_moments_that_are_not_finite_are_reported(rows: int) -> None:
    """Checks a value whose square overflows float32, while the loss stays finite. No snapshot may have it."""
    rigged = rig_with(with_moments, rows=rows)
    rigged.blocks["weight"][:rows] = 1
    rigged.blocks["numbers"][3] = 1e25
    plan = rigged.plan()
    assert np.isfinite(rigged.step(plan, learning_rate=0.0)) and plan.step.not_finite == 1


def test_a_module_says_from_how_many_rows_its_batches_have_moments() -> None:
    """Finds by trial whether a module needs a batch's own mean and variance, or keeps fixed ones."""

    def read_least_rows(module: Any) -> int:
        return described(TorchModule.of(module), Inputs(3, 1, {}), "f32").least_rows

    norm, frozen = (nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)) for _ in range(2))
    frozen[1].train = lambda mode=True: frozen[1]   # type: ignore[method-assign,assignment]
    frozen[1].training = False
    assert (read_least_rows(norm), read_least_rows(frozen), read_least_rows(two_layers)) == (32, 1, 1)
    norm.least_rows = 8
    assert read_least_rows(norm) == 8
    norm.least_rows = 0
    with pytest.raises(UserMistake, match=r"expected least_rows, .* a whole number from 1 to 1048576, got 0"):
        read_least_rows(norm)


@over("rows", [9, 50])
def test_random_numbers_go_by_the_step(rows: int) -> None:
    """Batches that are too small for moments have dropout too."""

    def learned_with(random: int) -> bytes:
        rigged = rig_with(with_dropout, rows=rows)
        plan = rigged.plan()
        plan.step.random = random
        rigged.step(plan)
        return rigged.model.views(rigged.state)["module.0.weight"].tobytes()

    assert learned_with(7) == learned_with(7) != learned_with(8)
    assert learned_with(2**64 - 1) != learned_with(2**63)


def test_it_starts_as_it_is_made() -> None:
    model_spec, source = spec_with(two_layers)
    model = Model(model_spec, source)
    one, other = (model.views(model.initial_state(seed))["module.0.weight"].copy() for seed in (1, 2))
    assert np.array_equal(one, model.views(model.initial_state(1))["module.0.weight"])
    assert not np.array_equal(one, other)
    torch.manual_seed(1)
    shape = ModuleSpec.from_dict(model_spec["torch"]).inputs
    assert np.array_equal(one, two_layers(shape)[0].weight.detach().numpy())
    module = two_layers(shape)
    model_spec, source = spec_with(module)
    model = Model(model_spec, source)
    start = model.views(model.initial_state(5))["module.0.weight"]
    assert np.array_equal(start, module[0].weight.detach().numpy())
    start[...] = 7
    assert not (module[0].weight == 7).any()


LOSSES = {   # by the kind of a label: a loss of ours, and the same in PyTorch
    "binary": ("binary_cross_entropy",
               lambda z, y: nn.functional.binary_cross_entropy_with_logits(z, y, reduction="none")),
    "class": ("softmax_cross_entropy", lambda z, y: nn.functional.cross_entropy(z, y, reduction="none")),
    "number": ("mean_squared_error", lambda z, y: (z - y).square() / 2),
}


@pytest.mark.parametrize(("loss", "same"), LOSSES.values(), ids=LOSSES)
def test_its_own_loss_has_the_gradient(loss: str, same: Any) -> None:
    """The same function in PyTorch as ours gives the same parameters, another others; scores stay the job's."""

    def alike(inputs: Inputs) -> Any:
        module = two_layers(inputs)
        module.loss = same
        return module

    def other(inputs: Inputs) -> Any:
        module = two_layers(inputs)
        module.loss = lambda z, y: same(z, y) * 3 + z.reshape(len(y), -1).square().sum(1)
        return module

    trained = []
    for make in (two_layers, alike, other):
        rigged = rig_with(make, loss=loss)
        plan = rigged.plan()
        scores = [rigged.step(plan) for _ in range(3)]
        trained.append((scores[0], rigged.model.views(rigged.state)["module.0.weight"].copy()))
    ours, own, others = trained
    assert ours[0] == own[0] == others[0]
    assert np.allclose(ours[1], own[1], atol=2e-6) and not np.allclose(ours[1], others[1], atol=1e-4)


class Configured(nn.Module):
    """With an optimizer of its own."""

    make: Any = None

    def __init__(self, inputs: Inputs) -> None:
        super().__init__()
        self.layers = two_layers(inputs)

    def forward(self, x: Any) -> Any:
        return self.layers(x)

    def configure_optimizers(self) -> Any:
        return type(self).make(self.parameters())


def configured(make: Any) -> Any:
    return type("Configured", (Configured,), {"make": staticmethod(make), "__module__": __name__})


OPTIMIZERS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, amsgrad=True),
    "NAdam": lambda parameters: torch.optim.NAdam(parameters, lr=0.01),
    "Adagrad": lambda parameters: torch.optim.Adagrad(parameters, lr=0.1, initial_accumulator_value=0.5),
    "Rprop": lambda parameters: torch.optim.Rprop(parameters, lr=0.01),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_its_own_optimizer_is_pytorchs_from_any_step_on(name: str) -> None:
    """A plan that goes on from the state of another, as after a worker's death, gives the same bits as one that ran
    through; both those of a plain loop."""
    whole, halves = (rig_with(configured(OPTIMIZERS[name]), categories=1) for _ in range(2))
    assert whole.model.parsed.module.optimizer.name == name
    whole.train(8)
    for _ in range(2):
        halves.train(4)
    assert whole.learned.tobytes() == halves.learned.tobytes()
    kept = [block.name for block in whole.model.blocks if block.group == "optimizer"]
    assert "adam.m.c0.embedding" in kept and not any(block.startswith("adam.m.module") for block in kept)
    assert any(block.startswith(f"{name}.") for block in kept)


def test_its_own_optimizer_learns_as_in_a_plain_loop() -> None:
    module_class = configured(OPTIMIZERS["AdamW"])
    rigged = rig_with(module_class)
    rigged.base[:] = 0   # no class prior in the logits: a plain loop has none
    views, alone = rigged.model.views(rigged.state), module_class(rigged.model.parsed.module.inputs)
    for name, tensor in alone.named_parameters():
        tensor.data.copy_(torch.from_numpy(views[f"module.{name}"]))
    optimizer, rows = alone.configure_optimizers(), rigged.rows
    x, y = (torch.from_numpy(rigged.blocks[name][:rows].copy()) for name in ("numbers", "label"))
    weight = torch.from_numpy(rigged.blocks["weight"][:rows].copy())
    plan = rigged.plan()
    for _ in range(5):
        rigged.step(plan)
        optimizer.zero_grad()
        each = LOSSES["binary"][1](alone(x), y)
        ((each * weight).sum() / weight.sum()).backward()
        optimizer.step()
    for name, tensor in alone.named_parameters():
        assert np.allclose(views[f"module.{name}"], tensor.detach().numpy(), atol=1e-5), name


class Frozen(Configured):
    """A network whose first layer somebody else has trained."""

    make = staticmethod(lambda parameters: torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.5))

    def __init__(self, inputs: Inputs) -> None:
        super().__init__(inputs)
        self.layers[0].requires_grad_(False)


@pytest.mark.parametrize("own", [True, False])
def test_what_is_frozen_stays_as_it_is(own: bool) -> None:
    """No decay of the optimizer's either."""
    rigged = rig_with(Frozen if own else lambda inputs: Frozen(inputs).layers)
    views = rigged.model.views(rigged.state)
    frozen, learned = (next(name for name in views if name.endswith(end)) for end in (".0.weight", ".2.weight"))
    before = views[frozen].copy(), views[learned].copy()
    rigged.train()
    assert np.array_equal(before[0], views[frozen]) and not np.array_equal(before[1], views[learned])


def test_a_batch_without_weight_changes_nothing() -> None:
    rigged = rig_with(configured(OPTIMIZERS["Adam"]))
    rigged.blocks["weight"][:] = 0
    before = rigged.state.copy()
    plan = rigged.train(1)
    assert np.array_equal(before, rigged.state) and not plan.step.not_finite
    rigged.blocks["weight"][:] = 1
    rigged.blocks["numbers"][:] = np.inf   # a NaN is a missing number
    rigged.step(plan)
    assert plan.step.not_finite


def test_a_lazy_module_sees_its_inputs() -> None:
    model_spec, _ = spec_with(lambda: nn.Sequential(nn.LazyLinear(8), nn.LazyLinear(1)), categories=1)
    assert model_spec["torch"]["parameters"][0] == ["0.weight", [8, 8]]


def test_parameters_with_two_names_are_one() -> None:
    class Tied(nn.Module):
        def __init__(self, inputs: Inputs) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(inputs.width, inputs.width), nn.Linear(inputs.width, inputs.width)
            self.second.weight = self.first.weight
            self.last = nn.Linear(inputs.width, 1)

        def forward(self, x: Any) -> Any:
            return self.last(self.second(torch.relu(self.first(x))))[:, 0]

    rigged = rig_with(Tied)
    assert [each.name for each in rigged.model.parsed.module.parameters].count("first.weight") == 1
    plan = rigged.plan()
    first = rigged.step(plan)
    assert [rigged.step(plan) for _ in range(40)][-1] < first


def test_without_the_module_the_state_is_laid_out_and_nothing_computed() -> None:
    model_spec, _ = spec_with(two_layers)
    model, rigged = Model(model_spec), rig_with(two_layers)
    assert model.layout.blocks[0].name == "module.0.weight"
    rigged.model = model
    for call in (lambda: rigged.plan(), lambda: model.initial_state(0)):
        with pytest.raises(UserMistake, match=r"test_torch:two_layers, which is not at hand: nothing is imported"):
            call()
    other = TorchModule.of(lambda inputs: nn.Sequential(nn.Linear(inputs.width, 9), nn.Linear(9, 1)))
    rigged.model = Model(model_spec, other)
    with pytest.raises(UserMistake, match=r"expected 0.weight \[8, 5\], got 0.weight \[9, 5\]; .*not the snapshot's"):
        rigged.plan()


class Line(nn.Module):
    def __init__(self, inputs: Inputs) -> None:
        super().__init__()
        self.layer = nn.Linear(inputs.width, 1)
        self.register_buffer("mean", torch.zeros(1))

    def forward(self, x: Any) -> Any:
        return self.layer(x)


class Hidden(Line):
    """Keeps what it has learned where nobody sees it."""

    seen = 0.0

    def forward(self, x: Any) -> Any:
        self.seen += 0.5
        return self.layer(x) + self.seen


class Replacing(Line):
    def forward(self, x: Any) -> Any:
        self.mean = self.mean + 1
        return self.layer(x)


def unable(inputs: Inputs) -> Any:
    raise ValueError("no such width")


class Doubles(Line):
    def __init__(self, inputs: Inputs) -> None:
        super().__init__(inputs)
        self.mean = self.mean.double()

    def forward(self, x: Any) -> Any:
        self.mean += 1
        return self.layer(x)


class Summing(Line):
    def loss(self, outputs: Any, labels: Any) -> Any:
        return (outputs - labels).square().sum()


REFUSED: Mapping[str, tuple[Any, str]] = {
    "no module": (lambda: 3, "expected a torch.nn.Module, got int"),
    "raises": (unable, "when made it raised ValueError: no such width"),
    "shape": (lambda inputs: nn.Linear(6, 1), r"when called with float32 \[3, 5\] it raised RuntimeError: .*mat1"),
    "outputs": (lambda inputs: nn.Linear(inputs.width, 2), r"the outputs float32 \[3, 1\], .*, got float32 \[3, 2\]"),
    "type of outputs": (lambda inputs: nn.Sequential(nn.LSTM(inputs.width, 1)), "got a tuple"),
    "double": (lambda inputs: nn.Linear(inputs.width, 1).double(), "torch.float32 on the CPU, got weight is"),
    "no parameters": (lambda: nn.Identity(), "on the CPU, got none"),
    "nothing learns": (lambda inputs: nn.Linear(inputs.width, 1).requires_grad_(False), "no parameter that learns"),
    "hidden": (Hidden, "two that began alike ended otherwise"),
    "replaces": (Replacing, "change its tensors in place .*, got another tensor as mean"),
    "other type": (Doubles, r"as float32 \(averaged\) or int64 \(counted\), got mean of float64"),
    "large table": (lambda: nn.Embedding(1 << 18, 65), "of at most 64 MiB with dense gradients, got 65 MiB"),
    "sparse table": (lambda: nn.Embedding(8, 2, sparse=True), "got sparse=True"),
    "needs a closure": (configured(torch.optim.LBFGS), "configure_optimizers.*closure"),
    "no optimizer": (configured(lambda parameters: ([], [])), "expected a torch.optim.Optimizer, got tuple"),
    "others' optimizer": (configured(lambda parameters: torch.optim.SGD(nn.Linear(5, 1).parameters())),
                          "expected an optimizer of the module's own parameters, got 2 that are not"),
    "one loss": (Summing, r"in its loss\(\) on 3 rows it raised .*expected the loss of each row, \[3\], got \[\]"),
    "no name": ("nets", 'expected "package.module:Net", got \'nets\''),
    "no package": ("no_such_package.nets:Net", "No module named 'no_such_package'"),
    "no class": ("math:Net", "has no attribute 'Net'"),
    "no function": ("math:pi", "expected a class or a function, got float"),
}  # fmt: skip


@over("name", REFUSED)
def test_what_would_break_a_guarantee_is_refused(name: str) -> None:
    make, message = REFUSED[name]
    with pytest.raises(UserMistake, match=message):
        described(TorchModule.of(make), Inputs(5, 1, {}), "f32")


@over("change", [
    None, {"name": 3}, {"name": "a:b", "inputs": [0, 1, []]}, {"name": "a:b", "inputs": [3, 1, [["a", 2, 5]]]},
    {"parameters": []}, {"parameters": [["w", [2]], ["w", [2]]]}, {"parameters": [["w", [1 << 41]]]},
    {"parameters": [["w", [-1]]]}, {"counters": 7}, {"least_rows": 0},
    {"own_loss": 1}, {"optimizer": ["a"]}, {"optimizer": ["a", [["x", "m", [2]]], []]}, {"optimizer": ["a", [], [3]]},
    {"optimizer": ["a", [["w", "m", [2]]] * 2, []]},
])  # fmt: skip
def test_what_a_manifest_says_is_checked(change: Any) -> None:
    right = ModuleSpec("a:b", Inputs(3, 1, {"a": slice(0, 3)}), (), (), (), 1).to_dict() | {"parameters": [["w", [2]]]}
    assert ModuleSpec.from_dict(right).to_dict() == right
    with pytest.raises(UserMistake, match=r"model\.torch"):
        ModuleSpec.from_dict(change if change is None else {**right, **change})


def test_the_norm_of_what_leads_to_an_output_is_a_modules_own_affair() -> None:
    torch_spec = ModuleSpec("a:b", Inputs(3, 1, {"a": slice(0, 3)}), (), (), (), 1).to_dict()
    spec = {"input": {"numbers": 3}, "loss": "binary_cross_entropy", "optimizer": {"name": "adam", "max_norm": 1.0},
            "torch": torch_spec | {"parameters": [["w", [2]]]}}  # fmt: skip
    with pytest.raises(UserMistake, match=r"model.optimizer.max_norm: expected 0 for a PyTorch module, .*got 1"):
        ModelSpec.from_dict(spec)
