"""What a plateau schedule keeps: evaluated at the ends of rounds, from the scores of the mean, as PyTorch does it."""

from __future__ import annotations

import numpy as np
import pytest

from streamtrain import _native
from streamtrain.compute.model import Model
from streamtrain.compute.schedules.plateau import STANDING
from tests.state.block_rounds import Array, BlockRounds, Spec

NAME, OBJECTIVE = _native.SCHEDULE_STANDING, ("score.objective", "score", "sum", (2,))
BLOCKS: list[Spec] = [
    (NAME, "optimizer", "plateau", (len(STANDING),)), ("score.loss", "score", "sum", (4,)),
    ("score.rows", "score", "sum", (1,), "i64"),
]  # fmt: skip
SETTINGS = {"patience": 3.0, "threshold": 0.01, "factor": 0.5, "least": 0.1}


def begun(every: float, **settings: float) -> dict[str, Array]:
    found = dict.fromkeys(STANDING, 0.0) | {"left": 1.0, "every": every} | SETTINGS | settings
    return {NAME: np.array([found[name] for name in STANDING])}


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


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("patience", [1, 2, 4])
def test_it_falls_as_pytorchs(workers: int, patience: int) -> None:
    """Theirs waits for one evaluation more than it is told."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, factor=0.5, patience=patience - 1, threshold=0.01, min_lr=0.1, eps=0.0)
    random, falls = np.random.default_rng(patience), set()
    run = BlockRounds(BLOCKS, workers, begun(every=100, patience=patience))
    for at in range(60):
        loss = 2.0 ** -(min(at, 20) / 10) * random.uniform(0.97, 1.0)
        found = standing(run.train([scored(loss, 120)] * workers, [1.0] * workers))
        theirs.step(loss)
        assert found["left"] == optimizer.param_groups[0]["lr"] and found["evaluations"] == at + 1
        falls.add(found["left"])
    assert min(falls) == 0.1 and len(falls) == 5


def test_an_evaluation_is_of_the_rows_since_the_last() -> None:
    run = BlockRounds(BLOCKS, 2, begun(every=1000, patience=1))
    for rows, loss, evaluations, left in ((300, 1.0, 0, 1), (150, 3.0, 0, 1), (100, 0.5, 1, 1), (499, 1.2, 1, 1),
                                          (1, 9.0, 2, 1), (700, 1.6, 3, 0.5), (500, 1.0, 4, 0.5)):  # fmt: skip
        found = standing(run.train([scored(loss, rows), scored(loss, rows, 2.0)], [1.0, 1.0]))
        assert (found["evaluations"], found["left"]) == (evaluations, left), (rows, found)
    assert found["best"] == 1.0 and found["rows"] == 4500
    idle = standing(run.train([{}, {}], [0.0, 0.0]))
    assert idle == found


def test_a_rounds_rate_is_told_by_its_start() -> None:
    """Asked for again where the round is begun again: by what was left when it began."""
    run, asked = BlockRounds(BLOCKS, 1, begun(every=10, patience=1)), []

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
    run = BlockRounds([*BLOCKS, OBJECTIVE], 1, begun(every=10, patience=1))
    for objective, left in ((4.0, 1.0), (5.0, 0.5), (3.0, 0.5)):
        share = {**scored(1.0 / objective, 10), OBJECTIVE[0]: np.array([objective * 20, 0.0])}
        assert standing(run.train([share], [1.0]))["left"] == left


def test_rows_without_weight_and_scores_that_are_no_number_are_no_evaluation() -> None:
    run = BlockRounds(BLOCKS, 1, begun(every=10, patience=1))
    assert standing(run.train([scored(1.0, 10)], [1.0]))["evaluations"] == 1
    assert standing(run.train([scored(1.0, 10, weight=0.0)], [1.0]))["evaluations"] == 1
    found = standing(run.train([scored(0.5, 10)], [1.0]))
    assert found["evaluations"] == 2 and found["best"] == 0.5 and found["left"] == 1


def test_the_least_holds_and_never_raises() -> None:
    run = BlockRounds(BLOCKS, 1, begun(every=10, patience=1, least=0.3))
    found = [standing(run.train([scored(1.0, 10)], [1.0]))["left"] for _ in range(5)]
    assert found == [1, 0.5, 0.3, 0.3, 0.3]
