"""The phases of a plan, the function of a window's rows that a model minimises, what a step leaves in its block; and
arguments that are tables of addresses."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from looped import over
from slots import set_rows

from streamtrain import _native
from streamtrain.compute import backends, losses, objective
from streamtrain.compute import input as inputs
from streamtrain.compute.backends.cpu import TILE_ROWS
from streamtrain.compute.bound import at_address
from streamtrain.compute.builder import PREDICTING
from streamtrain.compute.metrics import summary
from streamtrain.compute.model import Model, _slot_offsets, aligned
from streamtrain.compute.moments import MOMENTS
from streamtrain.compute.objective import Objective
from streamtrain.compute.spec import Call, Program, Ref, Refs, flat, size_bytes
from streamtrain.errors import UserMistake
from tests.compute.shapes import BACKENDS, HIDDEN, SHAPES, each_shape
from tests.oracles import ops as oracles
from tests.oracles.moments import example as example_moments

RATE = 0.5
CLIPPED = {"categories": 2, "bags": [0], "layers": [HIDDEN], "optimizer": "lamb", "numbers": 5}


def objective_of(rigged: Any, isa: str = "") -> Objective:
    return Objective(rigged.model, rigged.layout, [rigged.slot], rigged.state, isa)


@each_shape
def test_the_gradient_is_what_a_step_follows(rig: Any, spec: Any, shape: dict[str, Any]) -> None:
    """SGD without settings of its own goes by rate x gradient; a table's rows that no row has stay."""
    model_spec = spec(**{**shape, "optimizer": "sgd"})
    builder, _ = Model(model_spec).built(1)
    if builder.draws or builder.averages:
        return   # no window has such an objective
    for rows in (50, 700):
        one, other = rig(model_spec, rows=rows, capacity=rows), rig(model_spec, rows=rows, capacity=rows)
        objective = objective_of(one)
        before = objective.start()
        value, gradient = objective(before)
        plan = other.plan()
        assert value == pytest.approx(other.step(plan, RATE), rel=1e-12), rows
        after = objective_of(other).start()
        np.testing.assert_allclose(after, before - RATE * gradient, rtol=3e-7, atol=3e-7, err_msg=f"{rows} rows")
        assert abs(gradient).max() > 0, rows


def test_it_changes_nothing_but_the_parameters_and_has_equal_bits(rig: Any, spec: Any) -> None:
    found = set()
    for isa in _native.supported_isas():
        rigged = rig(spec(layers=[HIDDEN], categories=2, standardize=True), rows=700, capacity=700)
        state = rigged.state.copy()
        objective = objective_of(rigged, isa)
        value, gradient = objective(objective.start())
        assert np.array_equal(state, rigged.state)
        found.add((value, gradient.tobytes()))
    assert len(found) == 1


def outcome(rigged: Any, backend: str, threads: int, phases: tuple[str, ...]) -> list[bytes]:
    """The outcome of three steps, each of these phases, one after the other; and of a prediction."""
    plan = rigged.plan(backend, phases=(*phases, "predict"), threads=threads)
    rigged.statistics(plan)
    results = []
    for number in (1, 2, 3):
        plan.step.learning_rate, plan.step.number, plan.step.random = 0.01, number, 77 + number
        for phase in phases:
            getattr(plan, phase)(rigged.address)
        step = plan.step
        results.append((step.rows, step.loss_sum, step.weight_sum, step.not_finite))
    plan.predict(rigged.address)
    return [repr(results).encode(), rigged.state.tobytes(), rigged.share.tobytes(), plan.output().tobytes()]


def assert_parts_are_whole(rig: Any, model_spec: dict[str, Any], backend: str, rows: int, threads: int = 1) -> None:
    one, other = (outcome(rig(model_spec, rows=rows, capacity=rows), backend, threads, phases)
                  for phases in (("train",), _native.PLAN_PHASES["train"]))  # fmt: skip
    assert one == other


@each_shape
def test_a_step_is_its_parts_one_after_the_other(rig: Any, spec: Any, shape: dict[str, Any]) -> None:
    assert_parts_are_whole(rig, spec(**shape), "cpu", 700)


@over("backend", [*BACKENDS, "precise"])
@over("limit", ["clip_norm", "clip_group_norm"])
def test_one_that_clips_by_norm_is_too(rig: Any, spec: Any, backend: str, limit: str) -> None:
    model_spec = spec(**CLIPPED)
    model_spec["optimizer"] |= {limit: 0.01, "l2": 0.1}
    for rows, threads in ((50, 1), (700, 1), (700, 3)):
        assert_parts_are_whole(rig, model_spec, backend, rows, threads)


