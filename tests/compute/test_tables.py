"""Tables and bags: the entry that leads its bucket, rows of any size, and the largest of a bag as PyTorch has it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain import _native
from streamtrain.compute import ops
from streamtrain.compute.ops._touched import example_touched
from streamtrain.compute.ops.first_seen import slots_of
from tests.compute.test_ops import arguments, assert_close, outcomes

SLOT_OF = 0x9E3779B1   # native/base/first_seen.h: a slot is the upper bits of bucket times this
ROWS = 300
OF_TABLES = ("embedding_forward", "embedding_gradient", "adam_rows", "adagrad_rows", "gradient_sum_rows")
OF_BAGS = ("bag_forward", "bag_gradient")
LEARNED = ("table", "p", "a", "b", "totals")   # what has a table's shape


def leads(isa: str, buckets: int, ends: Any, index: Any, weight: Any) -> tuple[Any, Any]:
    """Returns what the kernel finds of each entry, and the reference."""
    found, expected = np.full(len(index), -7, np.int32), np.full(len(index), -7, np.int32)
    seen = np.zeros(slots_of(len(index)), np.int64)
    given = [len(ends), len(index), buckets, len(seen), ends, index, weight, seen]
    _native.call_kernel("bag_lead", "", [*given, found], isa)
    ops.get("bag_lead").reference(*given, expected)
    return found, expected


@over("isa", _native.supported_isas())
@over("share", [0.0, 0.3, 1.0])
def test_the_first_of_each_bucket_leads(isa: str, share: float) -> None:
    """Few buckets, many, and ones that all want the same slot; `share` of the rows have no weight."""
    random = np.random.default_rng(1)
    ends = np.cumsum(random.integers(0, 80, ROWS)).astype(np.int32)
    entries, weight = int(ends[-1]), (random.random((ROWS, 1)) >= share).astype(np.float32)
    back = pow(SLOT_OF, -1, 1 << 32)
    same = np.array([bucket for k in range(1, 400) if (bucket := k * back % (1 << 32)) < 1 << 31])
    for drawn in (random.integers(0, 50, entries), random.integers(0, 1 << 22, entries), random.choice(same, entries)):
        found, expected = leads(isa, (1 << 31) - 1, ends, drawn.astype(np.int32), weight)
        assert np.array_equal(found, expected)


@over("isa", _native.supported_isas())
def test_a_gradient_of_minus_0_stays_one(isa: str) -> None:
    ends, lead, gradient = np.array([2, 3], np.int32), np.array([0, 1, 0], np.int32), np.full((3, 1), 5.0)
    _native.call_kernel("bag_gradient", "", [2, 3, 1, 1, 0, ends, None, np.full((2, 1), -0.0, np.float32), lead, 0,
                                             gradient], isa)  # fmt: skip
    assert np.signbit(gradient[:2]).all() and not gradient[:2].any() and gradient[2] == 5


@over("name", [*OF_TABLES, *OF_BAGS])
@over("dim", [1, 7, 8, 9, 16, 17, 80])
def test_rows_of_any_size(name: str, dim: int) -> None:
    """Sizes with a body of their own and those beside them, each instruction set to the same bits."""
    op = ops.get(name)

    def example(random: np.random.Generator, n: int) -> dict[str, Any]:
        if name in OF_TABLES:
            batch, plain = example_touched(random, n, dim), op.example(random, n)
            learned = {each: [abs(random.normal(size=table.shape)) for table in batch["table"]] for each in LEARNED}
            return plain | batch | {each: learned[each] for each in LEARNED if each in plain}
        given = {**op.example(random, n), "dim": dim, "width": dim + 5, "at": 2}
        sizes = {**given, "rows": n}
        for arg in op.args:
            if given.get(arg.name) is not None and arg.shape[-1:] in (("dim",), ("width",)):
                given[arg.name] = abs(random.normal(size=[sizes[str(axis)] for axis in arg.shape]))
        return given

    sized = replace(op, example=example)
    for n in (2, 78, 300):
        expected, bits = arguments(sized, "", n), set()
        op.reference(*expected)
        for isa in _native.supported_isas():
            found = arguments(sized, "", n)
            _native.call_kernel(name, "", found, isa)
            mine = [value for value in outcomes(op, found) if isinstance(value, np.ndarray)]
            its = [value for value in outcomes(op, expected) if isinstance(value, np.ndarray)]
            for one, other in zip(mine, its, strict=True):
                assert_close(one, other, op.tolerance)
            bits.add(b"".join(value.tobytes() for value in mine))
        assert len(bits) == 1


@over("n", [1, 50, 700])
def test_the_largest_of_a_bag_is_pytorchs(n: int) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
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
