"""Guards of rounds, ingest and publication: (name, file, its line, the line without it, the test that must go red)."""

from __future__ import annotations

_AVERAGER = "tests/regress/test_0170_averager_dies.py"

GUARDS = [
    (
        "a round is judged from the round before it",
        "native/exec/rounds.cpp",
        "averager.judged[(round + ANY_ROUNDS - 1) % ANY_ROUNDS]",
        "averager.judged[round % ANY_ROUNDS]",
        f"{_AVERAGER}::test_a_round_whose_averager_died_is_not_judged_twice",
    ),
    (
        "a crash outside a batch counts towards the end of the job",
        "streamtrain/processes/supervisor.py",
        "-code in _CRASHES and slot >= 0:",
        "-code in _CRASHES:",
        f"{_AVERAGER}::test_crashes_between_batches_end_the_job",
    ),
]
