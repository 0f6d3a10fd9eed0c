"""Random draws by seed and place: weights at the start, of the variance that is said, and what dropout leaves out."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from looped import over

from streamtrain import _native
from streamtrain.compute import initializers
from streamtrain.compute.model import Model
from streamtrain.compute.spec import flat
from streamtrain.compute.start import ZERO
from streamtrain.job import Job
from streamtrain.job.mistakes import JobMistakes

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
    columns = {name: {**told, **given} if name in TABLES else told for name, told in COLUMNS.items()}
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
