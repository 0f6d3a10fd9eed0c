"""Threads and affinity of workers, [train.averaging], [optimizer.schedule]: mistakes at their place, and defaults."""

from __future__ import annotations

import json
from typing import Any

import pytest
from looped import over

from streamtrain.columns.schema import Schema
from streamtrain.compute import averagings
from streamtrain.compute.model import Model
from streamtrain.errors import UserMistake
from streamtrain.job import Job, JobMistakes
from streamtrain.job.affinity import core_lists
from tests.compute.conftest import spec_of
from tests.job.conftest import replacements

BARE = """name = "taxi"
[kafka]
bootstrap.servers = "localhost:9092"
[columns]
distance = {}
tip = { role = "label" }
"""
TEXT = f"""{BARE}[train]
workers = 2
threads_per_worker = 4
affinity = "0-3;4-7"
[train.averaging]
name = "outer_nesterov"
rate = 1.5
[optimizer.schedule]
name = "cosine"
steps = 12
end = 0.1
"""
LISTS = 'expected "auto", "off", or for each worker a list of cores as taskset takes them: "0-3;4,6-7"'
NO_LISTS = ("0-3;", "0-3;4-", "3-0;1", "a;b", "", "0-3;4:2", "0-99999;1", "-1;2", "0;1-4:0", "Auto")
CASES = replacements("""
= 4 -> = 0
    :9: train.threads_per_worker: expected a whole number from 1 to 64, got 0
= 4 -> = 65
    :9: train.threads_per_worker: expected a whole number from 1 to 64, got 65
threads_per -> thread_per
    :9: train.thread_per_worker: unknown setting; allowed: batch_rows,
0-3;4-7 -> 0-3
    :10: train.affinity: expected a list for each of 2 workers, with ; between them, got 1 in 0-3
0-3;4-7 -> 0-3;4-7;8
    :10: train.affinity: expected a list for each of 2 workers, with ; between them, got 3
rate = 1.5 -> rates = 1.5
    :13: train.averaging.rates: unknown setting of outer_nesterov; allowed: name,
rate = 1.5 -> momentum = 1
    :13: train.averaging.momentum: expected a number from 0 below 1, got 1
"outer_nesterov" -> "outer"
    :12: train.averaging.name: expected one of
end = 0.1 -> ends = 0.1
    :17: optimizer.schedule.ends: unknown setting of cosine; allowed: name, steps, end, restarts, growth, warm_up;
    did you mean end?
end = 0.1 -> end = 2
    :17: optimizer.schedule.end: expected a number from 0 to 1, got 2
"cosine" -> "cosinus"
    :15: optimizer.schedule.name: expected one of
""")  # fmt: skip
OF_LISTS = [("0-3;4-7", text, f":10: train.affinity: {LISTS}, got ") for text in NO_LISTS]


@over(("old", "new", "message"), [*CASES, *OF_LISTS])
def test_mistakes_name_their_place(old: str, new: str, message: str) -> None:
    with pytest.raises(JobMistakes) as refused:
        Job.parse(TEXT.replace(old, new), name="job.toml")
    assert f"job.toml{message}" in str(refused.value)


def test_defaults_are_filled_in_and_go_through_a_manifest() -> None:
    job, bare = Job.parse(TEXT, sets=["optimizer.schedule.warm_up=3"]), Job.parse(BARE)
    effective = json.loads(json.dumps(job.effective(), sort_keys=True))
    assert Job.from_effective(effective).effective() == job.effective()
    assert (job.train.threads_per_worker, job.train.affinity) == (4, "0-3;4-7")
    assert (bare.train.threads_per_worker, bare.train.affinity) == (1, "off")
    averaging = averagings.normal("outer_nesterov", {"rate": 1.5})
    assert averaging["rate"] == 1.5 and 0 <= averaging["momentum"] < 1
    assert effective["train"]["averaging"] == job.model_spec()["averaging"] == averaging
    assert bare.model_spec()["averaging"] == {"name": averagings.DEFAULT}
    schedule: dict[str, Any] = {"name": "cosine", "steps": 12, "end": 0.1, "restarts": False, "growth": 1, "warm_up": 3}
    assert effective["optimizer"]["schedule"] == schedule and job.schedule == schedule | {"rate": 1e-3}
    assert bare.schedule == {"name": "constant", "rate": 1e-3, "warm_up": 0}


def test_words_for_a_missing_cell_go_through_a_manifest_and_are_no_values() -> None:
    tables: dict[str, Any] = {"columns": {"x": {}, "y": {"role": "label"}}}
    plain, own = (Job.from_tables({**tables, "records": {"missing_words": words}}) for words in ([], ["gone", "n.v."]))
    assert Schema.from_dict(own.schema.to_dict()) == own.schema and own.schema.for_requests().missing_words
    assert "missing_words" not in plain.schema.to_dict() and plain.schema.digest() != own.schema.digest()
    for word in ("", " x", "-999", "1e5", "12 %", "1.234,5", "True", "off"):
        with pytest.raises(JobMistakes, match=r"records\.missing_words: expected texts"):
            Job.from_tables({**tables, "records": {"missing_words": ["gone", word]}})


@over(
    ("text", "cores"),
    [
        ("off", []), ("auto", []), ("0", [[0]]), ("0-3;4-7", [[0, 1, 2, 3], [4, 5, 6, 7]]),
        ("3,1,2-3;0", [[1, 2, 3], [0]]), ("0-7:2,9", [[0, 2, 4, 6, 9]]), ("8191", [[8191]]), ("1, 3; 2", [[1, 3], [2]]),
    ],
)  # fmt: skip
def test_lists_are_read_as_taskset_reads_them(text: str, cores: list[list[int]]) -> None:
    assert core_lists(text) == cores


@over("averaging", ["mean", {"name": "men"}, {"name": "mean", "rate": 1}, {"rate": 1}])
def test_a_manifest_with_another_averaging_is_refused(averaging: object) -> None:
    with pytest.raises(UserMistake, match=r"model\.averaging|averaging: expected one of mean"):
        Model({**spec_of(), "averaging": averaging})
