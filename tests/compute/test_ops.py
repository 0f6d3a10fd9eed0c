"""The contract of every op: each instruction set agrees with the reference, and with the others to the bit, also under
values, weights and indexes of hostile records; tables and activations against PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain import _native
from streamtrain.compute import activations, ops
from streamtrain.compute.ops.first_seen import slots_of
from streamtrain.compute.spec import DTYPES, TEMPLATE_TYPES, Arg, Array, Op
from streamtrain.errors import StreamtrainError
from tests.oracles import ops as oracles
from tests.oracles.ops._touched import example_touched
from tests.oracles.ops.draws import philox

SIZES = (0, 1, 2, 31, 32, 33, 256, 1000)
CASES = [(op, types, n) for op in ops.load().values() for types in op.types for n in SIZES]
ACTIVATION_GRADIENTS = [f"{name}_gradient" for name in activations.names()]
STEP_FIELDS = ("loss_sum", "weight_sum", "not_finite", "learning_rate", "active_rows", "gradient_norm")


def dtype_of(arg: Arg, types: str) -> type:
    return DTYPES[TEMPLATE_TYPES[types] if arg.dtype == "T" else arg.dtype]


def copy_of_step(step: _native.StepBlock) -> _native.StepBlock:
    copy = _native.StepBlock()
    for name in (*STEP_FIELDS, "number", "random"):
        setattr(copy, name, getattr(step, name))
    return copy


def arguments(op: Op, types: str, n: int, example: Callable[..., dict[str, Any]] | None = None) -> list[Any]:
    """A fresh set of arguments, the same at every call."""
    given, sizes, values = (example or oracles.of(op.name).example)(np.random.default_rng(7), n), {}, []
    for arg in op.args:
        if arg.role == "size":
            sizes[arg.name] = int(given[arg.name])
    for arg in op.args:
        if arg.dtype == "step":
            values.append(copy_of_step(given[arg.name]))
        elif arg.role in ("size", "value"):
            values.append(given[arg.name])
        elif arg.optional and given.get(arg.name) is None:
            values.append(None)
        elif arg.of:
            arrays = [np.array(content, dtype_of(arg, types), order="C") for content in given[arg.name]]
            assert len(arrays) == sizes[arg.of]
            values.append(arrays)
        else:
            shape = tuple(dim if isinstance(dim, int) else sizes[dim] for dim in arg.shape)
            content = given.get(arg.name, np.zeros(shape))
            values.append(np.ascontiguousarray(np.broadcast_to(content, shape), dtype_of(arg, types)).copy())
    return values


def copies(values: list[Any]) -> list[Any]:
    """The same arguments in memory of their own."""
    return [
        copies(value) if isinstance(value, list)
        else copy_of_step(value) if isinstance(value, _native.StepBlock)
        else value.copy() if isinstance(value, np.ndarray)
        else value
        for value in values
    ]  # fmt: skip


def those_of(op: Op, values: list[Any], *roles: str) -> list[Any]:
    """Returns the values of these roles; of several arrays one by one."""
    mine = [value for arg, value in zip(op.args, values, strict=True) if arg.role in roles]
    return [one for value in mine for one in (value if isinstance(value, list) else [value])]


def outcomes(op: Op, values: list[Any]) -> list[Any]:
    return those_of(op, values, "out", "part", "changed")


def assert_close(found: Any, expected: Any, tolerance: float) -> None:
    if isinstance(found, _native.StepBlock):
        for name in STEP_FIELDS:
            assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=tolerance), name
    elif found is not None and found.size:
        if found.dtype.kind in "iu":
            np.testing.assert_array_equal(found, expected)
        else:
            scale = max(1.0, float(np.abs(expected[np.isfinite(expected)]).max(initial=0)))
            limit = tolerance if found.dtype == np.float32 else min(tolerance, 1e-12)
            np.testing.assert_allclose(found, expected, rtol=limit, atol=limit * scale)


@over(("op", "types", "n"), CASES, ids=lambda case: f"{case[0].name}-{case[1]}-{case[2]}")
def test_every_instruction_set_agrees_with_the_reference(op: Op, types: str, n: int) -> None:
    before = arguments(op, types, n)
    expected = copies(before)
    with np.errstate(all="ignore"):
        oracles.of(op.name).reference(*expected)
    bits = set()
    for isa in _native.supported_isas():
        found = copies(before)
        _native.call_kernel(op.name, types, found, isa)
        for one, other in zip(outcomes(op, found), outcomes(op, expected), strict=True):
            assert_close(one, other, oracles.of(op.name).tolerance)
        for one, other in zip(*(those_of(op, each, "given") for each in (found, before)), strict=True):
            if isinstance(one, np.ndarray):
                np.testing.assert_array_equal(one, other)
        results = [v for v in outcomes(op, found) if v is not None]
        bits.add(tuple(
            tuple(getattr(v, name) for name in STEP_FIELDS) if isinstance(v, _native.StepBlock) else v.tobytes()
            for v in results
        ))
    assert len(bits) == 1, "bits differ between instruction sets"


def test_a_declaration_that_differs_from_the_kernel_is_refused() -> None:
    op = ops.get("sgd")
    changed = Op(op.name, op.args[:-1], op.each)
    with pytest.raises(StreamtrainError, match=r"compute/ops/sgd.py: kernel sgd<> for .*: expected \(i64, i64, step\*"):
        ops.check(changed, "compute/ops/sgd.py")


def test_every_kernel_built_has_an_op() -> None:
    assert {kernel[0] for kernel in _native.kernels()} == set(ops.load())


@over("name", ACTIVATION_GRADIENTS)
def test_activation_gradients_agree_with_differences(name: str) -> None:
    x = np.random.default_rng(3).normal(0, 3, 1000)
    x = x[abs(x) > 1e-3]   # a relu has no slope at 0
    forward, h = name.replace("_gradient", "_forward"), 1e-6
    y, above, below, dx = (np.zeros_like(x) for _ in range(4))
    for into, at in ((y, x), (above, x + h), (below, x - h)):
        _native.call_kernel(forward, "double", [len(x), into, np.ascontiguousarray(at)])
    _native.call_kernel(name, "double", [len(x), dx, np.ones_like(x), x, y])
    np.testing.assert_allclose(dx, (above - below) / (2 * h), atol=1e-8)


@over("isa", [isa for isa in _native.supported_isas() if isa != "v2"])
def test_elementwise_kernels_are_vector_code(isa: str) -> None:
    """Half a nanosecond an element, 5 on an old and busy machine; libm takes 17 to 40, as in v2, which has no fma.

    The best of many, beside that of a kernel which computes nothing.
    """
    import time

    def least(op: Op, isa: str = isa) -> float:
        values, best = arguments(op, "float", n), 1e9
        for _ in range(200):
            start = time.perf_counter_ns()
            _native.call_kernel(op.name, "float", values, isa)
            best = min(best, (time.perf_counter_ns() - start) / n)
        return best

    n = 4096
    nothing = least(ops.get("relu_forward"))
    for op in ops.load().values():
        if op.each == ("n",) and "float" in op.types:
            bar = max(3, 6 * nothing, least(op, "v2") / 3)
            assert (took := least(op)) < bar, f"{op.name}: {took:.2f} ns an element, expected less than {bar:.2f}"


VALUES: dict[str, Sequence[float]] = {
    "denormal": (1e-45, -1e-45, 1.1754942e-38, -1e-40),
    "zero": (0.0, -0.0),
    "huge": (1e30, -1e30),
    "infinite": (np.inf, -np.inf),
    "nan": (np.nan, -np.nan),
    "mixed": (1e-45, -1e-40, 0.0, -0.0, 1e30, -1e30, np.inf, -np.inf),
}
WEIGHTS: dict[str, Sequence[float]] = {
    "weight_0": (0.0, -0.0), "weight_tiny": (1e-45, 1e-40), "weight_huge": (1e30, 1e38),
    "weight_mixed": (0.0, 1e-45, 1.0, 1e30),
}
INDEXES: dict[str, Sequence[int]] = {"index": (-1, -(2**31), 2**31 - 1)}
KINDS: dict[str, Sequence[float]] = {**VALUES, **WEIGHTS, **INDEXES}
OVERFLOWS = ("huge", "infinite", "nan", "mixed")   # what a float may hold no longer on the way
ALL_OF_THEM = ("weight_0", "weight_tiny")   # so that the batch has no other weight
BY_ROW = (("rows",), ("entries",), ("n",))
LEARNED = ("p", "table", "w", "bias")
FINITE = ("numbers", "label", "scale", "table", "weights")   # decoders refuse others; so is a table as a step begins
FROM_RECORDS = ("categories", "index", "label", "hashes")   # integers that a record may have chosen
SHARE = 0.2   # of the elements
ROUNDING = 2.0**-23   # of a float


def takes(op: Op, arg: Arg, kind: str, content: Any) -> bool:
    """Returns whether this kind is put into the argument. Values are put into numbers of rows and into parameters; all
    that an optimizer keeps is finite, and so are statistics."""
    names = {each.name for each in op.args}
    if isinstance(content, list):
        return all(takes(op, arg, kind, one) for one in content)
    if arg.role not in ("given", "changed") or not isinstance(content, np.ndarray):
        return False
    if kind in WEIGHTS:
        return arg.name == "weight"
    if kind in INDEXES:
        return arg.name in FROM_RECORDS and content.dtype.kind == "i" and "lead" not in names
    if arg.name == "weight" or content.dtype.kind != "f" or ("settings" in names and arg.name in "abc"):
        return False
    if arg.name in FINITE and not np.isfinite(VALUES[kind]).all():
        return False
    if arg.name == "label" and (content == np.floor(content)).all():   # a class, a count: decoders see to it
        return False
    return arg.name == "g" or (arg.dtype != "f64" and (arg.shape[:1] in BY_ROW or arg.name in LEARNED))


def put_into(op: Op, kind: str, given: Mapping[str, Any]) -> bool:
    """Puts a kind into an op's arguments by name, in place; the step block gets the weights' sum. Whether there was
    a place for it."""
    rng, found = np.random.default_rng(11), False
    for arg in op.args:
        content = given[arg.name]
        for one in arrays_of(content) if takes(op, arg, kind, content) else ():
            put = (rng.random(one.shape) < SHARE) | (kind in ALL_OF_THEM) | (one.size == 1)
            one[put] = rng.choice(np.array(KINDS[kind], one.dtype), int(put.sum()))
            found = True
    if isinstance(given.get("step"), _native.StepBlock) and "weight" in given:
        given["step"].weight_sum = float(np.maximum(given["weight"], 0).sum(dtype=np.float64))
        given["step"].active_rows = int(np.greater(given["weight"], 0).sum())
    return found


def widened(op: Op, values: Sequence[Any], seed: int = 0) -> list[Any]:
    """Arguments in double; with a seed each float that is read is a rounding away, and each double as many as a sum of
    its rows has."""
    rng, found = np.random.default_rng(seed), []

    def wide(arg: Arg, content: Any) -> Any:
        if isinstance(content, list):
            return [wide(arg, one) for one in content]
        if not isinstance(content, np.ndarray) or content.dtype.kind != "f":
            return content
        rounding = ROUNDING if content.dtype == np.float32 else len(content) * float(np.finfo(np.float64).eps)
        moved = 1 + rounding * rng.uniform(-1, 1, content.shape) if seed and arg.role in ("given", "changed") else 1.0
        return content.astype(np.float64) * moved if seed or content.dtype == np.float32 else content

    for arg, content in zip(op.args, values, strict=True):
        found.append(wide(arg, content))
    return found


def fill_outputs(op: Op, given: Mapping[str, Any]) -> None:
    """With what shows where it is read before it is written."""
    for arg in op.args:
        for content in arrays_of(given[arg.name]):
            if arg.role in ("out", "part", "scratch") and isinstance(content, np.ndarray):
                content[...] = np.nan if content.dtype.kind == "f" else 77


def arrays_of(content: Any) -> list[Any]:
    """Returns the arrays of an argument that is one, or several."""
    return content if isinstance(content, list) else [content]


def bits(content: Any, fields: Sequence[str]) -> Any:
    """Returns bits to compare. All NaNs count as the same."""
    if isinstance(content, _native.StepBlock):
        return tuple(repr(getattr(content, name)) for name in fields)
    values: Array = content.copy()
    if values.dtype.kind == "f":
        values[np.isnan(values)] = np.nan
    return values.tobytes()


HOSTILE_SIZES = (0, 1, 33, 1000)
OF_TYPES = [(op, types) for op in ops.load().values() for types in op.types]
MOVED = 4   # times that the arguments are moved by a rounding
OFTEN = 8   # how much further than that a float may lie


def given(op: Op, types: str, n: int, kind: str = "") -> list[Any] | None:
    """Fresh arguments, None where the op has no place for the kind."""
    named = dict(zip([arg.name for arg in op.args], arguments(op, types, n), strict=True))
    found = put_into(op, kind, named) if kind else True
    fill_outputs(op, named)
    return list(named.values()) if found else None


def meaning(op: Op, values: list[Any] | None, wide: bool = True, seed: int = 0) -> list[Any]:
    assert values is not None
    values = [copy_of_step(value) if isinstance(value, _native.StepBlock) else value for value in values]
    values = widened(op, values, seed) if wide else values
    with np.errstate(all="ignore"):
        oracles.of(op.name).reference(*values)
    return values


def named_outcomes(op: Op, values: list[Any]) -> Iterator[tuple[str, Any]]:
    for arg, value in zip(op.args, values, strict=True):
        if arg.role in ("out", "part", "changed") and value is not None:
            yield from ((arg.name, one) for one in arrays_of(value))


def assert_near(kind: str, name: str, found: Array, expected: Array, limit: Array) -> None:
    """Asserts that a value is within the limit of the meaning, where a float can hold it.

    A value that overflowed on the way may be infinite or NaN, but not a wrong number. A NaN of the meaning is a NaN
    here too, gradients aside.
    """
    with np.errstate(all="ignore"):
        finite = np.isfinite(expected.astype(found.dtype))
        far = finite & ~(abs(found.astype(np.float64) - expected) <= limit)
    if kind in OVERFLOWS:
        far &= np.isfinite(found)
    if kind == "nan" and name.startswith(("d", "da", "db")):
        return   # of two branches that a NaN does not choose between
    assert not far.any(), (name, found[far][:3], expected[far][:3], limit[far][:3])
    if kind == "nan":
        assert not (np.isnan(expected) & np.isfinite(found)).any(), f"{name}: a NaN became a number"


def compare(op: Op, types: str, n: int, kind: str, found: list[Any], usual: list[Any]) -> None:
    """With the meaning. `usual`: what the op gives without the kind."""
    exact, narrow = meaning(op, given(op, types, n, kind)), meaning(op, given(op, types, n, kind), wide=False)
    near = [meaning(op, given(op, types, n, kind), seed=1 + turn) for turn in range(MOVED)]
    step = next((value for value in found if isinstance(value, _native.StepBlock)), None)
    if kind in OVERFLOWS and step is not None and step.not_finite:
        return   # the batch is left out
    columns = [[value for _, value in named_outcomes(op, values)] for values in (exact, narrow, usual, *near)]
    for (name, value), its, plain, before, *moved in zip(named_outcomes(op, found), *columns, strict=True):
        if isinstance(value, _native.StepBlock):
            for field in STEP_FIELDS:
                assert getattr(value, field) == pytest.approx(getattr(its, field), rel=1e-5, nan_ok=True), (kind, field)
        elif value.dtype.kind != "f":
            if kind not in OVERFLOWS:
                np.testing.assert_array_equal(value, plain, f"{kind}: {name}")
        elif value.size:
            with np.errstate(all="ignore"):
                spread = np.max([abs(other.astype(np.float64) - its) for other in moved], 0)
            largest = max(1.0, float(abs(before[np.isfinite(before)]).max(initial=0)))
            tolerance = oracles.of(op.name).tolerance
            tolerance = tolerance if value.dtype == np.float32 else min(tolerance, 1e-12)
            limit = OFTEN * spread + tolerance * (abs(its.astype(np.float64)) + largest)
            assert_near(kind, name, value, its.astype(np.float64), limit)


@over(("op", "types"), OF_TYPES, lambda case: f"{case[0].name}-{case[1]}", sampled=True)
def test_hostile_records(op: Op, types: str) -> None:
    for n in HOSTILE_SIZES:
        usual = meaning(op, given(op, types, n))
        for kind in KINDS:
            if given(op, types, n, kind) is None:
                continue
            found, seen = [], set()
            for isa in _native.supported_isas():
                found = given(op, types, n, kind) or []
                _native.call_kernel(op.name, types, found, isa)
                seen.add(tuple(bits(value, STEP_FIELDS) for _, value in named_outcomes(op, found)))
            assert len(seen) == 1, f"{kind}: bits differ between instruction sets"
            compare(op, types, n, kind, found, usual)


OF_SCORES = {("given", "z"), ("out", "loss")}
LOSSES = [op.name for op in ops.load().values() if {(arg.role, arg.name) for arg in op.args} >= OF_SCORES]


@over("name", LOSSES)
def test_the_loss_of_a_score_that_is_no_number_is_none(name: str) -> None:
    """So that the batch is left out, and not trained as one that was predicted right."""
    op = ops.get(name)
    values = arguments(op, "", 4)
    named = dict(zip([arg.name for arg in op.args], values, strict=True))
    named["z"][:], named["weight"][:] = np.nan, 1
    _native.call_kernel(name, "", values)
    assert np.isnan(named["loss"]).all()


def test_every_kind_has_ops_to_be_put_into() -> None:
    reached = {kind: [op.name for op in ops.load().values() if given(op, op.types[0], 33, kind)] for kind in KINDS}
    assert all(len(names) > 5 for names in reached.values()), reached
    assert all("score_binary" in reached[kind] for kind in WEIGHTS)


SLOT_OF = 0x9E3779B1   # native/base/first_seen.h: a slot is the upper bits of bucket times this
ROWS = 300
OF_TABLES = ("embedding_forward", "embedding_gradient", "adam_rows", "adagrad_rows", "gradient_sum_rows")
OF_BAGS = ("bag_forward", "bag_gradient")
OF_A_TABLE = ("table", "p", "a", "b", "totals")   # what has a table's shape


def leads(isa: str, buckets: int, ends: Any, index: Any, weight: Any) -> tuple[Any, Any]:
    """Returns what the kernel finds of each entry, and the reference."""
    found, expected = np.full(len(index), -7, np.int32), np.full(len(index), -7, np.int32)
    seen = np.zeros(slots_of(len(index)), np.int64)
    given = [len(ends), len(index), buckets, len(seen), ends, index, weight, seen]
    _native.call_kernel("bag_lead", "", [*given, found], isa)
    oracles.of("bag_lead").reference(*given, expected)
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
            batch, plain = example_touched(random, n, dim), oracles.of(op.name).example(random, n)
            learned = {each: [abs(random.normal(size=table.shape)) for table in batch["table"]] for each in OF_A_TABLE}
            return plain | batch | {each: learned[each] for each in OF_A_TABLE if each in plain}
        given = {**oracles.of(op.name).example(random, n), "dim": dim, "width": dim + 5, "at": 2}
        sizes = {**given, "rows": n}
        for arg in op.args:
            if given.get(arg.name) is not None and arg.shape[-1:] in (("dim",), ("width",)):
                given[arg.name] = abs(random.normal(size=[sizes[str(axis)] for axis in arg.shape]))
        return given

    for n in (2, 78, 300):
        expected, bits = arguments(op, "", n, example), set()
        oracles.of(op.name).reference(*expected)
        for isa in _native.supported_isas():
            found = arguments(op, "", n, example)
            _native.call_kernel(name, "", found, isa)
            mine = [value for value in outcomes(op, found) if isinstance(value, np.ndarray)]
            its = [value for value in outcomes(op, expected) if isinstance(value, np.ndarray)]
            for one, other in zip(mine, its, strict=True):
                assert_close(one, other, oracles.of(op.name).tolerance)
            bits.add(b"".join(value.tobytes() for value in mine))
        assert len(bits) == 1


@over("n", [1, 50, 700])
def test_the_largest_of_a_bag_is_pytorchs(n: int) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
    given = oracles.of("bag_max_forward").example(np.random.default_rng(n), n)
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


ENDS = [0.0, -0.0, 1e-45, -1e-45, 1e-39, -1e-39, 5e-324, -5e-324, 88.8, -88.8, -104.5, 710.0, -746.0, 1e19, -1e19,
        1e30, -1e30, 3e38, -3e38]  # fmt: skip
TANH_FORM = {"approximate": "tanh"}   # of gelu, which PyTorch has in two


def run(name: str, x: Any, isa: str = "") -> tuple[Any, Any]:
    """y, and dy/dx."""
    types = "float" if x.dtype == np.float32 else "double"
    y, dx = np.zeros_like(x), np.zeros_like(x)
    _native.call_kernel(f"{name}_forward", types, [len(x), y, x], isa)
    _native.call_kernel(f"{name}_gradient", types, [len(x), dx, np.ones_like(x), x, y], isa)
    return y, dx


@over("name", activations.names())
@over(("dtype", "close"), [(np.float32, 2e-6), (np.float64, 1e-12)])
def test_against_pytorch(name: str, dtype: Any, close: float) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
    known = torch.nn.functional
    theirs = getattr(known, name, None) or getattr(known, name.replace("_", ""))
    given = np.random.default_rng(1).normal(0, 4, 5000).astype(dtype)
    x = torch.tensor(given, dtype=torch.float64, requires_grad=True)
    expected = theirs(x, **(TANH_FORM if name == "gelu" else {}))
    expected.sum().backward()
    y, dx = run(name, given)
    far = abs(given) > 18 if name == "softplus" else np.zeros(len(given), bool)   # where PyTorch's is a line
    np.testing.assert_allclose(y[~far], expected.detach().numpy()[~far], rtol=close, atol=close)
    close = max(close, 1e-8)   # PyTorch's 1 / 6 is a float's
    np.testing.assert_allclose(dx[~far], x.grad.numpy()[~far], rtol=close, atol=close)


@over("name", activations.names())
@over("dtype", [np.float32, np.float64])
def test_at_the_ends_of_the_numbers(name: str, dtype: Any) -> None:
    """Compares with the reference, and demands the same bits on every instruction set. A NaN stays NaN."""
    with np.errstate(over="ignore", under="ignore"):
        x = np.array(ENDS, dtype)
    forward, gradient = (oracles.of(f"{name}_{which}") for which in ("forward", "gradient"))
    expected, slope = np.zeros_like(x), np.zeros_like(x)
    with np.errstate(all="ignore"):
        forward.reference(len(x), expected, x)
        gradient.reference(len(x), slope, np.ones_like(x), x, expected)
    bits = set()
    for isa in _native.supported_isas():
        y, dx = run(name, x, isa)
        assert np.isfinite(y).all() and np.isfinite(dx).all()
        np.testing.assert_allclose(y, expected, rtol=2e-6, atol=1e-35)
        np.testing.assert_allclose(dx, slope, rtol=2e-6, atol=1e-7 if dtype == np.float32 else 1e-15)
        odd = np.array([np.nan, np.inf, -np.inf], dtype)
        values, _ = run(name, odd, isa)
        assert np.isnan(values[0])
        bits.add((y.tobytes(), dx.tobytes(), values[1:].tobytes()))
    assert len(bits) == 1


@over("name", activations.names())
def test_a_vertex_is_what_a_layer_has_built_in(rig: Any, spec: Any, name: str) -> None:
    inside = [{"name": "a", "dense": 7, "activation": name, "init": "he_uniform", "of": "input"}]
    apart = [{"name": "a", "dense": 7, "init": "he_uniform", "of": "input"},
             {"name": "b", "activation": "a", "function": name}]  # fmt: skip
    states = []
    for vertices in (inside, apart):
        rigged = rig(spec(graph=vertices))
        rigged.train()
        states.append(rigged.state.tobytes())
    assert states[0] == states[1]


@over(("types", "dtype", "ulps"), [("float", np.float32, 2.5), ("double", np.float64, 4.0)])
@over(("kernel", "exact"), [("sigmoid_forward", lambda x: 1 / (1 + np.exp(-x))), ("tanh_forward", np.tanh)])
def test_our_own_exponential_is_within_a_few_ulp(types: str, dtype: type, ulps: float, kernel: str, exact: Any) -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(0, s, 20000) for s in (1e-3, 0.3, 3, 30)]).astype(dtype)
    x = x[abs(x) < 87]   # beyond, float's sigmoid is 0 where it could be subnormal
    y = np.zeros_like(x)
    _native.call_kernel(kernel, types, [len(x), y, x])
    expected = exact(x.astype(np.longdouble))
    error = np.abs(y - expected) / np.spacing(np.maximum(np.abs(expected), np.finfo(dtype).tiny).astype(dtype))
    assert error.max() <= ulps
    with np.errstate(all="ignore"):
        edges = np.array([*ENDS, 1e-30, 87.4, -87.4, np.inf, -np.inf, np.nan], dtype)
    y = np.zeros_like(edges)
    _native.call_kernel(kernel, types, [len(edges), y, edges])
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(y, exact(edges), rtol=1e-6, atol=1e-37)


def test_philox_known_answers() -> None:
    """Random123's kat_vectors for philox4x32-10, through the reference; the kernel is compared with the reference."""
    assert [hex(w) for w in philox(0, np.array([0]), 0)[0]] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]
    ones = 0xFFFFFFFFFFFFFFFF
    found = philox(ones, np.array([ones], np.uint64), ones)[0]
    assert [hex(w) for w in found] == ["0x408f276d", "0x41c83b0e", "0xa20bc7c6", "0x6d5451fd"]


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
