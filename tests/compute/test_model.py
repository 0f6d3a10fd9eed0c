"""Contracts of models: backends agree, gradients are right, padding and weights do nothing, transforms keep state; the
weights at the start, and what dropout leaves out."""

from __future__ import annotations

import gc
import hashlib
import json
from itertools import product
from typing import Any

import numpy as np
import pytest
from looped import over
from slots import set_rows
from stateful_examples import examples, from_example, ids

from streamtrain import _native
from streamtrain.compute import initializers, losses, optimizers
from streamtrain.compute.builder import PREDICTING
from streamtrain.compute.initial_values import ZERO
from streamtrain.compute.model import Model, aligned
from streamtrain.compute.spec import flat
from streamtrain.compute.state import block_view
from streamtrain.errors import UserMistake
from streamtrain.job import Job
from streamtrain.job.mistakes import JobMistakes
from tests.compute.shapes import BACKENDS, HIDDEN, SHAPES, each_shape, name_of
from tests.state.test_rules import MEANINGS

# one of those that differ in the optimizer alone: differences need none
DIFFERENTIATED = [shape for shape in SHAPES if shape.get("optimizer", "sgd") == "sgd"]


@each_shape
def test_all_backends_agree_and_all_instruction_sets_to_the_bit(rig: Any, spec: Any, shape: dict[str, Any]) -> None:
    bits, found = set(), {}
    for backend, isa in [("reference", ""), *(("cpu", isa) for isa in _native.supported_isas())]:
        rigged = rig(spec(**shape))
        plan = rigged.plan(backend, isa)
        rigged.statistics(plan)
        losses_seen = [rigged.step(plan) for _ in range(4)]
        plan.predict(rigged.address)
        learned = rigged.learned.copy()
        scores = {name: block.copy() for name, block in rigged.model.scores(rigged.share).items()}
        found[backend + isa] = (losses_seen, learned, plan.output()[:50].copy(), scores)
        assert plan.step.not_finite == 0 and np.isfinite(learned).all()
        if backend == "cpu":
            bits.add((rigged.state.tobytes(), rigged.share.tobytes(), plan.output().tobytes()))
    assert len(bits) == 1
    expected, cpu = found.pop("reference"), found["cpu" + _native.supported_isas()[-1]]
    np.testing.assert_allclose(cpu[0], expected[0], rtol=2e-4)
    np.testing.assert_allclose(cpu[1], expected[1], rtol=1e-4, atol=2e-3)   # Adam's first steps: a sign decides
    np.testing.assert_allclose(cpu[2], expected[2], rtol=2e-3, atol=2e-3)
    for name, block in expected[3].items():
        if name.endswith(_native.DISTINCT):   # logits that are nearly equal may be so
            np.testing.assert_allclose(cpu[3][name][1:, 1:].sum(0), block[1:, 1:].sum(0), rtol=1e-9)
        elif name != "score.histogram":
            np.testing.assert_allclose(cpu[3][name], block, rtol=2e-3, atol=2e-3, err_msg=name)


@over("name", losses.names())
def test_gradients_of_each_loss_agree_with_differences(rig: Any, spec: Any, name: str) -> None:
    for example in losses.get(name).EXAMPLES:
        assert_gradients(rig(spec(loss=name, layers=[HIDDEN], optimizer="sgd", **example)))


@over("shape", DIFFERENTIATED, name_of, sampled=True)
def test_gradients_agree_with_differences(rig: Any, spec: Any, shape: dict[str, Any]) -> None:
    assert_gradients(rig(spec(**{**shape, "optimizer": "sgd"})))


def assert_gradients(rigged: Any) -> None:
    """Checks that a step of descent takes off the slopes of the loss."""
    rigged.statistics(rigged.plan())
    before, learned = rigged.state.copy(), rigged.learned
    gradient, plan = learned.copy(), rigged.plan("precise")
    rigged.step(plan, learning_rate=1.0)
    gradient -= learned
    names = [b for b in rigged.model.blocks if b.group == "parameters"]
    rng = np.random.default_rng(5)
    for block in names:
        for element in rng.choice(block.count, min(block.count, 6), replace=False):
            at, found, places = block.offset // 4 + element, [], []
            for sign in (1, -1):
                rigged.state[:] = before
                learned[at] += np.float32(sign * 2e-6)
                places.append(float(learned[at]))
                found.append(rigged.step(plan, learning_rate=0.0))
            slope = (found[0] - found[1]) / (places[0] - places[1])
            assert gradient[at] == pytest.approx(slope, rel=2e-3, abs=1e-5), f"{block.name}[{element}]"


