"""Whole models beside PyTorch's, from the same start and batches: after 1, 10 and 1,000 steps losses and parameters lie
no further from a run in float64 than a few times as far as PyTorch's own in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from streamtrain.compute.spec import Array

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
pytestmark = pytest.mark.full

STEPS = (1, 10, 1000)
BATCHES = 50   # of which each comes again
TIMES = 5      # as far as PyTorch's float32
Parameters = Mapping[str, Any]
Scores = Callable[[Parameters, Mapping[str, Any]], Any]


def dense(p: Parameters, name: str, x: Any) -> Any:
    return x @ p[f"{name}.weight"] + p[f"{name}.bias"]


def layers(activation: Callable[[Any], Any]) -> Scores:
    def scores(p: Parameters, batch: Mapping[str, Any]) -> Any:
        x = activation(dense(p, "dense0", batch["numbers"]))
        return dense(p, "output", activation(dense(p, "dense1", x)))

    return scores


def linear(p: Parameters, batch: Mapping[str, Any]) -> Any:
    return dense(p, "output", batch["numbers"])


def embedded(p: Parameters, batch: Mapping[str, Any]) -> Any:
    rows = [
        torch.nn.functional.embedding(batch["categories"][:, at].long(), p[f"c{at}.embedding"], sparse=True)
        for at in range(batch["categories"].shape[1])
    ]
    return dense(p, "output", torch.relu(dense(p, "dense0", torch.cat([batch["numbers"], *rows], 1))))


def crossed(p: Parameters, batch: Mapping[str, Any]) -> Any:
    x = first = batch["numbers"]
    for at in range(2):
        x = first * dense(p, f"cross0.{at}", x) + x
    return dense(p, "output", torch.tanh(dense(p, "dense0", x)))


@dataclass(frozen=True)
class Case:
    spec: Mapping[str, Any]   # of the tests' models
    scores: Scores
    optimizers: Callable[..., Any]   # PyTorch's of (weights and embeddings, other parameters, learning rate)
    settings: Mapping[str, Any]   # of ours
    rate: float = 1e-2


def adam(weights: Sequence[Any], others: Sequence[Any], rate: float) -> list[Any]:
    return [torch.optim.Adam([*weights, *others], lr=rate)]


def momentum(weights: Sequence[Any], others: Sequence[Any], rate: float) -> list[Any]:
    return [torch.optim.SGD([*weights, *others], lr=rate, momentum=0.9)]


def adamw(weights: Sequence[Any], others: Sequence[Any], rate: float) -> list[Any]:
    groups = [{"params": weights, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    return [torch.optim.AdamW(groups, lr=rate)]


class SparseAdam(torch.optim.SparseAdam):  # type: ignore[misc]
    """With epsilon where Adam has it, behind the correction of the second moment."""

    steps = 0

    def step(self, closure: Any = None) -> Any:
        self.steps += 1
        self.param_groups[0]["eps"] = 1e-8 * (1 - 0.999**self.steps) ** 0.5
        return super().step(closure)


def sparse_adam(weights: Sequence[Any], others: Sequence[Any], rate: float) -> list[Any]:
    tables = [each for each in weights if each.is_table]
    rest = [each for each in weights if not each.is_table]
    return [SparseAdam(tables, lr=rate), torch.optim.Adam([*rest, *others], lr=rate)]


def two(activation: str) -> list[dict[str, Any]]:
    return [{"dense": 16, "activation": activation}, {"dense": 8, "activation": activation}]


ADAM = {"name": "adam"}
CASES = {
    "relu": Case({"layers": two("relu")}, layers(torch.relu), adam, ADAM, rate=1e-3),
    "mish": Case({"layers": two("mish")}, layers(torch.nn.functional.mish), adam, ADAM),
    "logistic": Case({}, linear, momentum, {"name": "momentum"}),
    "softmax": Case({"loss": "softmax_cross_entropy", "layers": two("tanh")}, layers(torch.tanh), adamw,
                    {"name": "adamw", "weight_decay": 0.1}),
    "tables": Case({"categories": 2, "layers": [{"dense": 8, "activation": "relu"}]}, embedded, sparse_adam, ADAM),
    "cross": Case({"layers": [{"cross": 2}, {"dense": 8, "activation": "tanh"}]}, crossed, adam, ADAM, rate=1e-3),
}  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Steps of a few rows, which more of them only wait for."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def trained(
    case: Case, start: Mapping[str, Array], batches: Sequence[Mapping[str, Array]], dtype: Any
) -> Iterator[tuple[float, dict[str, Array]]]:
    """PyTorch's loss of each step before it, and the parameters after it."""
    p = {name: torch.tensor(values, dtype=dtype, requires_grad=True) for name, values in start.items()}
    for name, each in p.items():
        each.is_table = name.endswith(".embedding")
    weights = [each for name, each in p.items() if not name.endswith(".bias")]
    optimizers = case.optimizers(weights, [each for name, each in p.items() if name.endswith(".bias")], case.rate)
    told = [{name: torch.tensor(b, dtype=dtype if b.dtype.kind == "f" else None) for name, b in batch.items()}
            for batch in batches]  # fmt: skip
    for step in range(STEPS[-1]):
        batch = told[step % len(told)]
        scores, label, weight = case.scores(p, batch), batch["label"][:, 0], batch["weight"][:, 0]
        if scores.shape[1] > 1:
            each = torch.nn.functional.cross_entropy(scores, label.long(), reduction="none")
        else:
            each = torch.nn.functional.binary_cross_entropy_with_logits(scores[:, 0], label, reduction="none")
        loss = (each * weight).sum() / weight.sum()
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        yield loss.item(), {name: each.detach().double().numpy() for name, each in p.items()}


