"""A PyTorch module in a plan: trained as in PyTorch, over the state's own memory, and refused where it cannot be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from streamtrain.compute import backends, losses
from streamtrain.compute.model import Model
from streamtrain.compute.model_spec import input_shape
from streamtrain.compute.module_spec import COUNTERS, Inputs, ModuleSpec, inputs_of
from streamtrain.compute.torch import TorchModule, described
from streamtrain.errors import UserMistake

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
nn = torch.nn


def two_layers(inputs: Inputs) -> Any:
    return nn.Sequential(nn.Linear(inputs.width, 8), nn.ReLU(), nn.Linear(8, inputs.outputs))


def with_moments(inputs: Inputs) -> Any:
    return nn.Sequential(nn.Linear(inputs.width, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, inputs.outputs))


def with_dropout(inputs: Inputs) -> Any:
    return nn.Sequential(nn.Linear(inputs.width, 8), nn.Dropout(0.5), nn.Linear(8, inputs.outputs))


def spec_with(spec: Callable[..., dict[str, Any]], make: Any, **given: Any) -> tuple[dict[str, Any], TorchModule]:
    told, source = spec(**given), TorchModule.of(make)
    shape = input_shape(told)
    numbers = [f"n{at}" for at in range(shape.numbers)]
    inputs = inputs_of(shape, numbers, losses.get(told["loss"]).outputs(shape))
    label_dtype = losses.label_dtype(losses.label_kind(told["loss"]))
    return {**told, "torch": described(source, inputs, label_dtype).to_dict()}, source


@pytest.mark.parametrize("loss", losses.names())
@pytest.mark.parametrize("backend", [name for name in backends.names() if backends.get(name).CALLS_OUT])
def test_it_learns_as_the_same_layers_of_ours(rig: Any, spec: Any, loss: str, backend: str) -> None:
    """From the same start: outputs, gradients of parameters and of embeddings below, the optimizer over all."""
    layers = [{"dense": 8, "activation": "relu"}]
    given = {"loss": loss, "numbers": 5, "standardize": True, "categories": 2}
    told, source = spec_with(spec, two_layers, **given)
    theirs, ours = rig(told, network=source), rig(spec(layers=layers, **given))
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


def test_averages_and_counters_are_the_states(rig: Any, spec: Any) -> None:
    told, source = spec_with(spec, with_moments)
    rigged = rig(told, network=source)
    views, plan = rigged.model.views(rigged.state), rigged.plan()
    assert views["module.1.running_var"].tolist() == [1.0] * 8 and views[COUNTERS].tolist() == [0]
    for _ in range(3):
        rigged.step(plan)
    assert abs(views["module.1.running_mean"]).min() > 0
    block = next(block for block in rigged.model.blocks if block.name == COUNTERS)
    assert rigged.share[block.part_offset : block.part_offset + 8].view(np.int64).tolist() == [3]
    before = rigged.state.copy()
    plan.predict(rigged.address)
    assert np.array_equal(before, rigged.state)


def test_a_batch_too_small_for_moments_takes_the_running_ones(rig: Any, spec: Any) -> None:
    told, source = spec_with(spec, with_moments)
    assert ModuleSpec.from_dict(told["torch"]).least_rows == 2
    rigged = rig(told, rows=1, network=source)
    views, plan = rigged.model.views(rigged.state), rigged.plan()
    rigged.blocks["weight"][0] = 1
    before = views["module.0.weight"].copy()
    rigged.step(plan)
    assert not np.array_equal(before, views["module.0.weight"])
    assert views["module.1.running_mean"].tolist() == [0.0] * 8


def test_random_numbers_go_by_the_step(rig: Any, spec: Any) -> None:
    told, source = spec_with(spec, with_dropout)

    def loss_with(random: int) -> float:
        rigged = rig(told, network=source)
        plan = rigged.plan()
        plan.step.random = random
        return float(rigged.step(plan))

    assert loss_with(7) == loss_with(7) != loss_with(8)
    assert loss_with(2**64 - 1) != loss_with(2**63)


def test_it_starts_as_it_is_made(spec: Any) -> None:
    told, source = spec_with(spec, two_layers)
    model = Model(told, source)
    one, other = (model.views(model.initial_state(seed))["module.0.weight"].copy() for seed in (1, 2))
    assert np.array_equal(one, model.views(model.initial_state(1))["module.0.weight"])
    assert not np.array_equal(one, other)
    torch.manual_seed(1)
    shape = ModuleSpec.from_dict(told["torch"]).inputs
    assert np.array_equal(one, two_layers(shape)[0].weight.detach().numpy())
    held = two_layers(shape)
    told, source = spec_with(spec, held)
    model = Model(told, source)
    start = model.views(model.initial_state(5))["module.0.weight"]
    assert np.array_equal(start, held[0].weight.detach().numpy())
    start[...] = 7
    assert not (held[0].weight == 7).any()


LOSSES = {   # by the kind of a label: a loss of ours, and the same in PyTorch
    "binary": ("binary_cross_entropy",
               lambda z, y: nn.functional.binary_cross_entropy_with_logits(z, y, reduction="none")),
    "class": ("softmax_cross_entropy", lambda z, y: nn.functional.cross_entropy(z, y, reduction="none")),
    "number": ("mean_squared_error", lambda z, y: (z - y).square() / 2),
}


@pytest.mark.parametrize(("loss", "same"), LOSSES.values(), ids=LOSSES)
def test_its_own_loss_has_the_gradient(rig: Any, spec: Any, loss: str, same: Any) -> None:
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
        told, source = spec_with(spec, make, loss=loss)
        rigged = rig(told, network=source)
        plan = rigged.plan()
        scores = [rigged.step(plan) for _ in range(3)]
        trained.append((scores[0], rigged.model.views(rigged.state)["module.0.weight"].copy()))
    ours, own, others = trained
    assert ours[0] == own[0] == others[0]
    assert np.allclose(ours[1], own[1], atol=2e-6) and not np.allclose(ours[1], others[1], atol=1e-4)


class Configured(nn.Module):
    """With an optimizer of its own, which each test names."""

    make: Any = None

    def __init__(self, inputs: Inputs) -> None:
        super().__init__()
        self.layers = two_layers(inputs)

    def forward(self, x: Any) -> Any:
        return self.layers(x)

    def configure_optimizers(self) -> Any:
        return type(self).make(self.parameters())


OPTIMIZERS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "Adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, amsgrad=True),
    "NAdam": lambda parameters: torch.optim.NAdam(parameters, lr=0.01),
    "Adagrad": lambda parameters: torch.optim.Adagrad(parameters, lr=0.1, initial_accumulator_value=0.5),
    "Rprop": lambda parameters: torch.optim.Rprop(parameters, lr=0.01),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_its_own_optimizer_is_pytorchs_from_any_step_on(rig: Any, spec: Any, name: str) -> None:
    """A plan that goes on from the state of another, as after a worker's death, gives the same bits as one that ran
    through; both those of a plain loop."""
    Configured.make = staticmethod(OPTIMIZERS[name])
    told, source = spec_with(spec, Configured, categories=1)
    assert ModuleSpec.from_dict(told["torch"]).optimizer.name == name
    whole, halves = rig(told, network=source), rig(told, network=source)
    plan = whole.plan()
    for number in range(1, 9):
        plan.step.number = number
        whole.step(plan)
    for start in (1, 5):
        plan = halves.plan()
        for number in range(start, start + 4):
            plan.step.number = number
            halves.step(plan)
    assert np.array_equal(whole.state[: whole.model.learned_bytes], halves.state[: whole.model.learned_bytes])
    kept = [block.name for block in whole.model.blocks if block.group == "optimizer"]
    assert "adam.m.c0.embedding" in kept and not any(block.startswith("adam.m.module") for block in kept)
    assert any(block.startswith(f"{name}.") for block in kept)


def test_its_own_optimizer_learns_as_in_a_plain_loop(rig: Any, spec: Any) -> None:
    Configured.make = staticmethod(OPTIMIZERS["AdamW"])
    told, source = spec_with(spec, Configured)
    rigged = rig(told, network=source)
    rigged.base[:] = 0   # no class prior in the logits: a plain loop has none
    views, alone = rigged.model.views(rigged.state), Configured(ModuleSpec.from_dict(told["torch"]).inputs)
    for name, tensor in alone.named_parameters():
        tensor.data.copy_(torch.from_numpy(views[f"module.{name}"]))
    optimizer, rows = alone.configure_optimizers(), rigged.rows
    x, y = (torch.from_numpy(rigged.blocks[name][:rows].copy()) for name in ("numbers", "label"))
    weight = torch.from_numpy(rigged.blocks["weight"][:rows].copy())
    plan = rigged.plan()
    for number in range(1, 6):
        plan.step.number = number
        rigged.step(plan)
        optimizer.zero_grad()
        each = LOSSES["binary"][1](alone(x), y)
        ((each * weight).sum() / weight.sum()).backward()
        optimizer.step()
    for name, tensor in alone.named_parameters():
        assert np.allclose(views[f"module.{name}"], tensor.detach().numpy(), atol=1e-5), name


class Frozen(Configured):
    """Whose first layer somebody else has trained."""

    make = staticmethod(lambda parameters: torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.5))

    def __init__(self, inputs: Inputs) -> None:
        super().__init__(inputs)
        self.layers[0].requires_grad_(False)


@pytest.mark.parametrize("own", [True, False])
def test_what_is_frozen_stays_as_it_is(rig: Any, spec: Any, own: bool) -> None:
    """No decay of the optimizer's either."""
    told, source = spec_with(spec, Frozen if own else lambda inputs: Frozen(inputs).layers)
    rigged = rig(told, network=source)
    views, plan = rigged.model.views(rigged.state), rigged.plan()
    frozen, learned = (next(name for name in views if name.endswith(end)) for end in (".0.weight", ".2.weight"))
    before = views[frozen].copy(), views[learned].copy()
    for number in range(1, 4):
        plan.step.number = number
        rigged.step(plan)
    assert np.array_equal(before[0], views[frozen]) and not np.array_equal(before[1], views[learned])