@each_shape
def test_work_goes_up_to_the_rows_present(rig: Any, spec: Any, shape: dict[str, Any]) -> None:
    """The CPU reads nothing that lies behind them in a slot, or is left in the workspace of a fuller batch."""
    bits = set()
    for capacity, fuller, junk in ((50, False, 0), (1000, False, 0xFF), (64, True, 0xFF)):   # 0xFF: all floats are NaN
        rigged = rig(spec(**shape), rows=50, capacity=capacity)
        plan = rigged.plan()
        if fuller:
            state, share = rigged.state.copy(), rigged.share.copy()
            set_rows(rigged.slot, capacity)
            rigged.step(plan)
            rigged.state[:], rigged.share[:] = state, share
            set_rows(rigged.slot, 50)
        for block in rigged.blocks.values():
            block[50:].view(np.uint8)[:] = junk
        rigged.statistics(plan)
        for number in range(1, 4):
            rigged.step(plan, number=number)
        plan.predict(rigged.address)
        assert np.isfinite(plan.output()[:50]).all() and plan.step.rows == 50
        bits.add((rigged.state.tobytes(), rigged.share.tobytes(), plan.output()[:50].tobytes()))
    assert len(bits) == 1


@each_shape
def test_a_batch_without_weight_changes_nothing(rig: Any, spec: Any, shape: dict[str, Any]) -> None:
    rigged = rig(spec(**shape))
    plan = rigged.train(1)
    state, share = rigged.state.copy(), rigged.share.copy()
    rigged.blocks["weight"][:] = 0
    for block in rigged.blocks.values():
        if block.dtype == np.float32 and block is not rigged.blocks["weight"]:
            block[:] = np.inf
    for head in rigged.model.parsed.heads:
        if head.label_dtype == "f32":
            rigged.blocks[head.block][:] = np.nan
    assert rigged.step(plan) == 0
    assert plan.step.weight_sum == 0 and plan.step.not_finite == 0
    assert rigged.state.tobytes() == state.tobytes() and rigged.share.tobytes() == share.tobytes()


@each_shape
def test_stopping_and_going_on_is_no_difference(rig: Any, spec: Any, shape: dict[str, Any]) -> None:
    whole, halves = rig(spec(**shape)), rig(spec(**shape))
    whole.train(4)
    for _ in range(2):
        halves.train(2)
    assert whole.state.tobytes() == halves.state.tobytes()


def test_rows_of_weight_zero_do_not_matter(rig: Any, spec: Any) -> None:
    bits = set()
    for junk in (0.0, 1e30, -7.0):
        rigged = rig(spec(layers=[{"dense": 5}], categories=1))
        at = rigged.rows // 2   # of weight 0
        rigged.blocks["numbers"][at], rigged.blocks["label"][at] = junk, np.nan
        plan = rigged.plan()
        rigged.statistics(plan)
        rigged.step(plan)
        bits.add(rigged.state.tobytes())
    assert len(bits) == 1


POWERS = (-149, -130, -40, 100, 120)


@over(("loss", "isa", "power"), lambda: product(losses.names(), _native.supported_isas(), POWERS), sampled=True)
def test_only_the_ratios_of_weights_matter(rig: Any, spec: Any, loss: str, isa: str, power: int) -> None:
    """Weights at both ends of float32: 1 / their sum is infinite in float32 below 3e-39, or not a normal number."""
    found = []
    for scale in (1.0, 2.0**power):
        rigged = rig(spec(loss=loss, layers=[{"dense": 4}], optimizer="sgd"))
        rigged.blocks["weight"][:50, 0] = scale * np.where(np.arange(50) % 3, 1, 2)
        plan = rigged.plan(isa=isa)
        found.append((rigged.step(plan), rigged.learned.tobytes()))
        assert plan.step.not_finite == 0
    assert found[1] == (pytest.approx(found[0][0], rel=1e-12), found[0][1])


