"""[optimizer.schedule]: mistakes at their place, defaults filled in."""

from __future__ import annotations

import json
from typing import Any

import pytest
from looped import over

from streamtrain import Job
from streamtrain.job.mistakes import JobMistakes

TEXT = """name = "x"
[kafka]
bootstrap.servers = "b"
[columns]
x = {}
y = { role = "label" }
[optimizer.schedule]
name = "cosine"
steps = 12
end = 0.1
"""


@over(("old", "new", "message"), [
    ("end = 0.1", "ends = 0.1", ":10: optimizer.schedule.ends: unknown setting of cosine; allowed: name, steps, end, "
     "restarts, growth, warm_up; did you mean end?"),
    ("end = 0.1", "end = 2", ":10: optimizer.schedule.end: expected a number from 0 to 1, got 2"),
    ('"cosine"', '"cosinus"', ":8: optimizer.schedule.name: expected one of "),
])  # fmt: skip
def test_mistakes_name_their_place(old: str, new: str, message: str) -> None:
    with pytest.raises(JobMistakes) as told:
        Job.parse(TEXT.replace(old, new), name="job.toml")
    assert f"job.toml{message}" in str(told.value), str(told.value)


def test_it_goes_through_a_manifest() -> None:
    job = Job.parse(TEXT, sets=["optimizer.schedule.warm_up=3"])
    expected: dict[str, Any] = {"name": "cosine", "steps": 12, "end": 0.1, "restarts": False, "growth": 1, "warm_up": 3}
    assert job.schedule == expected | {"rate": 1e-3}
    effective = json.loads(json.dumps(job.effective(), sort_keys=True))
    assert effective["optimizer"]["schedule"] == expected
    assert Job.from_effective(effective).effective() == job.effective()
    assert Job.parse(TEXT.partition("[optimizer")[0]).schedule == {"name": "constant", "rate": 1e-3, "warm_up": 0}
