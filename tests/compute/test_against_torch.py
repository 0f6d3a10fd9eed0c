"""Whole models, losses and norms beside PyTorch's: no further from a run in float64 than a few times as far as
PyTorch's own in float32; a constant of each loss, numbers at the edge of float32, and what batch norm leaves
running."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from looped import over

import streamtrain
from streamtrain import _native
from streamtrain.compute import losses
from streamtrain.compute.metrics import summary
from streamtrain.compute.model import Model
from streamtrain.compute.spec import Array
from streamtrain.compute.state import block_view
from tests.e2e.harness import rows

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
    tensors = [{name: torch.tensor(b, dtype=dtype if b.dtype.kind == "f" else None) for name, b in batch.items()}
            for batch in batches]  # fmt: skip
    for step in range(CHECKED[-1]):
        batch = tensors[step % len(tensors)]
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
    constant, figure = ("constant_loss", "loss") if "loss" in share else ("constant_log_loss", "log_loss")
    assert share[figure] == pytest.approx(share[constant], rel=0.05)
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


SMALL_JOB = {
    "name": "small", "kafka": {"bootstrap.servers": "localhost:9092"},
    "columns": {**{f"x{at}": {"standardize": True} for at in (1, 2, 3, 4)}, "y": {"role": "label"},
                "colour": {"kind": "category", "buckets": 16, "embed": 4}},
    "optimizer": {"name": "adam", "learning_rate": 2e-3},
}
BATCH_NORM = {"batch_norm": 1e-5, "activation": "tanh"}


def by_batch(x: Any, scale: Any, shift: Any, dy: Any, weight: Any, isa: str) -> list[Any]:
    """y, dx, dscale, dshift and the running mean and variance."""
    (rows, columns), step = x.shape, _native.StepBlock()
    total, squares, mean, factor, dscale, dshift, running_mean = (np.zeros_like(scale) for _ in range(7))
    y, dx, count, running_variance = np.zeros_like(x), np.zeros_like(x), np.zeros(1, np.float32), np.ones_like(scale)
    sizes, saved = [rows, columns], [mean, factor]

    def call(op: str, *arguments: Any) -> None:
        _native.call_kernel(f"batch_norm_{op}", "", list(arguments), isa)

    call("sum", *sizes, x, weight, total, count)
    call("squares", *sizes, x, weight, total, count, squares)
    call("settle", columns, 2, 0.1, 1e-5, count, total, squares, step, running_mean, running_variance, *saved)
    call("forward", *sizes, x, *saved, scale, shift, y)
    call("grad_scale", *sizes, dy, x, weight, *saved, dscale, dshift)
    call("gradient", *sizes, 2, dy, x, weight, count, scale, *saved, dscale, dshift, dx)
    assert not step.not_finite
    return [y, dx, dscale, dshift, running_mean, running_variance]


def by_row(centers: bool, x: Any, scale: Any, shift: Any, dy: Any, isa: str = "") -> list[Any]:
    """y, dx, dscale and, with a shift, dshift."""
    (rows, columns), shift = x.shape, shift if centers else None
    y, dx, dscale, dshift = np.zeros_like(x), np.zeros_like(x), np.zeros_like(scale), np.zeros_like(scale)
    sizes, saved = [rows, columns], [np.zeros(rows, np.float32), np.zeros(rows, np.float32)]

    def call(op: str, *arguments: Any) -> None:
        _native.call_kernel(f"row_norm_{op}", "", [*sizes, *arguments], isa)

    call("forward", int(centers), 1e-5, x, scale, shift, y, *saved)
    call("gradient", int(centers), dy, x, scale, *saved, dx)
    call("grad_scale", dy, x, *saved, dscale, dshift if centers else None)
    return [y, dx, dscale, *([dshift] if centers else [])]


def theirs(name: str, x: Any, scale: Any, shift: Any, dy: Any, dtype: Any) -> list[Any]:
    x, scale, shift = (torch.tensor(each, dtype=dtype, requires_grad=True) for each in (x, scale, shift))
    known, columns = torch.nn.functional, x.shape[1]
    running = torch.zeros(columns, dtype=dtype), torch.ones(columns, dtype=dtype)
    y = {
        "batch_norm": lambda: known.batch_norm(x, *running, scale, shift, training=True),
        "layer_norm": lambda: known.layer_norm(x, (columns,), scale, shift, 1e-5),
        "rms_norm": lambda: known.rms_norm(x, (columns,), scale, 1e-5),
    }[name]()
    y.backward(torch.tensor(dy, dtype=dtype))
    found = [y.detach(), *(each.grad for each in (x, scale, shift) if each.grad is not None)]
    return [each.numpy() for each in (*found, *(running if name == "batch_norm" else ()))]


SIZES = [(2, 1, 0), (50, 7, 3), (300, 64, 3), (2000, 130, 100), (3, 999, 3)]   # rows, columns, mean


@over("name", ["batch_norm", "layer_norm", "rms_norm"])
@over(("rows", "columns", "level"), [*SIZES, (1, 1, 3)])
def test_no_further_from_float64_than_pytorch(name: str, rows: int, columns: int, level: float) -> None:
    """By at most 5 times what its float32 is; batch norm with rows of weight 0 between, which count for nothing."""
    if name == "batch_norm" and rows == 1:
        return   # PyTorch refuses it
    rng = np.random.default_rng([rows, columns])
    x, dy = (rng.normal(at, 2, (rows, columns)).astype(np.float32) for at in (level, 0.1))
    scale, shift = rng.normal(1, 0.3, columns).astype(np.float32), rng.normal(size=columns).astype(np.float32)
    exact, narrow = (theirs(name, x, scale, shift, dy, dtype) for dtype in (torch.float64, torch.float32))
    apart = np.arange(rows) * 3 // 2   # every third row of what we are given is of no weight
    weight = np.zeros(apart[-1] + 2, np.float32)
    wide_x, wide_dy = (np.full((len(weight), columns), bad, np.float32) for bad in (np.inf, np.nan))
    weight[apart], wide_x[apart], wide_dy[apart] = rng.uniform(0.1, 9, rows), x, dy
    bits = set()
    for isa in _native.supported_isas():
        if name == "batch_norm":
            y, dx, *others = by_batch(wide_x, scale, shift, wide_dy, weight, isa)
            assert not dx[weight == 0].any()
            found = [y[apart], dx[apart], *others]
        else:
            found = by_row(name == "layer_norm", x, scale, shift, dy, isa)
        bits.add(tuple(each.tobytes() for each in found))
        for mine, its, right in zip(found, narrow, exact, strict=True):
            limit = 5 * abs(its - right).max() + 2e-6 * max(1, abs(right).max())
            assert abs(mine - right).max() <= limit
    assert len(bits) == 1


@over("centers", [True, False])
def test_of_rows_of_one_value_and_of_far_numbers(centers: bool) -> None:
    rows = np.array([[0, 0, 0], [5, 5, 5], [1e-30, 0, 0], [1e30, -1e30, 1], [np.nan, 1, 2]], np.float32)
    y, dx, *_ = by_row(centers, rows, np.ones(3, np.float32), np.zeros(3, np.float32), np.ones_like(rows))
    assert np.isfinite(y[:4]).all() and np.isfinite(dx[:4]).all() and np.isnan(y[4]).all()
    assert not y[0].any() and (not y[1].any() if centers else np.allclose(y[1], 1))


def few_rows(rig: Any, spec: Any, count: int, **settings: Any) -> Any:
    """Rows of weight from the fourth on; the state is that of a lineage under way."""
    rigged = rig(spec(layers=[{"dense": 8}, {**BATCH_NORM, **settings}], optimizer="sgd"))
    rigged.blocks["weight"][:] = 0
    rigged.blocks["weight"][3 : 3 + count] = 1
    views = rigged.model.views(rigged.state)
    views["batch_norm0.running_mean"][:], views["batch_norm0.running_variance"][:] = 0.3, 2.0
    return rigged


@over("count", [1, 2, 9])
def test_a_batch_of_few_rows_is_normalised_by_the_running_statistics(rig: Any, spec: Any, count: int) -> None:
    """Normalises the batch as a prediction does. Then the running statistics take it in by its share of rows.

    The layers below still learn.
    """
    rigged, rows = few_rows(rig, spec, count, least_rows=10, momentum=0.2), slice(3, 3 + count)
    views, plan = rigged.model.views(rigged.state), rigged.plan()
    before = {name: view.copy() for name, view in views.items()}
    plan.predict(rigged.address)
    p, label = plan.output()[rows].astype(np.float64), rigged.blocks["label"][rows]
    assert rigged.step(plan) == pytest.approx(-np.log(np.where(label, p, 1 - p)).mean(), rel=1e-5)
    linear = rigged.blocks["numbers"][rows].astype(np.float64) @ before["dense0.weight"] + before["dense0.bias"]
    part, apart = 0.2 * count / 10, linear.mean(0) - 0.3
    np.testing.assert_allclose(views["batch_norm0.running_mean"], 0.3 + part * apart, rtol=1e-5)
    spread = linear.var(0) + (1 - part) * apart**2 - 2   # of the rows about the new mean
    np.testing.assert_allclose(views["batch_norm0.running_variance"], 2 + part * spread, rtol=1e-5)
    assert (views["dense0.weight"] != before["dense0.weight"]).any()


def test_from_least_rows_on_a_batch_is_normalised_by_its_own(rig: Any, spec: Any) -> None:
    found = {}
    for count in (19, 20):
        rigged = few_rows(rig, spec, count, least_rows=20)
        plan = rigged.plan()
        plan.predict(rigged.address)
        p, label = plan.output()[3 : 3 + count].astype(np.float64), rigged.blocks["label"][3 : 3 + count]
        found[count] = rigged.step(plan) + np.log(np.where(label, p, 1 - p)).mean()
    assert abs(found[19]) < 1e-6 < 1e-3 < abs(found[20])


@pytest.mark.parametrize("growth", [4000, 300])
def test_a_stream_is_learned_from_its_first_batches_on(growth: int) -> None:
    """Batches have one row as `init` writes jobs, then two, three, …: about as well as without the norm."""
    losses = []
    for norms in ((), ({"batch_norm": 1e-5},)):
        layers = [{"dense": 16}, *norms, {"dense": 8, "activation": "tanh"}]
        job = {**SMALL_JOB, "model": {"layers": layers}, "train": {"batch_growth": growth, "round_interval": "off"}}
        metrics = streamtrain.fit(job, list(rows(3000))).manifest.metrics["total"]
        losses.append(metrics["log_loss"])
        assert metrics["log_loss"] < 0.75 * metrics["constant_log_loss"], metrics
    assert losses[1] < 1.1 * losses[0]


@over("counted", [1, 40])
def test_running_statistics_that_are_not_finite_are_reported(rig: Any, spec: Any, counted: int) -> None:
    """Checks a value whose square overflows float32, while the loss stays finite."""
    rigged = few_rows(rig, spec, counted)
    rigged.blocks["numbers"][3] = 1e25
    plan = rigged.plan()
    assert np.isfinite(rigged.step(plan, learning_rate=0.0)) and plan.step.not_finite == 1


def test_layers_of_one_name_share_what_runs(rig: Any, spec: Any) -> None:
    """Each takes its step on it, in their order, as a module that PyTorch calls twice."""
    graph = [
        {"name": "a", "dense": 4, "of": "input"}, {"name": "b", "batch_norm": 1e-5, "momentum": 0.25, "of": "a"},
        {"name": "c", "dense": 4, "activation": "tanh", "of": "b"}, {"name": "d", "like": "b", "of": "c"},
    ]  # fmt: skip
    rigged = rig(spec(graph=graph))
    views, norm = rigged.model.views(rigged.state), torch.nn.BatchNorm1d(4, momentum=0.25).double()
    assert [name for name in views if "running" in name] == ["b.running_mean", "b.running_variance"]
    with torch.no_grad():
        norm.bias[:] = torch.tensor(views["b.shift"])
        wa, ba, wc, bc = (torch.tensor(views[name], dtype=torch.float64)
                          for name in ("a.weight", "a.bias", "c.weight", "c.bias"))  # fmt: skip
        counts = rigged.blocks["weight"][: rigged.rows, 0] > 0
        x = torch.tensor(rigged.blocks["numbers"][: rigged.rows][counts], dtype=torch.float64)
        norm(torch.tanh(norm(x @ wa + ba) @ wc + bc))
    rigged.step(rigged.plan())
    np.testing.assert_allclose(views["b.running_mean"], norm.running_mean, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(views["b.running_variance"], norm.running_var, rtol=1e-4)


@over("name", ["batch_norm", "layer_norm"])
def test_it_starts_as_no_scale_and_belongs_to_the_group_of_norms(rig: Any, spec: Any, name: str) -> None:
    given = spec(layers=[{"dense": 4}, {name: 1e-5}])
    given["optimizer"] = {"name": "sgd", "groups": {"norm": {"rate_factor": 0}}}
    views = (model := Model(given)).views(model.initial_state(3))
    starts = {"scale": 1.0, "shift": 0.0, "running_mean": 0.0, "running_variance": 1.0}
    its = {part: views[f"{name}0.{part}"].tolist() for part in starts if f"{name}0.{part}" in views}
    assert its == {part: [starts[part]] * 4 for part in [*starts][: 4 if name == "batch_norm" else 2]}
    rigged = rig(given)
    views, plan = rigged.model.views(rigged.state), rigged.plan()
    before = {each: view.copy() for each, view in views.items()}
    rigged.step(plan)
    changed = {each for each in before if not np.array_equal(before[each], views[each])}
    assert "dense0.weight" in changed and not changed & {f"{name}0.scale", f"{name}0.shift"}
    assert (f"{name}0.running_mean" in changed) == (name == "batch_norm")