@over(("optimizer", "backend"), lambda: product(optimizers.names(), BACKENDS))
def test_a_step_that_is_not_finite_is_flagged(rig: Any, spec: Any, optimizer: str, backend: str) -> None:
    rigged = rig(spec(optimizer=optimizer))
    plan = rigged.train(1, backend=backend)
    assert plan.step.not_finite == 0
    rigged.blocks["numbers"][3] = np.nan
    rigged.step(plan)
    assert plan.step.not_finite == 1


@over("backend", BACKENDS)
def test_a_gradient_that_only_poisons_adams_moments_is_flagged(rig: Any, spec: Any, backend: str) -> None:
    rigged = rig(spec(numbers=1))
    rigged.model.views(rigged.state)["output.weight"][:] = 0
    rigged.blocks["numbers"][3] = 1e23   # weight 0: the loss is finite; g is about 1e21, g^2 is not a float
    plan = rigged.plan(backend)
    loss = rigged.step(plan)
    views = rigged.model.views(rigged.state)
    assert np.isfinite(loss) and np.isfinite(views["output.weight"]).all()
    assert plan.step.not_finite == 1 and not np.isfinite(views["adam.v.output.weight"]).all()


def test_categories_outside_the_table_touch_nothing_else(rig: Any, spec: Any) -> None:
    rigged = rig(spec(categories=1))
    rigged.blocks["categories"][:] = 1 << 30
    rigged.blocks["categories"][0] = -5
    assert rigged.train(1).step.not_finite == 0


def test_layout_order_alignment_and_names(spec: Any) -> None:
    model = Model(spec(layers=[{"dense": 4, "activation": "relu"}], categories=1, standardize=True))
    names = [block.name for block in model.blocks]
    assert names[:5] == ["dense0.weight", "dense0.bias", "output.weight", "output.bias", "c0.embedding"]
    assert names[5] == "adam.m.dense0.weight" and names[10] == "adam.v.dense0.weight"
    scores = [name.replace("score.", "window.") for name in names if name.startswith("score.")]
    assert [name.replace("distinct", "curves") for name in scores] == names[-6:-1]
    assert names[-1] == "window.closed"   # behind all others: a ring keeps them as one piece
    assert set(names[15:-6]) == {
        "standardize.numbers", "score.loss", "label.classes", "score.hits", "score.rows", "score.histogram",
        "score.distinct", "optimizer.steps",
    }
    assert all(block.offset % 64 == 0 for block in model.blocks) and model.learned_bytes % 64 == 0
    assert {b.rule for b in Model(spec() | {"average_optimizer_state": False}).blocks} >= {"learned", "local"}


@over(
    ("loss", "seen", "expected"),
    [
        ("binary_cross_entropy", [899.5, 99.5], [0.1]),
        ("binary_cross_entropy", [0.0, 0.0], [0.5]),
        ("softmax_cross_entropy", [6.5, 2.5, 0.0], [0.7, 0.3, 0.05]),
    ],
)
@over("backend", BACKENDS)
def test_a_fresh_model_predicts_what_the_constant_prediction_knows(
    rig: Any, spec: Any, loss: str, seen: list[float], expected: list[float], backend: str
) -> None:
    rigged = rig(spec(loss=loss))
    rigged.state[:] = rigged.model.initial_state(1)
    block = next(block for block in rigged.model.blocks if block.name == "label.classes")
    block_view(block, rigged.base, block.part_offset)[:] = seen
    plan = rigged.plan(backend)
    plan.predict(rigged.address)
    shares = np.array(expected) if len(expected) == 1 else np.array(expected) / sum(expected)
    np.testing.assert_allclose(plan.output()[:50], np.tile(shares, (50, 1)), rtol=1e-6)


