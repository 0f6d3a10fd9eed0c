"""Bags whose numbers are the largest of each column, against PyTorch's EmbeddingBag."""

from __future__ import annotations

import numpy as np
import pytest
from looped import over

from streamtrain import _native
from streamtrain.compute import ops
from streamtrain.compute.ops.first_seen import slots_of

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")


@over("n", [1, 50, 700])
def test_it_is_that_of_pytorch(n: int) -> None:
    given = ops.get("bag_max_forward").example(np.random.default_rng(n), n)
    rows, dim, buckets = given["rows"], given["dim"], given["buckets"]
    ends, lead = given["ends"], given["lead"]
    used = int(ends[-1])
    index = np.clip(given["index"], 0, buckets - 1)
    index[given["index"] >= buckets] = 0
    table = given["table"]
    x, winner = np.zeros((rows, dim), np.float32), np.zeros((rows, dim), np.int32)
    sizes = [rows, given["entries"], buckets, dim, dim, 0]
    _native.call_kernel("bag_max_forward", "", [*sizes, ends, index, None, table, x, winner])
    its = torch.tensor(table, dtype=torch.float64, requires_grad=True)
    starts = torch.tensor([0, *ends[:-1].tolist()])
    found = torch.nn.functional.embedding_bag(
        torch.tensor(index[:used], dtype=torch.int64), its, starts, mode="max")
    assert np.array_equal(x, found.detach().numpy())

    dx = np.random.default_rng(n + 1).normal(size=(rows, dim)).astype(np.float32)
    weight, seen = np.ones((rows, 1), np.float32), np.zeros(slots_of(given["entries"]), np.int64)
    _native.call_kernel("bag_lead", "", [rows, given["entries"], buckets, len(seen), ends, index, weight, seen, lead])
    gradient = np.zeros((given["entries"], dim))
    sizes = [rows, given["entries"], dim, dim, 0]
    _native.call_kernel("bag_max_gradient", "", [*sizes, ends, None, dx, winner, lead, gradient])
    found.backward(torch.tensor(dx, dtype=torch.float64))
    mine = np.zeros((buckets, dim))
    for entry in range(used):
        if lead[entry] == entry:
            mine[index[entry]] = gradient[entry]
    np.testing.assert_allclose(mine, its.grad.numpy(), atol=1e-12)
