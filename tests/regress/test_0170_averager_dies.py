"""A worker that dies while it averages: the round is judged once, and deaths between batches come to an end."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.e2e.harness import LiveJob
from tests.train.arena_run import ArenaRun, batch, worker_1_elsewhere


def test_a_round_whose_averager_died_is_not_judged_twice() -> None:
    """Half of a short round was left out: enough for a judgement only if its slots are counted a second time."""
    run = ArenaRun(workers=2, frequency=8)
    run.fill([batch(seed) for seed in range(8)], rejected=(0, 1, 2, 3))
    rounds, plan = run.crew[0]
    rounds.run_closed_round(plan)
    assert worker_1_elsewhere(run, "worker.averaging=1").wait(120) == -signal.SIGKILL
    run.supervisor.clear_dead(1)
    run.crew[1] = run.worker(1)
    rounds, plan = run.crew[1]
    rounds.run_closed_round(plan)
    assert run.arena.progress()["finished_round"] == 0


def test_crashes_between_batches_end_the_job(kafka, tmp_path: Path) -> None:
    job = LiveJob(kafka, tmp_path, partitions=1, round_interval="off", workers=1)
    job.produce(1000)
    done = job.command("train", "--until-end", STREAMTRAIN_FAILPOINTS="*worker.averaging=1!SEGV")
    assert done.returncode == 1 and "workers died 10 times between the batches" in done.stderr, done.stderr[-3000:]
    assert "SIGSEGV" in done.stderr
    job.verified()