@over("backend", [*BACKENDS, "precise"])
def test_one_whose_values_a_backend_keeps_between_its_parts_is_too(rig: Any, spec: Any, backend: str) -> None:
    layers = [HIDDEN, {"batch_norm": 1e-3}, {"dropout": 0.3}, {"dense": 4, "activation": "gelu"}]
    assert_parts_are_whole(rig, spec(layers=layers, standardize=True, categories=1), backend, 50)


def summed(rigged: Any, phases: tuple[str, ...]) -> dict[str, bytes]:
    """The sums of two gradients over all rows."""
    program = rigged.model.program(rigged.layout, phases)
    memory = [int(part.ctypes.data) for part in (rigged.state, rigged.base, rigged.share)]
    plan = backends.get("cpu").compile(program, (memory[0], memory[1], memory[2]))
    for phase in 2 * phases:
        getattr(plan, phase)(rigged.address)
    sizes = {name: (dtype, shape) for name, (dtype, shape) in rigged.model.built(1)[0].buffers.items()}
    return {
        name: at_address(plan.work_address + offset, size_bytes(*sizes[name])).tobytes()
        for (space, name), offset in program.offsets.items() if space == "work" and name.startswith("gradient.sum")
    }


@over("shape", [shape for shape in SHAPES if "categories" in shape or "bags" in shape][:12])
def test_an_objective_is_its_parts_one_after_the_other(rig: Any, spec: Any, shape: dict[str, Any]) -> None:
    one, other = (summed(rig(spec(**shape), rows=700, capacity=700), phases)
                  for phases in (("objective",), _native.PLAN_PHASES["objective"]))  # fmt: skip
    assert len(one) > 1 and one == other and any(map(any, one.values()))


def test_no_part_has_a_call_of_another(spec: Any) -> None:
    """The parts together have each call of a step, once."""
    builder, _ = Model(spec(**CLIPPED)).built(64)
    for whole, parts in _native.PLAN_PHASES.items():
        calls = [call for part in parts for call in builder.calls_of(part)]
        assert len(calls) == len(set(map(id, calls))) == len(builder.calls_of(whole)), whole
        assert {id(call) for call in calls} == {id(call) for call in builder.calls_of(whole)}


def test_a_plan_has_the_requested_phases(rig: Any, spec: Any) -> None:
    rigged = rig(spec(layers=[HIDDEN]))
    plan = rigged.plan(phases=PREDICTING)
    plan.predict(rigged.address)
    for phase in (*(getattr(plan, name) for name in _native.PLAN_PHASES if name != "predict"), plan.enqueue):
        with pytest.raises(UserMistake, match="plan: expected a phase that it was compiled for, got"):
            phase(rigged.address)
    other = rigged.plan("reference", phases=PREDICTING)
    with pytest.raises(UserMistake, match="plan: expected a phase that it was compiled for, got train"):
        other.train(rigged.address)


def test_what_is_not_requested_takes_no_memory(rig: Any, spec: Any) -> None:
    rigged = rig(spec(layers=[{"dense": 512, "activation": "tanh"}] * 2), rows=10, capacity=10)
    sizes = {phase: rigged.model.program(rigged.layout, (phase,)).workspace_bytes for phase in _native.PLAN_PHASES}
    parameters = 4 * 512 * 512
    assert sizes["predict"] < parameters < sizes["train"] < 2 * parameters
    assert sizes["evaluate"] < parameters and sizes["objective"] > sizes["train"] + 2 * parameters - 100_000


@over("backend", BACKENDS)
def test_statistics_are_what_a_step_adds_to_the_share(rig: Any, spec: Any, backend: str) -> None:
    model_spec = spec(layers=[HIDDEN], standardize=True, loss="softmax_cross_entropy", classes=3)
    one, other = rig(model_spec), rig(model_spec)
    one.step(one.plan(backend))
    state, plan = other.state.copy(), other.plan(backend, phases=("statistics",))
    plan.statistics(other.address)
    np.testing.assert_array_equal(one.share, other.share)
    assert np.array_equal(state, other.state) and plan.step.weight_sum > 0


TANH = {"dense": 6, "activation": "tanh"}


def with_l2(model_spec: dict[str, Any], **penalties: Any) -> dict[str, Any]:
    return {**model_spec, "optimizer": {"name": "sgd", **penalties}}


