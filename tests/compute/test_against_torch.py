"""Whole models beside PyTorch's, from the same start and batches: after 1, 10 and in `full` 1,000 steps losses,
parameters and predictions lie no further from a run in float64 than a few times as far as PyTorch's own in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from streamtrain.compute.spec import Array

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
F = torch.nn.functional

CHECKED = (1, 10, 1000)
BATCHES = 50   # of which each comes again
TIMES = 5      # as far as PyTorch's float32
Parameters = Mapping[str, Any]
Batch = Mapping[str, Any]
Scores = Callable[[Parameters, Batch], Any]


def dense(p: Parameters, name: str, x: Any) -> Any:
    return x @ p[f"{name}.weight"] + p[f"{name}.bias"]


def layers(activation: Callable[[Any], Any]) -> Scores:
    def scores(p: Parameters, batch: Batch) -> Any:
        x = activation(dense(p, "dense0", batch["numbers"]))
        return dense(p, "output", activation(dense(p, "dense1", x)))

    return scores


def linear(p: Parameters, batch: Batch) -> Any:
    return dense(p, "output", batch["numbers"])


def embedded(p: Parameters, batch: Batch) -> Any:
    rows = [
        F.embedding(batch["categories"][:, at].long(), p[f"c{at}.embedding"], sparse=True)
        for at in range(batch["categories"].shape[1])
    ]
    return dense(p, "output", torch.relu(dense(p, "dense0", torch.cat([batch["numbers"], *rows], 1))))


def crossed(p: Parameters, batch: Batch) -> Any:
    x = first = batch["numbers"]
    for at in range(2):
        x = first * dense(p, f"cross0.{at}", x) + x
    return dense(p, "output", torch.tanh(dense(p, "dense0", x)))


def deep_fm(p: Parameters, batch: Batch) -> Any:
    fields = dense(p, "fields", batch["numbers"])
    each = fields.reshape(len(fields), 4, 3)
    pairs = ((each.sum(1) ** 2 - (each**2).sum(1)) / 2).sum(1, keepdim=True)
    return pairs + dense(p, "deep", torch.tanh(dense(p, "hidden", fields)))


def normed(norm: Callable[[Parameters, Any], Any]) -> Scores:
    return lambda p, batch: dense(p, "output", torch.tanh(norm(p, dense(p, "dense0", batch["numbers"]))))


def batch_norm(p: Parameters, x: Any) -> Any:
    names = [f"batch_norm0.{part}" for part in ("running_mean", "running_variance", "scale", "shift")]
    return F.batch_norm(x, *(p[name] for name in names), training=torch.is_grad_enabled())


def layer_norm(p: Parameters, x: Any) -> Any:
    return F.layer_norm(x, (8,), p["layer_norm0.scale"], p["layer_norm0.shift"], 1e-5)


def rms_norm(p: Parameters, x: Any) -> Any:
    return F.rms_norm(x, (8,), p["rms_norm0.scale"], 1e-5)


def two_heads(p: Parameters, batch: Batch) -> Any:
    hidden = torch.relu(dense(p, "dense0", batch["numbers"]))
    return torch.cat([dense(p, f"output.{head}", hidden) for head in ("late", "delay")], 1)


def loss_of(scores: Any, batch: Batch) -> Any:
    """The mean loss of a batch: of classes, of one binary label, or of two labels that not all rows have."""
    if "label" not in batch:
        late, delay = batch["label:0"][:, 0], batch["label:1"][:, 0]
        binary = F.binary_cross_entropy_with_logits(scores[:, 0], late.nan_to_num(), reduction="none")
        huber = F.huber_loss(scores[:, 1], delay.nan_to_num(), reduction="none")
        each = torch.where(late.isnan(), 0, binary) + 0.3 * torch.where(delay.isnan(), 0, huber)
    elif scores.shape[1] > 1:
        each = F.cross_entropy(scores, batch["label"][:, 0].long(), reduction="none")
    else:
        each = F.binary_cross_entropy_with_logits(scores, batch["label"], reduction="none")[:, 0]
    weight = batch["weight"][:, 0]
    return (each * weight).sum() / weight.sum()


def predicted(scores: Any, batch: Batch) -> Any:
    if "label" not in batch:
        return torch.stack([torch.sigmoid(scores[:, 0]), scores[:, 1]], 1)
    return torch.softmax(scores, 1) if scores.shape[1] > 1 else torch.sigmoid(scores)


@dataclass(frozen=True)
class Case:
    spec: Mapping[str, Any]   # of the tests' models
    scores: Scores
    optimizers: Callable[..., Any]   # PyTorch's of (weights and embeddings, other parameters, learning rate)
    settings: Mapping[str, Any]   # of ours
    rate: float = 1e-2


def adam(weights: Sequence[Any], others: Sequence[Any], rate: float) -> list[Any]:
    return [torch.optim.Adam([*weights, *others], lr=rate)]


def sgd(weights: Sequence[Any], others: Sequence[Any], rate: float) -> list[Any]:
    return [torch.optim.SGD([*weights, *others], lr=rate)]


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


ADAM, SGD = {"name": "adam"}, {"name": "sgd"}
DEEP_FM = [
    {"name": "fields", "dense": 12, "of": "input"}, {"name": "pairs", "factorization": "fields", "width": 3},
    {"name": "hidden", "dense": 4, "activation": "tanh", "of": "fields"}, {"name": "deep", "dense": 1, "of": "hidden"},
    {"name": "output", "add": ["pairs", "deep"]},
]  # fmt: skip
HEADS = {"layers": [{"dense": 8, "activation": "relu"}], "heads": [
    ("late", "binary_cross_entropy", {"partial": True}), ("delay", "huber", {"weight": 0.3, "partial": True}),
]}  # fmt: skip
CASES = {
    "relu": Case({"layers": two("relu")}, layers(torch.relu), adam, ADAM, rate=1e-3),
    "mish": Case({"layers": two("mish")}, layers(F.mish), adam, ADAM),
    "logistic": Case({}, linear, momentum, {"name": "momentum"}),
    "softmax": Case({"loss": "softmax_cross_entropy", "layers": two("tanh")}, layers(torch.tanh), adamw,
                    {"name": "adamw", "weight_decay": 0.1}),
    "tables": Case({"categories": 2, "layers": [{"dense": 8, "activation": "relu"}]}, embedded, sparse_adam, ADAM),
    "cross": Case({"layers": [{"cross": 2}, {"dense": 8, "activation": "tanh"}]}, crossed, adam, ADAM, rate=1e-3),
    "cross by descent": Case({"layers": [{"cross": 2}, {"dense": 8, "activation": "tanh"}]}, crossed, sgd, SGD, 1e-3),
    "deep_fm": Case({"graph": DEEP_FM}, deep_fm, sgd, SGD, rate=1e-3),
    **{norm.__name__: Case({"layers": [{"dense": 8}, {norm.__name__: 1e-5, "activation": "tanh"}]}, normed(norm), sgd,
                           SGD, rate=0.1) for norm in (batch_norm, layer_norm, rms_norm)},
    "heads": Case(HEADS, two_heads, adam, ADAM),
    "heads by descent": Case(HEADS, two_heads, sgd, SGD),
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
) -> Iterator[tuple[float, dict[str, Array], Array]]:
    """PyTorch's loss of each step before it; the parameters after it, and what they predict of the batch."""
    p = {name: torch.tensor(each, dtype=dtype, requires_grad="running" not in name) for name, each in start.items()}
    for name, each in p.items():
        each.is_table = name.endswith(".embedding")
    learned = {name: each for name, each in p.items() if each.requires_grad}
    weights = [each for name, each in learned.items() if not name.endswith(".bias")]
    optimizers = case.optimizers(weights, [each for name, each in learned.items() if name.endswith(".bias")], case.rate)
    told = [{name: torch.tensor(b, dtype=dtype if b.dtype.kind == "f" else None) for name, b in batch.items()}
            for batch in batches]  # fmt: skip
    for step in range(CHECKED[-1]):
        batch = told[step % len(told)]
        loss = loss_of(case.scores(p, batch), batch)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        with torch.no_grad():
            output = predicted(case.scores(p, batch), batch)
        yield loss.item(), {name: each.detach().double().numpy() for name, each in p.items()}, output.double().numpy()