def test_a_fresh_state_depends_on_the_seed_alone(spec: Any) -> None:
    model = Model(spec(layers=[{"dense": 64, "activation": "relu"}], categories=1))
    first, again, other = model.initial_state(5), model.initial_state(5), model.initial_state(6)
    assert first.tobytes() == again.tobytes() != other.tobytes()
    weight = model.views(first)["dense0.weight"]
    limit = np.sqrt(6 / weight.shape[0])
    assert abs(weight).max() <= limit and weight.std() == pytest.approx(limit / np.sqrt(3), rel=0.1)
    bias = model.views(first)["dense0.bias"]
    assert abs(bias).max() <= limit and bias.std() == pytest.approx(limit / np.sqrt(3), rel=0.25)
    assert not model.views(first)["output.weight"].any() and not first[model.learned_bytes :].any()
    embedded = Model(spec(layers=[{"dense": 64, "activation": "relu"}] * 2, numbers=0, categories=1))
    views = embedded.views(embedded.initial_state(5))
    assert not views["dense0.bias"].any() and not views["dense1.bias"].any()  # they read no numbers of the batch
    assert hashlib.sha256(first[: model.learned_bytes].tobytes()).hexdigest()[:16] == "98467cb2bde03b22"


def test_a_standardised_label_is_undone_at_prediction(rig: Any, spec: Any) -> None:
    rigged = rig(spec(loss="mean_squared_error", standardize=True, standardize_label=True))
    plan = rigged.plan()
    rigged.statistics(plan)
    for _ in range(400):
        rigged.step(plan, learning_rate=0.05)
    plan.predict(rigged.address)
    label = rigged.blocks["label"][:50, 0]
    assert label.mean() > 25
    np.testing.assert_allclose(plan.output()[:50, 0], label, atol=0.3)


def test_a_plan_that_only_predicts_needs_no_label_weight_or_share(rig: Any, spec: Any) -> None:
    rigged = rig(spec(layers=[HIDDEN], standardize=True))
    expected = rigged.plan()
    expected.predict(rigged.address)
    layout = _native.SlotLayout.make(64, 1, [("numbers", "f64", 5)])
    slot = aligned(layout.slot_bytes)
    set_rows(slot, 50)
    offset = layout.blocks[0].offset
    slot[offset : offset + 64 * 40].view(np.float64)[:] = rigged.blocks["numbers"].reshape(-1)
    plan = rigged.model.compile("cpu", layout, rigged.state, rigged.base, phases=PREDICTING)
    plan.predict(int(slot.ctypes.data))
    np.testing.assert_array_equal(plan.output()[:50], expected.output()[:50])


def test_a_slot_layout_that_does_not_fit_is_refused(rig: Any, spec: Any) -> None:
    rigged = rig(spec())
    layout = _native.SlotLayout.make(64, 1, [("numbers", "f32", 4), ("label", "f32", 1), ("weight", "f32", 1)])
    with pytest.raises(UserMistake, match="slot block numbers: expected f32 of width 5, got f32 of width 4"):
        rigged.model.compile("cpu", layout, rigged.state, rigged.base, rigged.share)
    with pytest.raises(UserMistake, match=r"state: expected .* bytes or more, got 64"):
        rigged.model.compile("cpu", rigged.layout, rigged.state[:64], rigged.base, rigged.share)
    with pytest.raises(UserMistake, match="multiple of 64"):
        rigged.model.compile("cpu", rigged.layout, rigged.state.ctypes.data + 4, rigged.base, rigged.share)


def test_a_slot_of_more_rows_than_the_plans_capacity_is_refused(rig: Any, spec: Any) -> None:
    rigged = rig(spec())
    plan = rigged.plan()
    set_rows(rigged.slot, 65)
    for phase in (plan.train, plan.enqueue, plan.predict):
        with pytest.raises(UserMistake, match="plan: expected a slot of at most 64 rows, got 65"):
            phase(rigged.address)


def test_the_plan_outlives_its_python_owners(rig: Any, spec: Any) -> None:
    rigged = rig(spec())
    plan = rigged.model.compile("cpu", rigged.layout, rigged.state, rigged.base, rigged.share)
    output = plan.output()
    del plan
    gc.collect()
    assert output.shape == (64, 1) and np.isfinite(output).all()