def test_a_batch_without_weight_changes_nothing(rig: Any, spec: Any) -> None:
    Configured.make = staticmethod(OPTIMIZERS["Adam"])
    told, source = spec_with(spec, Configured)
    rigged = rig(told, network=source)
    rigged.blocks["weight"][:] = 0
    before, plan = rigged.state.copy(), rigged.plan()
    plan.step.number = 1
    rigged.step(plan)
    assert np.array_equal(before, rigged.state) and not plan.step.not_finite
    rigged.blocks["weight"][:] = 1
    rigged.blocks["numbers"][:] = np.nan
    rigged.step(plan)
    assert plan.step.not_finite


def test_a_lazy_module_sees_its_inputs(spec: Any) -> None:
    told, _ = spec_with(spec, lambda: nn.Sequential(nn.LazyLinear(8), nn.LazyLinear(1)), categories=1)
    assert told["torch"]["parameters"][0] == ["0.weight", [8, 8]]


def test_parameters_with_two_names_are_one(spec: Any, rig: Any) -> None:
    class Tied(nn.Module):
        def __init__(self, inputs: Inputs) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(inputs.width, inputs.width), nn.Linear(inputs.width, inputs.width)
            self.second.weight = self.first.weight
            self.last = nn.Linear(inputs.width, 1)

        def forward(self, x: Any) -> Any:
            return self.last(self.second(torch.relu(self.first(x))))[:, 0]

    told, source = spec_with(spec, Tied)
    assert [name for name, _ in told["torch"]["parameters"]].count("first.weight") == 1
    rigged = rig(told, network=source)
    plan = rigged.plan()
    first = rigged.step(plan)
    assert [rigged.step(plan) for _ in range(40)][-1] < first


def test_without_the_module_the_state_is_laid_out_and_nothing_computed(spec: Any, rig: Any) -> None:
    told, source = spec_with(spec, two_layers)
    model = Model(told)
    assert model.layout.blocks[0].name == "module.0.weight"
    rigged = rig(told, network=source)
    rigged.model = model
    for wanted in (lambda: rigged.plan(), lambda: model.initial_state(0)):
        with pytest.raises(UserMistake, match=r"test_torch:two_layers, which is not at hand: nothing is imported"):
            wanted()
    other = TorchModule.of(lambda inputs: nn.Sequential(nn.Linear(inputs.width, 9), nn.Linear(9, 1)))
    rigged.model = Model(told, other)
    with pytest.raises(UserMistake, match=r"expected 0.weight \[8, 5\], got 0.weight \[9, 5\]; .*not the snapshot's"):
        rigged.plan()
