"""Rules with a meaning of their own: the outer step (Nesterov's on the mean's distance from the round's start), what a
plateau schedule keeps, and rows that are whoever a vocabulary says.
"""

from __future__ import annotations

import numpy as np
import pytest
from looped import over

from streamtrain import _native
from streamtrain.compute.model import Model
from streamtrain.compute.ops.vocabulary import Table, add_value, empty
from streamtrain.compute.schedules.plateau import STANDING
from tests.state.block_rounds import Array, BlockRounds, Spec

RATE, MOMENTUM = 0.9, 0.6
SETTINGS: Spec = (_native.OUTER_SETTINGS, "optimizer", "sum", (2,))
VELOCITY = _native.OUTER_VELOCITY
CHOSEN = {SETTINGS[0]: np.array([RATE, MOMENTUM])}
BLOCKS: list[Spec] = [
    ("a", "parameters", "learned", (3, 5)), ("table", "parameters", "learned", (4, 2)),
    (f"{VELOCITY}a", "optimizer", "outer", (3, 5)), SETTINGS,
]  # fmt: skip


def stepped(start: Array, mean: Array, velocity: Array) -> tuple[Array, Array]:
    way = start.astype(np.float64) - mean
    velocity = (MOMENTUM * velocity.astype(np.float64) + way).astype(np.float32)
    return (start - RATE * (way + MOMENTUM * velocity.astype(np.float64))).astype(np.float32), velocity


def test_it_goes_on_from_round_to_round() -> None:
    random = np.random.default_rng(1)
    start = {"a": random.normal(size=(3, 5)).astype(np.float32)}
    run = BlockRounds(BLOCKS, 2, start | CHOSEN)
    at, velocity = start["a"], np.zeros((3, 5), np.float32)
    for _ in range(4):
        given = [{name: random.normal(size=shape).astype(np.float32) for name, _, _, shape in BLOCKS[:2]}
                 for _ in range(2)]   # fmt: skip
        weights = [1.0, 3.0]
        wide = [{name: value.astype(np.float64) for name, value in each.items()} for each in given]
        mean = (0.25 * wide[0]["a"] + 0.75 * wide[1]["a"]).astype(np.float32)
        at, velocity = stepped(at, mean, velocity)
        found = run.train(given, weights)
        assert found["a"].tobytes() == at.tobytes()
        assert found[f"{VELOCITY}a"].tobytes() == velocity.tobytes()
        table = (0.25 * wide[0]["table"] + 0.75 * wide[1]["table"]).astype(np.float32)
        assert found["table"].tobytes() == table.tobytes()   # has no velocity: the mean
    idle = run.train([{}, {}], [0.0, 0.0])
    assert idle["a"].tobytes() == at.tobytes() and idle[f"{VELOCITY}a"].tobytes() == velocity.tobytes()


@over("largest", [3e38, -3e38])
def test_a_step_out_of_range_is_the_mean(largest: float) -> None:
    run = BlockRounds(BLOCKS, 1, {"a": np.full((3, 5), -largest, np.float32)} | CHOSEN)
    for _ in range(3):
        found = run.train([{"a": np.full((3, 5), largest, np.float32)}], [1.0])
        assert np.isfinite(found["a"]).all() and np.isfinite(found[f"{VELOCITY}a"]).all()
    assert (found["a"] == np.float32(largest)).all()


def test_of_one_worker_with_rate_1_and_no_momentum_it_is_what_the_worker_has() -> None:
    run = BlockRounds(BLOCKS, 1, {SETTINGS[0]: np.array([1.0, 0.0])})
    given = np.random.default_rng(2).normal(size=(3, 5)).astype(np.float32)
    assert run.train([{"a": given}], [1.0])["a"].tobytes() == given.tobytes()


NAME, OBJECTIVE = _native.SCHEDULE_STANDING, ("score.objective", "score", "sum", (2,))
SCORED: list[Spec] = [
    (NAME, "optimizer", "plateau", (len(STANDING),)), ("score.loss", "score", "sum", (4,)),
    ("score.rows", "score", "sum", (1,), "i64"),
]  # fmt: skip
PLATEAU = {"threshold": 0.01, "factor": 0.5, "least": 0.1}


def begun(blocks: list[Spec] = SCORED, workers: int = 1, **settings: float) -> BlockRounds:
    found = dict.fromkeys(STANDING, 0.0) | {"left": 1.0, "every": 10, "patience": 1} | PLATEAU | settings
    return BlockRounds(blocks, workers, {NAME: np.array([found[name] for name in STANDING])})


def standing(mean: dict[str, Array]) -> dict[str, float]:
    return dict(zip(STANDING, mean[NAME].tolist(), strict=True))


def scored(loss: float, rows: int, weight: float = 2.0) -> dict[str, Array]:
    """The share of a worker whose rows had that mean loss."""
    return {"score.loss": np.array([loss * rows * weight, rows * weight, 0, 0]), "score.rows": np.array([rows])}


def test_the_model_lays_it_out_as_the_rule_has_it() -> None:
    plain = {"input": {"numbers": 2}, "loss": "mean_squared_error", "optimizer": {"name": "sgd"}}
    settings = {"name": "plateau", "patience": 7, "factor": 0.25, "rows": 500, "threshold": 0.0, "least": 0.5}
    model = Model({**plain, "schedule": settings})
    found = standing({NAME: model.views(model.initial_state(1))[NAME]})
    expected = {"left": 1.0, "every": 500, "patience": 7, "threshold": 0, "factor": 0.25, "least": 0.5}
    assert {name: value for name, value in found.items() if value} == {k: v for k, v in expected.items() if v}
    assert NAME not in [block.name for block in Model(plain).blocks]