def test_sgd_with_a_momentum_does_as_momentum_does(rig: Any, spec: Any) -> None:
    found = []
    for optimizer in ({"name": "sgd", "momentum": 0.8}, {"name": "momentum", "momentum": 0.8}, {"name": "sgd"}):
        rigged = rig(spec(layers=[HIDDEN], categories=1) | {"optimizer": optimizer})
        rigged.train()
        found.append({name: view.tobytes() for name, view in rigged.model.views(rigged.state).items()})
    heavy, same, light = found
    assert {name.removeprefix("sgd.") for name in heavy} == {name.removeprefix("momentum.") for name in same}
    assert heavy["dense0.weight"] == same["dense0.weight"] != light["dense0.weight"]
    assert heavy["sgd.u.c0.embedding"] == same["momentum.u.c0.embedding"]
    assert not [name for name in light if name.startswith("sgd.")]


def state_blocks(model: Model) -> list[Any]:
    return [block for block in model.blocks if block.group == "statistics" and "made_" in block.name]


def fold(rigged: Any) -> None:
    """Leaves what a round of one worker does."""
    for block in state_blocks(rigged.model):
        base, share = (block_view(block, memory, block.part_offset) for memory in (rigged.base, rigged.share))
        base[...] = MEANINGS[block.rule](base.copy(), [share], [1.0])[""]
        share[...] = 0


@over(("name", "example"), examples(), ids=ids())
def test_a_row_sees_the_rounds_start(rig: Any, spec: Any, name: str, example: dict[str, Any]) -> None:
    """The same batch again in a round: the same predictions, but for what was learned; another round: others."""
    rigged = rig(spec(held=[from_example(name, example)], numbers=0, layers=[HIDDEN]))
    plan = rigged.plan()
    seen = []
    for _ in range(4):
        for _ in range(2):
            rigged.step(plan, learning_rate=0.0)
            plan.predict(rigged.address)
            seen.append(plan.output()[: rigged.rows].copy())
        fold(rigged)
    assert all(np.array_equal(one, other) for one, other in zip(seen[::2], seen[1::2], strict=True))
    assert not np.array_equal(seen[0], seen[-1])


@over(("name", "example"), examples(), ids=ids())
def test_the_backends_agree_over_rounds(rig: Any, spec: Any, name: str, example: dict[str, Any]) -> None:
    found, bits = {}, set()
    for backend, isa in [("reference", ""), *(("cpu", isa) for isa in _native.supported_isas())]:
        rigged = rig(spec(held=[from_example(name, example)], layers=[HIDDEN]))
        plan = rigged.plan(backend, isa)
        for _ in range(3):
            rigged.fill()
            rigged.step(plan)
            rigged.step(plan)
            fold(rigged)
        plan.predict(rigged.address)
        blocks = [block_view(block, rigged.base, block.part_offset).copy() for block in state_blocks(rigged.model)]
        found[backend + isa] = (plan.output()[: rigged.rows].copy(), blocks)
        if backend == "cpu":
            bits.add((rigged.state.tobytes(), rigged.base.tobytes(), plan.output().tobytes()))
    assert len(bits) == 1
    expected, cpu = found["reference"], found["cpu" + _native.supported_isas()[-1]]
    np.testing.assert_allclose(cpu[0], expected[0], rtol=2e-3, atol=2e-3)
    for one, other in zip(cpu[1], expected[1], strict=True):
        assert one.any()
        np.testing.assert_allclose(one, other, rtol=1e-12)


@over(("name", "example"), examples(), ids=ids())
def test_rows_without_weight_are_not_gathered(rig: Any, spec: Any, name: str, example: dict[str, Any]) -> None:
    shares = []
    for noise in (0, 5):
        rigged = rig(spec(held=[from_example(name, example)]))
        row = rigged.rows // 2   # of weight 0
        for block in ("held.numbers", "held.categories"):
            if block in rigged.blocks:
                rigged.blocks[block][row] = noise
        rigged.step(rigged.plan())
        shares.append([block_view(each, rigged.share, each.part_offset).copy() for each in state_blocks(rigged.model)])
    for one, other in zip(*shares, strict=True):
        np.testing.assert_array_equal(one, other)


