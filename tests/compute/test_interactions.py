"""What multiplies inputs with each other, against PyTorch: the cross network, and a factorization machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain import _native
from streamtrain.compute.model import Model
from streamtrain.errors import UserMistake

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
DEEP_FM = [
    {"name": "fields", "dense": 12, "of": "input"}, {"name": "pairs", "factorization": "fields", "width": 3},
    {"name": "hidden", "dense": 4, "activation": "tanh", "of": "fields"}, {"name": "deep", "dense": 1, "of": "hidden"},
    {"name": "output", "add": ["pairs", "deep"]},
]  # fmt: skip


def dense(x: Any, of: Any, name: str) -> Any:
    return x @ of[f"{name}.weight"] + of[f"{name}.bias"]


def crossed(x: Any, of: Any) -> Any:
    y = x
    for at in range(3):
        y = x * dense(y, of, f"cross0.{at}") + y
    return dense(y, of, "output")


def deep_fm(x: Any, of: Any) -> Any:
    fields = dense(x, of, "fields")
    each = fields.reshape(len(x), 4, 3)
    pairs = ((each.sum(1) ** 2 - (each**2).sum(1)) / 2).sum(1, keepdim=True)
    return pairs + dense(torch.tanh(dense(fields, of, "hidden")), of, "deep")


@over(("given", "net"), [({"layers": [{"cross": 3}]}, crossed), ({"graph": DEEP_FM}, deep_fm)])
def test_it_learns_as_in_pytorch(rig: Any, spec: Any, given: Any, net: Any) -> None:
    """From the same start, by gradient descent on the same batch."""
    rigged = rig(spec(**given, optimizer="sgd"))
    rigged.blocks["numbers"][:] *= 0.3
    views, plan = rigged.model.views(rigged.state), rigged.plan()
    names = [block.name for block in rigged.model.blocks if block.group == "parameters"]
    of = {name: torch.tensor(views[name], dtype=torch.float64, requires_grad=True) for name in names}
    batch = {name: torch.tensor(block[: rigged.rows], dtype=torch.float64) for name, block in rigged.blocks.items()}
    optimizer = torch.optim.SGD(of.values(), lr=0.05)
    known = torch.nn.functional
    for _ in range(10):
        optimizer.zero_grad()
        losses = known.binary_cross_entropy_with_logits(net(batch["numbers"], of), batch["label"], reduction="none")
        loss = (losses * batch["weight"]).sum() / batch["weight"].sum()
        assert rigged.step(plan, learning_rate=0.05) == pytest.approx(loss.item(), rel=1e-5)
        loss.backward()
        optimizer.step()
    for name in names:
        np.testing.assert_allclose(views[name], of[name].detach().numpy(), rtol=1e-4, atol=1e-5, err_msg=name)


@over(("fields", "width"), [(2, 1), (26, 16), (5, 100)])
def test_pairs_of_fields_to_the_bit_on_all_and_without_cancellation(fields: int, width: int) -> None:
    """Fields far from 0: half of (sum)^2 - sum of squares in float32 would lose what is left."""
    rng = np.random.default_rng(fields)
    x = rng.normal(0, 1, (40, fields, width)).astype(np.float32)
    x[:, 0] += 1000
    wide = x.astype(np.float64)
    exact = ((wide.sum(1) ** 2 - (wide**2).sum(1)) / 2).sum(1)
    bits = set()
    for isa in _native.supported_isas():
        y = np.zeros(40, np.float32)
        _native.call_kernel("factorization_forward", "", [40, fields, width, x, y], isa)
        assert abs(y - exact).max() <= 1e-5 * abs(wide[:, 0]).max() * fields * np.sqrt(width)
        bits.add(y.tobytes())
    assert len(bits) == 1
    with np.errstate(all="ignore"):
        plain = ((x.sum(1) ** 2 - (x**2).sum(1)) / 2).sum(1)
    assert abs(y - exact).max() < abs(plain - exact).max() / 2


@over("width", [5, 12, 13])
def test_fields_are_all_of_one_width(spec: Any, width: int) -> None:
    graph = [DEEP_FM[0], {"name": "pairs", "factorization": "fields", "width": width}]
    message = f"model.graph.pairs: factorization of fields: expected two or more fields of {width} columns, got 12"
    with pytest.raises(UserMistake, match=message):
        Model(spec(graph=graph))