def test_rows_cut_otherwise_have_the_same_value_and_gradient(rig: Any, spec: Any) -> None:
    """Each slot by the weights of its rows, which differ."""
    model_spec = with_l2(spec(loss="softmax_cross_entropy", layers=[TANH], categories=2, classes=3), l2=0.2)
    whole = rig(model_spec, rows=500, capacity=500)
    parts = []
    for first, end in ((0, 120), (120, 130), (130, 500)):
        part = rig(model_spec, rows=end - first, capacity=500)
        for name, block in part.blocks.items():
            block[:] = 0
            block[: end - first] = whole.blocks[name][first:end]
        slot = aligned(part.slot.nbytes)
        slot[:] = part.slot
        parts.append(slot)
    state = aligned(whole.state.nbytes)
    state[:] = whole.state
    one, three = objective_of(whole), Objective(whole.model, whole.layout, parts, state)
    x = one.start()
    (value, gradient), (other, its) = one(x), three(x)
    assert value == pytest.approx(other, rel=1e-7)
    np.testing.assert_allclose(its, gradient, atol=1e-6 * abs(gradient).max())


def test_penalties_are_of_their_groups(rig: Any, spec: Any) -> None:
    """Weights and embeddings, whole tables, have them; biases where their group says so."""
    plain = objective_of(rig(spec(layers=[TANH], categories=1)))
    x = plain.start()
    value, gradient = plain(x)
    tables = {"bias": {"l2": 3.0}, "embedding": {"l2": 7.0}}
    with_groups = objective_of(rig(with_l2(spec(layers=[TANH], categories=1), l2=2.0, groups=tables)))
    other, its = with_groups(x)
    l2 = np.full(len(x), 2.0)
    dense = 8 * 6
    l2[dense : dense + 6] = l2[dense + 12] = 3.0   # dense0.bias, output.bias
    l2[dense + 13 :] = 7.0
    assert other == pytest.approx(value + float((l2 * x * x).sum()) / 2, rel=1e-12)
    np.testing.assert_allclose(its - gradient, l2 * x, atol=1e-6)
    with pytest.raises(UserMistake, match="expected l1 = 0 for bias"):
        objective_of(rig(with_l2(spec(), l2=2.0, groups={"bias": {"l1": 0.5}})))


def test_what_has_no_such_function(rig: Any, spec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserMistake, match=r"draws random numbers.*got dropout; leave it out, or use l2"):
        objective_of(rig(spec(layers=[TANH, {"dropout": 0.5}])))
    with pytest.raises(UserMistake, match=r"looks at other rows of a batch.*got batch_norm0\.running_mean"):
        objective_of(rig(spec(layers=[TANH, {"batch_norm": 1e-5}])))
    rigged = rig(spec())
    rigged.blocks["weight"][:] = 0
    with pytest.raises(UserMistake, match="expected a weight above 0"):
        objective_of(rigged)
    monkeypatch.setattr(objective, "MOST_PARAMETERS", 5)
    with pytest.raises(UserMistake, match=r"parameters: expected at most 5.*got 6; give the columns fewer buckets"):
        objective_of(rig(spec()))


def test_a_value_that_overflows_is_too_high(rig: Any, spec: Any) -> None:
    """Parameters beyond float32 are no error."""
    function = objective_of(rig(spec(loss="mean_squared_error")))
    start = function.start()
    value, gradient = function(np.full(function.size, 1e300))
    assert not np.isfinite(value) or not np.isfinite(gradient).all()
    again, gradient = function(start)
    assert np.isfinite(again) and np.isfinite(gradient).all()


NORM = ("gradient_squares", "gradient_squares_rows", "clip_norm", "score_gradient")


@over("loss", losses.names())
@over("backend", BACKENDS)
def test_active_rows_are_those_of_a_weight_above_0(rig: Any, spec: Any, loss: str, backend: str) -> None:
    rigged = rig(spec(loss, layers=[HIDDEN]))
    plan = rigged.plan(backend, phases=("train", "evaluate"))
    for weights in (rigged.blocks["weight"][:50, 0].copy(), np.zeros(50), np.full(50, -1.0)):
        rigged.blocks["weight"][:50, 0] = weights
        for phase in (plan.train, plan.evaluate):
            phase(rigged.address)
            assert plan.step.active_rows == int((weights > 0).sum())
    assert summary(rigged.model.scores(rigged.share))["rows"] == 2 * 49