def root_mean_square(one: Sequence[Any], other: Sequence[Any]) -> float:
    apart = np.concatenate([(np.asarray(a, np.float64) - b).ravel() for a, b in zip(one, other, strict=True)])
    return float(np.sqrt((apart**2).mean()))


@pytest.mark.parametrize("name", CASES)
def test_as_near_to_float64_as_pytorch(rig: Any, spec: Any, name: str) -> None:
    case = CASES[name]
    rigged = rig({**spec(**case.spec), "optimizer": dict(case.settings)}, rows=64)
    model, slots, batches = rigged.model, [], []
    for _ in range(BATCHES):
        rigged.fill()
        counts = rigged.blocks["weight"][:, 0] > 0
        slots.append(rigged.slot.copy())
        batches.append({key: block[counts].copy() for key, block in rigged.blocks.items()})
    ours = {block.name: model.views(rigged.state)[block.name] for block in model.blocks if block.group == "parameters"}
    start, plan = {key: values.copy() for key, values in ours.items()}, rigged.plan()
    runs = [trained(case, start, batches, dtype) for dtype in (torch.float64, torch.float32)]
    losses: list[list[float]] = [[], [], []]
    for step in range(STEPS[-1]):
        rigged.slot[:] = slots[step % BATCHES]
        mine = rigged.step(plan, learning_rate=case.rate)
        (exact, right), (theirs, other) = (next(run) for run in runs)
        for to, loss in zip(losses, (exact, theirs, mine), strict=True):
            to.append(loss)
        if step + 1 in STEPS:
            names = [*right]
            for told, base, them, us in (
                ("parameters", *([held[key] for key in names] for held in (right, other, ours))),
                ("losses", *([np.array(each)] for each in losses)),
            ):
                far, rival = root_mean_square(us, base), root_mean_square(them, base)
                rounding = root_mean_square(base, [each.astype(np.float32) for each in base])
                print(f"{name} {step + 1} {told}: {far / max(rival, rounding):.2f} x PyTorch's {rival:.2e}")
                assert far <= TIMES * max(rival, rounding), f"{told} after {step + 1} steps: {far:.3g}, {rival:.3g}"
    assert losses[2][-1] < 0.8 * losses[2][0]
