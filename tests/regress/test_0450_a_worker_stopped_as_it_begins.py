"""A worker that loses its core just as it begins a round has not published it: nobody averages without its batches."""

from __future__ import annotations

import os
import signal

import numpy as np

from tests.train.arena_run import ArenaRun, batch, worker_1_elsewhere


def two_rounds() -> ArenaRun:
    run = ArenaRun(workers=2, frequency=2)
    run.fill([batch(seed) for seed in range(4)])
    run.train()
    run.fill([batch(seed) for seed in range(4, 8)])
    return run


def test_a_round_waits_for_it() -> None:
    undisturbed, run = two_rounds(), two_rounds()
    undisturbed.train()
    other = worker_1_elsewhere(run, "worker.begins=1!STOP")
    _, status = os.waitpid(other.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    worker, plan = run.crew[0]
    worker.run_closed_round(plan)
    assert run.arena.progress()["finished_round"] == 0, "averaged without the other's batches"
    other.send_signal(signal.SIGCONT)
    assert other.wait(60) == 0
    assert run.arena.progress()["finished_round"] == 1
    assert np.array_equal(run.state(), undisturbed.state())
