"""Each condition of early stopping, on scores as they come; a Standing is kept as a stream's manifests keep it."""

from __future__ import annotations

import math
from typing import Any

import msgpack
from looped import over

from streamtrain.compute.early_stopping import Conditions, Standing

NAN, INF = math.nan, math.inf


def stood(conditions: Conditions, scores: list[float]) -> list[Standing]:
    """With snapshot 2 the first, and each taken up from what was written of the one before."""
    found = [Standing()]
    for version, score in enumerate(scores, 2):
        before = Standing.from_dict(msgpack.unpackb(msgpack.packb(found[-1].to_dict())))
        found.append(conditions.after(before, score, version))
    return found[1:]


def ends(conditions: Conditions, scores: list[float]) -> list[tuple[str, str]]:
    """After each: so many hundred rows, passes, and seconds and a half."""
    standing = enumerate(stood(conditions, scores), 1)
    return [conditions.met(now, rows=100 * count, seconds=count + 0.5, epochs=count) for count, now in standing]


def ends_at(conditions: Conditions, scores: list[float]) -> tuple[str, int] | None:
    """The condition and the number of the evaluation at which it is met first."""
    return next(((name, count) for count, (name, _) in enumerate(ends(conditions, scores), 1) if name), None)


@over(
    ("settings", "scores", "at"),
    [
        ({"no_improvement": 2}, [3, 2, 2, 1, 1, 1, 0], 6),
        ({"no_improvement": 2}, [3, 2, 4, 1, 4, 0], None),
        ({"no_improvement": 1}, [3, 3], 2),
        ({"no_improvement": 2, "least_improvement": 0.5}, [3, 2.7, 2.4, 2.3, 2.0], 5),
        ({"no_improvement": 2, "least_improvement": 0.5}, [3, 2.7, 2.4, 1.8, 1.5, 1.2], None),
        ({"no_improvement": 2}, [NAN, 3, NAN, NAN, 2], 4),
        ({"no_improvement": 2}, [INF, 4, 3, 2], None),
        ({"no_improvement": 2}, [NAN, INF, 1], 2),
        ({"best_score": 1}, [3, 1.1, 1.0, 0.9], 3),
        ({"best_score": 1}, [NAN, -INF, 2], None),
        ({"rows": 300}, [1, 1, 1, 1], 3),
        ({"rows": 301}, [1, 1, 1, 1], 4),
        ({"epochs": 2}, [1, 1, 1], 2),
        ({"time_s": 3}, [1, 1, 1], 3),
        ({"time_s": 2.5}, [1, 1, 1], 2),
        ({"invalid_score": True}, [1, 2, NAN], 3),
        ({"invalid_score": True}, [1, INF], 2),
        ({"invalid_score": True}, [1, 2, 1e308], None),
        ({}, [1, 1, NAN, INF], None),
    ],
)
def test_it_is_met(settings: dict[str, Any], scores: list[float], at: int | None) -> None:
    name = next(iter(settings), "").removesuffix("_s")
    assert ends_at(Conditions(minimise=True, **settings), scores) == (None if at is None else (name, at))


def test_a_score_that_is_to_grow() -> None:
    def at(scores: list[float], **settings: Any) -> Any:
        return ends_at(Conditions(minimise=False, **settings), scores)

    assert at([1, 2, 2, 3, 3, 3, 4], no_improvement=2) == ("no_improvement", 6)
    assert at([0.5, 0.91], best_score=0.9) == ("best_score", 2)
    assert ends_at(Conditions(minimise=True, best_score=0.9), [0.95]) is None
    assert at([0.5, 0.58, 0.65, 0.7, 0.74], no_improvement=2, least_improvement=0.1) == ("no_improvement", 5)


def test_a_score_that_is_none_is_told_first() -> None:
    conditions = Conditions(minimise=True, invalid_score=True, no_improvement=1, rows=100, epochs=1, time_s=1)
    assert ends_at(conditions, [NAN]) == ("invalid_score", 1)
    assert not Conditions(minimise=True, invalid_score=True, least_improvement=0.1).end_by_themselves
    assert conditions.end_by_themselves


def test_why_it_is_met() -> None:
    def why(scores: list[float], **settings: Any) -> str:
        return ends(Conditions(minimise=True, **settings), scores)[-1][1]

    assert why([3, 2, 1.9, 2.5], no_improvement=2, least_improvement=0.5) == (
        "2 evaluations were not better by more than 0.5 than 2 of snapshot 3"
    )
    assert why([NAN, INF], no_improvement=2) == "2 evaluations were not finite"
    assert why([0.5], best_score=1) == "0.5 reaches 1"
    assert why([NAN], invalid_score=True) == "the score is nan"
    assert why([1], rows=100) == "100 rows are trained of 100"
    assert why([1, 1], epochs=2) == "2 passes over the rows are done"
    assert why([1], time_s=1.5) == "1.5 s have passed of 1.5 s"


def test_the_best() -> None:
    def best(scores: list[float], minimise: bool = True) -> Any:
        standing = stood(Conditions(minimise), scores)[-1]
        return standing.best_version, standing.best_score, standing.evaluations

    assert best([NAN, 3, 1, 1, INF, -INF]) == (4, 1, 6)
    assert best([NAN, 3, 1, INF], minimise=False) == (3, 3, 4)
    assert best([NAN]) == (None, None, 1)
