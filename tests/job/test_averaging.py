"""[train.averaging]: mistakes at their place, defaults filled in."""

from __future__ import annotations

import pytest
from looped import over

from streamtrain.compute import averagings
from streamtrain.compute.model import Model
from streamtrain.errors import UserMistake
from streamtrain.job import Job, JobMistakes
from tests.compute.conftest import spec_of

TEXT = """name = "taxi"
[kafka]
bootstrap.servers = "localhost:9092"
[columns]
distance = {}
tip = { role = "label" }
[train.averaging]
name = "outer_nesterov"
rate = 1.5
"""
CASES = [
    ("rate = 1.5", "rates = 1.5", ":9: train.averaging.rates: unknown setting of outer_nesterov; allowed: name, "),
    ("rate = 1.5", "momentum = 1", ":9: train.averaging.momentum: expected a number from 0 below 1, got 1"),
    ('"outer_nesterov"', '"outer"', ":8: train.averaging.name: expected one of "),
]


@over(("good", "bad", "told"), CASES)
def test_mistakes_are_told_where_they_are(good: str, bad: str, told: str) -> None:
    with pytest.raises(JobMistakes) as refused:
        Job.parse(TEXT.replace(good, bad))
    assert told in str(refused.value)


def test_defaults_are_filled_in() -> None:
    job = Job.parse(TEXT)
    expected = averagings.normal("outer_nesterov", {"rate": 1.5})
    assert expected["rate"] == 1.5 and 0 <= expected["momentum"] < 1
    assert job.effective()["train"]["averaging"] == job.model_spec()["averaging"] == expected
    assert Job.from_effective(job.effective()).effective() == job.effective()
    assert Job.parse(TEXT.partition("[train")[0]).model_spec()["averaging"] == {"name": averagings.DEFAULT}


@over("given", ["mean", {"name": "men"}, {"name": "mean", "rate": 1}, {"rate": 1}])
def test_a_manifest_that_says_something_else_is_refused(given: object) -> None:
    with pytest.raises(UserMistake, match=r"model\.averaging|averaging: expected one of mean"):
        Model({**spec_of(), "averaging": given})
