"""Losses against PyTorch's, what a constant of each is, and numbers at the edge of float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain.compute import losses
from streamtrain.compute.metrics import summary
from streamtrain.compute.state import block_view

torch = pytest.importorskip("torch")
F = torch.nn.functional
ALL = [(name, example.get("settings")) for name in losses.names() for example in losses.get(name).EXAMPLES]
NUMBERS = [name for name in losses.names() if losses.label_kind(name) == "number"]
WEIGHTS = [0.5, 3.0, 1.0]


def focal(z: Any, y: Any, gamma: float = 2.0, balance: float = 0.5) -> Any:
    """Lin et al. (2017), equation 5."""
    plain = F.binary_cross_entropy_with_logits(z, y, reduction="none")
    return torch.where(y > 0, balance, 1 - balance) * (1 - torch.exp(-plain)) ** gamma * plain


def quantile(z: Any, y: Any, at: float = 0.5) -> Any:
    return torch.maximum(at * (y - z), (at - 1) * (y - z))


def binary(z: Any, y: Any, class_weights: Any = (1.0, 1.0), label_smoothing: float = 0.0) -> Any:
    target = y * (1 - label_smoothing) + label_smoothing / 2
    factor = torch.tensor(class_weights, dtype=torch.float64)[y.long()]
    return factor * F.binary_cross_entropy_with_logits(z, target, reduction="none")


def softmax(z: Any, y: Any, class_weights: Any = (1.0, 1.0, 1.0), label_smoothing: float = 0.0) -> Any:
    factor = torch.tensor(class_weights, dtype=torch.float64)[y.long()]
    return factor * F.cross_entropy(z, y.long(), reduction="none", label_smoothing=label_smoothing)


OURS_AND_THEIRS: list[tuple[str, dict[str, Any], Callable[..., Any]]] = [
    ("mean_squared_error", {}, lambda z, y: F.mse_loss(z, y, reduction="none")),
    ("mean_absolute_error", {}, lambda z, y: F.l1_loss(z, y, reduction="none")),
    *[("huber", {"delta": delta}, lambda z, y, delta: F.huber_loss(z, y, reduction="none", delta=delta))
      for delta in (0.1, 1.0, 30.0)],
    ("log_cosh", {}, lambda z, y: torch.log(torch.cosh(z - y))),
    *[("quantile", {"at": at}, quantile) for at in (0.5, 0.9, 0.01)],
    ("poisson", {}, lambda z, y: F.poisson_nll_loss(z, y, reduction="none") + torch.xlogy(y, y) - y),
    ("hinge", {}, lambda z, y: torch.relu(1 - z * (2 * y - 1))),
    *[("focal", {"gamma": gamma, "balance": balance}, focal)
      for gamma, balance in ((2.0, 0.25), (0.0, 0.5), (0.5, 0.9))],
    ("binary_cross_entropy", {}, binary),
    ("binary_cross_entropy", {"class_weights": WEIGHTS[:2]}, binary),
    ("binary_cross_entropy", {"label_smoothing": 0.2, "class_weights": WEIGHTS[:2]}, binary),
    ("softmax_cross_entropy", {}, softmax),
    ("softmax_cross_entropy", {"class_weights": WEIGHTS}, softmax),
    ("softmax_cross_entropy", {"label_smoothing": 0.2}, softmax),
    ("softmax_cross_entropy", {"label_smoothing": 0.1, "class_weights": WEIGHTS}, softmax),
]  # fmt: skip


@over(("name", "settings", "theirs"), OURS_AND_THEIRS)
def test_value_and_gradient_are_pytorchs(rig: Any, spec: Any, name: str, settings: Any, theirs: Any) -> None:
    """One step of gradient descent on a linear model: the bias moves by the mean gradient, the weights by that times
    the inputs. Before the first round no class and no count has been seen: the model's start is even, a rate of 1."""
    rigged = rig(spec(loss=name, settings=settings, optimizer="sgd"), rows=50)
    x, w = rigged.blocks["numbers"][:50].astype(np.float64), rigged.blocks["weight"][:50, 0].astype(np.float64)
    views = rigged.model.views(rigged.state)
    bias, weight = (torch.tensor(views[f"output.{part}"].astype(np.float64), requires_grad=True)
                    for part in ("bias", "weight"))
    z = torch.tensor(x) @ weight + bias
    z = z if name == "softmax_cross_entropy" else z[:, 0]
    if name == "softmax_cross_entropy":
        z = z + torch.log(prior(settings.get("class_weights", [1, 1, 1]), settings.get("label_smoothing", 0)))
    elif losses.label_kind(name) == "binary" and losses.get(name).PREDICTION != "z":
        pair = settings.get("class_weights", [1 - settings.get("balance", 0.5), settings.get("balance", 0.5)])
        shares = prior(pair, settings.get("label_smoothing", 0))
        z = z + torch.log(shares[1] / shares[0])
    each = theirs(z, torch.tensor(rigged.blocks["label"][:50, 0].astype(np.float64)), **settings)
    loss = (each * torch.tensor(w)).sum() / w.sum()
    loss.backward()
    plan = rigged.plan(copy=True)
    assert rigged.step(plan, learning_rate=0.01) == pytest.approx(loss.item(), rel=3e-6)
    after = rigged.model.views(plan.state)
    for part, before in (("bias", bias), ("weight", weight)):
        expected = (before - 0.01 * before.grad).detach().numpy()
        np.testing.assert_allclose(after[f"output.{part}"], expected, rtol=2e-5, atol=2e-6)