INPUTS, OUTPUTS = 300, 100
VARIANCE = {"glorot": 2 / (INPUTS + OUTPUTS), "he": 2 / INPUTS, "lecun": 1 / INPUTS, "zeros": 0.0}


def weights(spec: Any, seed: int = 3, **layer: Any) -> dict[str, np.ndarray[Any, Any]]:
    model = Model(spec(numbers=INPUTS, layers=[{"dense": OUTPUTS, "activation": "relu", **layer}]))
    return model.views(model.initial_state(seed))


@over("name", initializers.names())
def test_it_has_the_mean_and_variance_that_are_said(spec: Any, name: str) -> None:
    start = weights(spec, init=name)["dense0.weight"].astype(np.float64)
    variance = VARIANCE[name.partition("_")[0]]
    assert start.var() == pytest.approx(variance, rel=0.03) and abs(start.mean()) <= 4 * (variance / start.size) ** 0.5
    if name.endswith("normal"):
        z = start / variance**0.5
        assert [np.mean(abs(z) < bound) for bound in (1, 2)] == pytest.approx([0.683, 0.954], abs=0.01)
        assert (z**4).mean() == pytest.approx(2.9, abs=0.1)   # of twelve uniform numbers; 3 of a normal one
    if name.endswith("uniform"):
        assert abs(start).max() == pytest.approx((3 * variance) ** 0.5, rel=1e-3)


def test_it_goes_by_the_seed(spec: Any) -> None:
    one, same, other = (weights(spec, seed, init="he_normal")["dense0.weight"] for seed in (3, 3, 4))
    assert np.array_equal(one, same) and not np.array_equal(one, other)


def test_a_head_starts_at_0_unless_it_says_otherwise(spec: Any) -> None:
    for said, starts_at_0 in (({}, True), ({"init": "glorot_normal"}, False)):
        model = Model(spec(graph=[{"name": "output", "dense": 1, "of": "input", **said}]))
        assert (not model.views(model.initial_state(1))["output.weight"].any()) is starts_at_0


COLUMNS = {
    "x{1..3}": {}, "zone": {"kind": "category", "buckets": 300, "embed": 100},
    "tags": {"kind": "category", "buckets": 300, "embed": 100, "list": True},
    "user": {"kind": "category", "vocabulary": {"capacity": 299, "admit": 1}, "embed": 100}, "y": {"role": "label"},
}  # fmt: skip
TABLES = ("zone", "tags", "user")


def job_of(init: str | None) -> Job:
    given = {} if init is None else {"init": init}
    columns = {name: {**column, **given} if name in TABLES else column for name, column in COLUMNS.items()}
    layers = [{"cross": 2, **given}, {"dense": 4, **given}]
    return Job.from_tables({"name": "job", "kafka": {"bootstrap.servers": "x:1"}, "columns": columns,
                            "model": {"layers": layers}})  # fmt: skip


def start_of(spec: dict[str, Any]) -> bytes:
    return Model(spec).initial_state(3).tobytes()


@over("name", initializers.names())
def test_each_starts_a_cross_layer_and_tables(name: str) -> None:
    """A table's rows are its inputs, the numbers of one its outputs."""
    model = Model(job_of(name).model_spec())
    blocks = model.views(model.initial_state(3))
    for its in (*(f"{table}.embedding" for table in TABLES), *(f"cross0.{at}.weight" for at in range(2))):
        inputs, outputs = blocks[its].shape
        chosen = initializers.get(name).start(inputs, outputs)
        expected = np.zeros_like(blocks[its])
        if chosen != ZERO:
            chosen.into(expected, 3, list(model._begins).index(its))
        assert blocks[its].tobytes() == expected.tobytes(), its
        assert blocks[its].any() == (name != "zeros"), its


@over("name", [None, *initializers.words()])
def test_it_comes_back_from_a_manifest_byte_for_byte(name: str | None) -> None:
    job = job_of(name)
    spec = job.model_spec()
    again = Job.from_effective(json.loads(json.dumps(job.effective())))
    assert json.dumps(again.model_spec()) == json.dumps(spec) and again.schema.digest() == job.schema.digest()
    assert start_of(again.model_spec()) == start_of(json.loads(json.dumps(spec))) == start_of(spec)