@over("backend", BACKENDS)
@over("limit", ["clip_norm", "clip_group_norm"])
def test_the_norm_is_that_of_the_gradient_before_it_is_clipped(rig: Any, spec: Any, backend: str, limit: str) -> None:
    """A step of SGD of rate 1 takes the gradient off."""
    model_spec = spec(layers=[HIDDEN], categories=2, bags=[0])
    found = []
    for bound in (1e9, 1e-3):
        model_spec["optimizer"] = {"name": "sgd", limit: bound}
        rigged = rig(model_spec)
        plan, before = rigged.plan(backend), rigged.learned.copy()
        rigged.step(plan, 1.0)
        found.append(plan.step.gradient_norm)
        taken = before - rigged.learned
        if bound > 1:
            assert found[0] == pytest.approx(np.linalg.norm(taken.astype(np.float64)), rel=1e-5)
    assert found[0] == found[1] > 0.1
    rigged.step(plan, 1.0)
    assert summary(rigged.model.scores(rigged.share))["gradient_norm"] == (found[1] + plan.step.gradient_norm) / 2
    assert "gradient_norm" not in rigged.model.figures


@over("backend", BACKENDS)
def test_it_is_0_where_nothing_is_clipped_by_norm_and_costs_nothing(rig: Any, spec: Any, backend: str) -> None:
    rigged = rig(spec(layers=[HIDDEN], categories=2))
    plan = rigged.train(1, backend=backend)
    assert plan.step.gradient_norm == 0 and "gradient_norm" not in summary(rigged.model.scores(rigged.share))
    assert not {call.op for call in rigged.model.built(64)[0].calls_of("train")}.intersection(NORM)


@over("backend", BACKENDS)
def test_it_is_not_finite_where_the_gradient_is_not(rig: Any, spec: Any, backend: str) -> None:
    rigged = rig({**spec(numbers=1), "optimizer": {"name": "sgd", "clip_norm": 1.0}})
    plan = rigged.plan(backend)
    rigged.blocks["weight"][3], rigged.blocks["numbers"][3] = 1, np.nan
    rigged.step(plan)
    assert np.isnan(plan.step.gradient_norm) and plan.step.not_finite == 1
    rigged.blocks["weight"][:] = rigged.blocks["numbers"][:] = 0
    rigged.step(plan)
    assert plan.step.gradient_norm == 0 and plan.step.active_rows == 0


CAPACITY = 5 * TILE_ROWS + 77
SIDE_BY_SIDE = [
    {"name": "a", **TANH, "of": "input"}, {"name": "b", "concat": ["a", "input", "a"]},
    {"name": "c", **TANH, "of": "b"},
]  # fmt: skip
OF_TABLES = ("embedding_forward", "embedding_lead", "embedding_gradient", "adam_rows")


def calls_of(rigged: Any) -> list[Any]:
    return [call for call in flat(rigged.model.program(rigged.layout).phases["train"]) if call.op in OF_TABLES]


def test_all_tables_of_a_batch_are_one_call(rig: Any, spec: Any) -> None:
    calls = calls_of(rig(spec(categories=20, layers=[TANH]), rows=20, capacity=24))
    assert [call.op for call in calls] == list(OF_TABLES)
    for call in calls:
        assert all(len(arg.refs) == 20 for arg in call.args if isinstance(arg, Refs))


def test_their_gradients_take_a_bounded_part_of_a_step(rig: Any, spec: Any) -> None:
    """A large batch has some tables at a time; each of them once, in their order."""
    rigged = rig(spec(categories=20, layers=[TANH]), rows=20, capacity=1000)
    counts = Counter(call.op for call in calls_of(rigged))
    assert counts["embedding_forward"] == 1 and 1 < counts["adam_rows"] < 20
    updates = [call for call in calls_of(rigged) if call.op == "adam_rows"]
    parameters = [next(arg for arg in call.args if isinstance(arg, Refs)).refs for call in updates]
    assert [ref.name for refs in parameters for ref in refs] == [f"c{at}.embedding" for at in range(20)]
    bytes_of = [8 * 1000 * sum(ref.shape[1] for ref in refs) for refs in parameters]
    assert all(size <= inputs.GRADIENT_BYTES or len(refs) == 1 for size, refs in zip(bytes_of, parameters, strict=True))


@over("clip", [0.0, 0.05])
def test_how_many_at_a_time_changes_no_bit(rig: Any, spec: Any, monkeypatch: pytest.MonkeyPatch, clip: float) -> None:
    states = set()
    for limit in (0, 5_000, 1 << 30):
        monkeypatch.setattr(inputs, "GRADIENT_BYTES", limit)
        model_spec = spec(categories=9, layers=[TANH])
        model_spec["optimizer"] = {"name": "adam", "clip_norm": clip}
        rigged = rig(model_spec)
        rigged.train(3, refills=True)
        states.add(rigged.state.tobytes() + rigged.share.tobytes())
    assert len(states) == 1