def prior(weights: Any, smoothing: float) -> Any:
    share = torch.tensor(weights, dtype=torch.float64) / sum(weights)
    return (1 - smoothing) * share + smoothing / len(weights)


@over(("name", "settings"), [each for each in ALL if each[0] != "hinge"])   # begins at a margin of 0
def test_a_model_that_has_learned_nothing_has_the_constants_loss(rig: Any, spec: Any, name: str, settings: Any) -> None:
    """The start is the constant prediction; the label of a number is standardised too."""
    classes = {"classes": 3} if losses.label_kind(name) == "class" else {}
    number = {"standardize_label": True} if losses.label_kind(name) == "number" else {}
    rigged = rig(spec(loss=name, settings=settings, **classes, **number), rows=64)
    for view in (v for n, v in rigged.model.views(rigged.state).items() if n.startswith("output.")):
        view[:] = 0
    plan = rigged.plan()
    rigged.step(plan, learning_rate=0.0)
    for block in rigged.model.blocks:   # as averaging does it
        if block.rule == "sum":
            base, share = (block_view(block, part, block.part_offset) for part in (rigged.base, rigged.share))
            base += share
            share[:] = 0
    rigged.statistics(plan)
    before = summary(rigged.model.scores(rigged.base))
    rigged.step(plan, learning_rate=0.0)
    share = summary(rigged.model.scores(rigged.share))
    constant, told = ("constant_loss", "loss") if "loss" in share else ("constant_log_loss", "log_loss")
    assert share[told] == pytest.approx(share[constant], rel=0.05)
    assert before["rows"] == share["rows"] == 63


@over("name", [name for name in NUMBERS if name != "mean_squared_error"])
def test_labels_at_the_edge_of_float32_are_learned_from(rig: Any, spec: Any, name: str) -> None:
    """No error is squared: labels of 1e30 leave loss, gradient and parameters finite."""
    rigged = rig(spec(loss=name), rows=50)
    rigged.blocks["label"][:50, 0] = np.where(np.arange(50) % 3, 1e30, -1e30)
    plan = rigged.plan()
    for _ in range(3):
        assert np.isfinite(rigged.step(plan)) and plan.step.not_finite == 0
    figures = summary(rigged.model.scores(rigged.share))
    assert all(np.isfinite(value) for value in figures.values()) and figures["mae"] == pytest.approx(1e30, rel=0.1)


@over(("name", "settings"), ALL)
@over("size", [1e4, 1e30])
def test_scores_at_the_edge_of_float32_give_finite_predictions(
    rig: Any, spec: Any, name: str, settings: Any, size: float
) -> None:
    """And a step that is not finite says so, so that it is never published."""
    rigged = rig(spec(loss=name, settings=settings, optimizer="sgd"), rows=50)
    rigged.model.views(rigged.state)["output.weight"][0] *= size
    plan = rigged.plan()
    plan.predict(rigged.address)
    assert np.isfinite(plan.output()[:50]).all()
    loss = rigged.step(plan, learning_rate=1e-6)
    after = rigged.model.views(plan.state)
    finite = np.isfinite(after["output.weight"]).all() and np.isfinite(after["output.bias"]).all()
    assert (np.isfinite(loss) and finite) or plan.step.not_finite == 1
