"""Hosts that come, go, stop and die while they train one job, in simulated time: what is left of their rows. The rules
that decide are the product's."""

from __future__ import annotations

from tests.topics.simulated_hosts import Simulation


def check(found: dict[str, float]) -> None:
    """Compares the figures of a simulation with what many hosts promise."""
    assert found["of ideal rows"] >= 0.82, found
    assert found["refused"] <= 0.005, found
    assert found["least host"] >= 0.9, found


def test_hosts_that_fail_four_times_an_hour_train_most_of_the_time() -> None:
    """A tenth of them is ten times slower; one message in 2,000 is lost. Each partition goes on where it was."""
    check(Simulation(hosts=30, partitions=300, seconds=600, seed=1).run().figures())


def test_the_same_seed_gives_the_same_hosts() -> None:
    """Nothing in it depends on the real time or on this machine."""
    first, second = (Simulation(hosts=8, partitions=40, seconds=200, seed=2).run() for _ in range(2))
    assert first.figures() == second.figures() and first.reasons == second.reasons


def test_hosts_that_never_fail_are_never_refused() -> None:
    """But for what is lost on the way, and for those that join in the midst of a sync."""
    found = Simulation(hosts=16, partitions=64, seconds=300, seed=3, faults=0, lost=0.0).run().figures()
    assert found["refused"] < 0.001 and found["of ideal rows"] > 0.85, found