def test_auto_is_what_stands_without() -> None:
    spec, without = (job_of(name).model_spec() for name in ("auto", None))
    assert start_of(spec) == start_of(without)
    tables = [*spec["input"]["categories"], *spec["input"]["bags"], *spec["input"]["held"]]
    assert len(tables) == 3 and not any("init" in table for table in tables)
    blocks = Model(spec).views(Model(spec).initial_state(3))
    for table in TABLES:
        assert 0.049 < abs(blocks[f"{table}.embedding"]).max() <= 0.05


def test_a_table_refuses_another_word() -> None:
    with pytest.raises(JobMistakes, match=r"zone.*init: expected one of auto, glorot_normal, .*got 'xavier'"):
        job_of("xavier")


COUNT = 200_000


def left(random: int, stream: int, rate: float, count: int = COUNT) -> Any:
    """Ones after dropout."""
    step = _native.StepBlock()
    step.random = random
    y = np.zeros(count, np.float32)
    _native.call_kernel("dropout", "", [count, 0, step, stream, rate, y, np.ones(count, np.float32)])
    return y


@over("rate", [0.0, 0.1, 0.5, 0.99])
def test_a_share_is_0_and_the_mean_stays(rate: float) -> None:
    y = left(7, 0, rate)
    deviation = np.sqrt(rate * (1 - rate) / COUNT)
    assert abs((y == 0).mean() - rate) <= 5 * deviation
    assert set(y.tolist()) <= {0.0, float(np.float32(1) / (np.float32(1) - np.float32(rate)))}
    for every in (2, 4, 16, 64):   # nothing goes by the place
        for first in range(every):
            assert abs((y[first::every] == 0).mean() - rate) <= 6 * deviation * np.sqrt(every)


def test_numbers_go_by_the_steps_key_and_the_op_alone() -> None:
    first = left(2**63, 1, 0.5)
    assert np.array_equal(first, left(2**63, 1, 0.5)) and np.array_equal(first[:1000], left(2**63, 1, 0.5, 1000))
    for other in (left(2**63 + 1, 1, 0.5), left(2**63, 2, 0.5), left(5, 1, 0.5)):
        assert abs((first == other).mean() - 0.5) < 0.01


def test_what_is_left_out_is_left_out(rig: Any, spec: Any) -> None:
    """Also where it is no number: it is chosen away, not multiplied."""
    step = _native.StepBlock()
    y = np.zeros(1000, np.float32)
    _native.call_kernel("dropout", "", [1000, 0, step, 0, 0.5, y, np.full(1000, np.inf, np.float32)])
    assert set(y.tolist()) == {0.0, np.inf}


def test_each_layer_and_each_step_draws_its_own(rig: Any, spec: Any) -> None:
    one = {"dense": 7, "activation": "tanh"}
    losses = {}
    for layers in ([one, {"dropout": 0.5}, one, {"dropout": 0.5}], [one, {"dropout": 0.5}, one], [one, one]):
        for random in (3, 4):
            rigged = rig(spec(layers=layers))
            plan = rigged.plan()
            plan.step.random = random
            losses[len(layers), random] = rigged.step(plan)
    assert losses.pop((2, 3)) == losses.pop((2, 4))
    assert len(set(losses.values())) == len(losses)
    rigged = rig(spec(layers=[{"dropout": 0.5}, {"dropout": 0.5}]))
    streams = [call.args[3] for call in flat(rigged.model.program(rigged.layout).phases["train"])
               if call.op == "dropout"]  # fmt: skip
    assert streams == [0, 1]   # the inputs learn nothing: no way back


def test_a_prediction_is_that_of_the_network_without_it(rig: Any, spec: Any) -> None:
    one = {"dense": 7, "activation": "tanh"}
    found = []
    for layers in ([one, {"dropout": 0.9}], [one]):
        rigged = rig(spec(layers=layers))
        plan = rigged.plan()
        plan.step.random = 77
        plan.predict(rigged.address)
        found.append(plan.output()[:50].copy())
    assert np.array_equal(*found)
