"""train.threads_per_worker and train.affinity: what they take, and mistakes at their place."""

from __future__ import annotations

import pytest
from looped import over

from streamtrain.job import Job, JobMistakes
from streamtrain.job.affinity import core_lists

TEXT = """name = "taxi"
[kafka]
bootstrap.servers = "localhost:9092"
[columns]
distance = {}
tip = { role = "label" }
[train]
workers = 2
threads_per_worker = 4
affinity = "0-3;4-7"
"""
LISTS = 'expected "auto", "off", or for each worker a list of cores as taskset takes them: "0-3;4,6-7"'
CASES = [
    ("= 4", "= 0", ":9: train.threads_per_worker: expected a whole number from 1 to 64, got 0"),
    ("= 4", "= 65", ":9: train.threads_per_worker: expected a whole number from 1 to 64, got 65"),
    ("threads_per", "thread_per", ":9: train.thread_per_worker: unknown setting; allowed: batch_rows, "),
    ("0-3;4-7", "0-3", ":10: train.affinity: expected a list for each of 2 workers, with ; between them, got 1 in 0-3"),
    ("0-3;4-7", "0-3;4-7;8", ":10: train.affinity: expected a list for each of 2 workers, with ; between them, got 3"),
    *((("0-3;4-7"), bad, f":10: train.affinity: {LISTS}, got ")
      for bad in ("0-3;", "0-3;4-", "3-0;1", "a;b", "", "0-3;4:2", "0-99999;1", "-1;2", "0;1-4:0", "Auto")),
]  # fmt: skip


@over(("good", "bad", "told"), CASES)
def test_mistakes_are_told_where_they_are(good: str, bad: str, told: str) -> None:
    with pytest.raises(JobMistakes) as refused:
        Job.parse(TEXT.replace(good, bad))
    assert told in str(refused.value)


@over(
    ("text", "cores"),
    [
        ("off", []), ("auto", []), ("0", [[0]]), ("0-3;4-7", [[0, 1, 2, 3], [4, 5, 6, 7]]),
        ("3,1,2-3;0", [[1, 2, 3], [0]]), ("0-7:2,9", [[0, 2, 4, 6, 9]]), ("8191", [[8191]]), ("1, 3; 2", [[1, 3], [2]]),
    ],
)  # fmt: skip
def test_lists_are_read_as_taskset_reads_them(text: str, cores: list[list[int]]) -> None:
    assert core_lists(text) == cores


def test_a_job_has_one_thread_on_any_core_unless_it_says_otherwise() -> None:
    job = Job.parse(TEXT)
    assert (job.train.threads_per_worker, job.train.affinity) == (4, "0-3;4-7")
    assert Job.from_effective(job.effective()).effective() == job.effective()
    plain = Job.parse(TEXT.partition("workers")[0]).train
    assert (plain.threads_per_worker, plain.affinity) == (1, "off")