def root_mean_square(one: Sequence[Any], other: Sequence[Any]) -> float:
    apart = np.concatenate([(np.asarray(a, np.float64) - b).ravel() for a, b in zip(one, other, strict=True)])
    return float(np.sqrt((apart**2).mean()))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("steps", [10, pytest.param(1000, marks=pytest.mark.full)])
def test_as_near_to_float64_as_pytorch(rig: Any, spec: Any, name: str, steps: int) -> None:
    case = CASES[name]
    rigged = rig({**spec(**case.spec), "optimizer": dict(case.settings)}, rows=64)
    model, slots, batches = rigged.model, [], []
    for _ in range(min(BATCHES, steps)):
        rigged.fill()
        if "label:1" in rigged.blocks:
            rigged.blocks["label:1"][:] /= 20   # on both sides of where a Huber loss bends
        counts = rigged.blocks["weight"][:, 0] > 0
        slots.append(rigged.slot.copy())
        batches.append({key: block[counts].copy() for key, block in rigged.blocks.items()})
    views = model.views(rigged.state)
    parameters = {block.name for block in model.blocks if block.group == "parameters"}
    ours = {name: view for name, view in views.items() if name in parameters or "running" in name}
    start, plan = {key: values.copy() for key, values in ours.items()}, rigged.plan()
    runs = [trained(case, start, batches, dtype) for dtype in (torch.float64, torch.float32)]
    losses: list[list[float]] = [[], [], []]
    for step in range(steps):
        rigged.slot[:] = slots[step % len(slots)]
        mine = rigged.step(plan, learning_rate=case.rate)
        (exact, right, said), (theirs, other, its) = (next(run) for run in runs)
        for to, loss in zip(losses, (exact, theirs, mine), strict=True):
            to.append(loss)
        if step + 1 in CHECKED:
            plan.predict(rigged.address)
            output = plan.output()[:64][rigged.blocks["weight"][:, 0] > 0]
            for what, base, them, us in (
                ("parameters", *([each[key] for key in right] for each in (right, other, ours))),
                ("losses", *([np.array(each)] for each in losses)),
                ("predictions", [said], [its], [output]),
            ):
                far, rival = root_mean_square(us, base), root_mean_square(them, base)
                rounding = root_mean_square(base, [each.astype(np.float32) for each in base])
                print(f"{name} {step + 1} {what}: {far / max(rival, rounding):.2f} x PyTorch's {rival:.2e}")
                assert far <= TIMES * max(rival, rounding), f"{what} after {step + 1} steps: {far:.3g}, {rival:.3g}"
    if steps == CHECKED[-1]:
        assert losses[2][-1] < 0.8 * losses[2][0]
