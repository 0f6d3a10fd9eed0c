"""Each condition of early stopping, on scores as they come."""

from __future__ import annotations

import math

import pytest

from streamtrain.fitting.early_stopping.conditions import (
    BestScore,
    Condition,
    Epochs,
    InvalidScore,
    NoImprovement,
    Rows,
    Time,
)
from streamtrain.fitting.early_stopping.evaluation import Evaluation, best_of

NAN, INF = math.nan, math.inf


def seen(scores: list[float], minimise: bool = True) -> list[Evaluation]:
    return [
        Evaluation(score, minimise, version=2 + at, round=10 * at, epoch=at + 1, rows=100 * (at + 1), seconds=at + 1.5)
        for at, score in enumerate(scores)
    ]


def ends_at(condition: Condition, scores: list[float], minimise: bool = True) -> int | None:
    """The number of the evaluation at which it is met first."""
    found = seen(scores, minimise)
    return next((count for count in range(1, len(found) + 1) if condition.met(found[:count])), None)


@pytest.mark.parametrize(
    ("condition", "scores", "at"),
    [
        (NoImprovement(2), [3, 2, 2, 1, 1, 1, 0], 6),
        (NoImprovement(2), [3, 2, 4, 1, 4, 0], None),
        (NoImprovement(1), [3, 3], 2),
        (NoImprovement(2, 0.5), [3, 2.7, 2.4, 2.3, 2.0], 5),
        (NoImprovement(2, 0.5), [3, 2.7, 2.4, 1.8, 1.5, 1.2], None),
        (NoImprovement(2), [NAN, 3, NAN, NAN, 2], 4),
        (NoImprovement(2), [INF, 4, 3, 2], None),
        (BestScore(1), [3, 1.1, 1.0, 0.9], 3),
        (BestScore(1), [NAN, -INF, 2], None),
        (Rows(300), [1, 1, 1, 1], 3),
        (Rows(301), [1, 1, 1, 1], 4),
        (Epochs(2), [1, 1, 1], 2),
        (Time(3), [1, 1, 1], 3),
        (Time(2.5), [1, 1, 1], 2),
        (InvalidScore(), [1, 2, NAN], 3),
        (InvalidScore(), [1, INF], 2),
        (InvalidScore(), [1, 2, 1e308], None),
    ],
)
def test_it_is_met(condition: Condition, scores: list[float], at: int | None) -> None:
    assert ends_at(condition, scores) == at


def test_a_score_that_is_to_grow() -> None:
    assert ends_at(NoImprovement(2), [1, 2, 2, 3, 3, 3, 4], minimise=False) == 6
    assert ends_at(BestScore(0.9), [0.5, 0.91], minimise=False) == 2
    assert ends_at(BestScore(0.9), [0.95], minimise=True) is None
    assert ends_at(NoImprovement(2, 0.1), [0.5, 0.58, 0.65, 0.7, 0.74], minimise=False) == 5


def test_why_it_is_met() -> None:
    assert NoImprovement(2, 0.5).met(seen([3, 2, 1.9, 2.5])) == (
        "2 evaluations were not better by more than 0.5 than 2 of snapshot 3"
    )
    assert BestScore(1).met(seen([0.5])) == "0.5 reaches 1"
    assert InvalidScore().met(seen([NAN])) == "the score is nan"


def test_the_best() -> None:
    first = seen([NAN, 3, 1, 1, INF, -INF])
    assert best_of(first) is first[2]
    grows = seen([NAN, 3, 1, INF], minimise=False)
    assert best_of(grows) is grows[1]
    assert best_of(seen([NAN])) is None