@over("workers", [1, 3])
@over("patience", [1, 2, 4])
def test_it_falls_as_pytorchs(workers: int, patience: int) -> None:
    """Theirs waits for one evaluation more than it is told."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, factor=0.5, patience=patience - 1, threshold=0.01, min_lr=0.1, eps=0.0)
    random, falls = np.random.default_rng(patience), set()
    run = begun(workers=workers, every=100, patience=patience)
    for at in range(60):
        loss = 2.0 ** -(min(at, 20) / 10) * random.uniform(0.97, 1.0)
        found = standing(run.train([scored(loss, 120)] * workers, [1.0] * workers))
        theirs.step(loss)
        assert found["left"] == optimizer.param_groups[0]["lr"] and found["evaluations"] == at + 1
        falls.add(found["left"])
    assert min(falls) == 0.1 and len(falls) == 5


def test_an_evaluation_is_of_the_rows_since_the_last() -> None:
    run = begun(workers=2, every=1000)
    for rows, loss, evaluations, left in ((300, 1.0, 0, 1), (150, 3.0, 0, 1), (100, 0.5, 1, 1), (499, 1.2, 1, 1),
                                          (1, 9.0, 2, 1), (700, 1.6, 3, 0.5), (500, 1.0, 4, 0.5)):  # fmt: skip
        found = standing(run.train([scored(loss, rows), scored(loss, rows, 2.0)], [1.0, 1.0]))
        assert (found["evaluations"], found["left"]) == (evaluations, left), (rows, found)
    assert found["best"] == 1.0 and found["rows"] == 4500
    assert standing(run.train([{}, {}], [0.0, 0.0])) == found


def test_a_rounds_rate_is_told_by_its_start() -> None:
    """Asked for again where the round is begun again: by what was left when it began."""
    run, asked = begun(), []

    def rate_of(steps: int, left: float) -> float:
        asked.append((steps, left))
        return 0.1 * left

    run.workers[0].rounds.follow(rate_of)
    for loss in (1.0, 2.0, 0.5, 0.7):
        run.train([scored(loss, 10)], [1.0])
        run.workers[0].begin()
    assert [left for _, left in dict.fromkeys(asked)] == [1, 1, 0.5, 0.5, 0.25]


def test_what_is_minimised_is_what_counts() -> None:
    """A weighted loss, not the log loss beside it."""
    run = begun([*SCORED, OBJECTIVE])
    for objective, left in ((4.0, 1.0), (5.0, 0.5), (3.0, 0.5)):
        share = {**scored(1.0 / objective, 10), OBJECTIVE[0]: np.array([objective * 20, 0.0])}
        assert standing(run.train([share], [1.0]))["left"] == left


def test_rows_without_weight_and_scores_that_are_no_number_are_no_evaluation() -> None:
    run = begun()
    assert standing(run.train([scored(1.0, 10)], [1.0]))["evaluations"] == 1
    assert standing(run.train([scored(1.0, 10, weight=0.0)], [1.0]))["evaluations"] == 1
    found = standing(run.train([scored(0.5, 10)], [1.0]))
    assert found["evaluations"] == 2 and found["best"] == 0.5 and found["left"] == 1


def test_the_least_holds_and_never_raises() -> None:
    run = begun(least=0.3)
    found = [standing(run.train([scored(1.0, 10)], [1.0]))["left"] for _ in range(5)]
    assert found == [1, 0.5, 0.3, 0.3, 0.3]


CAPACITY = 3
TABLES = {"table": "learned", "moments": "learned", "kept": "local"}
OF_WORDS: list[Spec] = [(name, "g", rule, (CAPACITY + 1, 2)) for name, rule in [*TABLES.items(), ("other", "learned")]]


@over("workers", [1, 3])
def test_the_rows_of_what_is_forgotten_are_zero_in_every_block_that_is_its(workers: int) -> None:
    known = empty(CAPACITY, admit=1, evict_ms=10)
    for id_, newest_ms in ((1, 5), (2, 95), (3, 7)):
        Table(known).put(id_, 1000 + id_, 4, newest_ms)
    ones = {name: np.ones((CAPACITY + 1, 2), np.float32) for name, *_ in OF_WORDS}
    blocks: list[Spec] = [*OF_WORDS, ("words", "g", "vocabulary", known.shape)]
    run = BlockRounds(blocks, workers, {"words": known, **ones}, dict.fromkeys(TABLES, "words"))
    share = empty(CAPACITY)
    add_value(Table(share), Table(known), 77, 100)
    idle = {"words": empty(CAPACITY)}
    found = run.train([{**ones, "words": share}, *[{**ones, **idle}] * (workers - 1)], [1.0] * workers)
    assert [entry[0] for entry in Table(found["words"]).entry[:CAPACITY].tolist()] == [77, 1002, 0]
    for name, rule in TABLES.items():
        for worker in range(workers):
            its = found[f"{name}@{worker}"][0] if rule == "local" else found[name]
            assert its.any(axis=1).tolist() == [True, False, True, False], name
    assert found["other"].all()
    again = run.train([{**ones, **idle}] * workers, [1.0] * workers)
    assert all(again[name].all() for name, rule in TABLES.items() if rule == "learned")