@over("rows", [1, TILE_ROWS + 1, CAPACITY])
@over("threads", [1, 3])
def test_addresses_go_with_slot_tile_and_thread(rig: Any, spec: Any, rows: int, threads: int) -> None:
    """`a` is what one tile has of each thread, the input lies in a slot: in another one at every other step."""
    found = []
    for backend, count in (("cpu", threads), ("precise", 1)):
        rigged = rig(spec(graph=SIDE_BY_SIDE), rows=rows, capacity=CAPACITY if backend == "cpu" else rows)
        plan, first = rigged.plan(backend, threads=count), rigged.slot
        other = np.empty(len(first) + 64, np.uint8)
        other = other[-other.ctypes.data % 64 :][: len(first)]
        losses = []
        for turn in range(4):
            rigged.fill()
            if turn % 2 and backend == "cpu":
                other[:] = first
                first[4096:] = 0
                rigged.slot = other
            losses.append(rigged.step(plan))
            rigged.slot = first
        found.append((losses, rigged.learned.copy()))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-6)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-6)


def test_another_type_of_array_is_refused() -> None:
    arrays = [np.zeros((2, 1), np.float32), np.zeros((2, 1))]
    given = [2, 2, 2, np.zeros((2, 2), np.int64), arrays, np.zeros((2, 2), np.float32)]
    with pytest.raises(UserMistake, match=r"concat_forward argument 4: expected const f32\*, got an array of another"):
        _native.call_kernel("concat_forward", "", given)


WIDTH = 37
SLOTS = _native.SlotLayout.make(1, 1, [("odd", "u8", 5), ("flags", "u8", WIDTH), ("weight", "f32", 1)])
PARTS = ("mean", "scale", "clip", "low", "high")


def program(moments: np.ndarray, slots: _native.SlotLayout) -> Program:
    """standardize_scale with its uint8 operand in the slot; the scales are the output."""
    flags = Ref("slot", "flags", "u8", (1, WIDTH))
    parts = [Ref("work", name, "f32", (1, WIDTH)) for name in PARTS]
    call = Call("standardize_scale", "float", (WIDTH, Ref("constant", "moments", "f64", moments.shape), flags, *parts))
    size = moments.nbytes + -moments.nbytes % 64
    offsets = {("constant", "moments"): 0, **{("work", name): size + 192 * at for at, name in enumerate(PARTS)}}
    offsets |= _slot_offsets(slots, {"predict": [call]})
    state = _native.StateLayout.make([])
    constants = ((0, moments.tobytes()),)
    phases = {"predict": (call,), **dict.fromkeys(["train"], ())}
    return Program(phases, offsets, size + 192 * 5, constants, parts[1], 1, state,
                   slots.slot_bytes)  # fmt: skip


@over("backend", BACKENDS)
def test_flags_in_a_slot_choose_columns(backend: str) -> None:
    random = np.random.default_rng(3)
    moments = np.ascontiguousarray(example_moments(random, WIDTH), np.float64).reshape(WIDTH, len(MOMENTS))
    chosen = random.integers(0, 2, WIDTH).astype(np.uint8)
    slot = aligned(SLOTS.slot_bytes)
    slot[:] = 0
    set_rows(slot, 1)
    block = SLOTS.blocks[1]
    slot[block.offset : block.offset + WIDTH] = chosen
    nothing = aligned(64)
    addresses = (int(nothing.ctypes.data),) * 3
    plan = backends.get(backend).compile(program(moments, SLOTS), addresses, isa="", device=0)
    plan.predict(int(slot.ctypes.data))
    expected = [np.zeros(WIDTH, np.float32) for _ in PARTS]
    oracles.of("standardize_scale").reference(WIDTH, moments, chosen, *expected)
    np.testing.assert_allclose(plan.output()[0], expected[1], rtol=1e-6)
    assert len(set(plan.output()[0].tolist())) > 3


@over("block", [("flags", "f32", WIDTH), ("flags", "u8", WIDTH - 1), ("flags", "u8", WIDTH, True)])
def test_a_block_of_another_form_is_refused(block: tuple[str, str, int]) -> None:
    with pytest.raises(UserMistake, match=r"flags: expected u8 of width 37, got (f32|u8|ragged u8) of width"):
        program(np.zeros((WIDTH, len(MOMENTS))), _native.SlotLayout.make(1, 1, [block]))
