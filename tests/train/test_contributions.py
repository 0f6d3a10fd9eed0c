"""Contributions: rounds that join what their workers made, and their fold, which is the mean of one host."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from streamtrain import _native
from streamtrain.compute.model import aligned
from streamtrain.compute.state import view, views
from streamtrain.compute.windows import Windows
from streamtrain.errors import UserMistake
from tests.state.test_rules import BlockRounds
from tests.train.arena_run import SPEC, ArenaRun, batches

Batches = Sequence[tuple[np.ndarray, np.ndarray]]
FREQUENCY = 64
DROPOUT = {**SPEC, "layers": [*SPEC["layers"], {"dropout": 0.5}]}


class Host(ArenaRun):
    """An arena whose rounds are contributions."""

    def contribution(
        self, start: np.ndarray, round_: int, given: Batches, rejected: tuple[int, ...] = (), seed: int = 0
    ) -> tuple[np.ndarray, float]:
        self.ring.unpin()
        view(self.arena.mean_address(0), self.layout.state_bytes)[:] = start
        self.ring.begin(round=round_ - 1, learning_rate=0.01, seed=seed, joins=True)
        self.next_round, self.next_slot = round_, 0
        self.train(*given, rejected=rejected)
        weights = [self.arena.slot_result(slot)[1] for slot in range(len(given))]
        return copied(self.state()), sum(sum(weights[w :: self.workers]) for w in range(self.workers))


class Fold(ArenaRun):
    """An arena of other settings than the hosts', whose rounds are folds."""

    def __init__(self, start: np.ndarray, round_: int) -> None:
        super().__init__(workers=1, frequency=1, round_=round_)
        view(self.arena.mean_address(0), self.layout.state_bytes)[:] = start
        self.fold = _native.ContributionFold(self.arena)

    def add(self, *contributions: tuple[np.ndarray, float]) -> bool:
        return self.fold.fold([(state.ctypes.data, weight) for state, weight in contributions])


def copied(state: np.ndarray) -> np.ndarray:
    found = aligned(state.nbytes)
    found[:] = state
    return found


def first_mean() -> np.ndarray:
    """After a lineage's first round, which has a pass of its own over all slots."""
    run = ArenaRun(frequency=2)
    run.train(*batches(0, 4))
    return run.state()


def test_two_hosts_of_a_worker_are_one_host_of_two_workers_bit_for_bit() -> None:
    """Round after round, with the windows that close: only this finds a fold that is not the averager's."""
    start = first_mean()
    one = ArenaRun(frequency=FREQUENCY, round_=0)
    view(one.arena.mean_address(0), one.layout.state_bytes)[:] = start
    hosts, many = [Host(workers=1, frequency=FREQUENCY) for _ in range(2)], Fold(start, 0)
    windows = Windows(one.ring, one.layout, start), Windows(many.ring, many.layout, start)
    closed: list[bool] = []
    for round_ in range(1, 9):
        given = batches(100 * round_, 100 * round_ + 2 * FREQUENCY - round_ % 2)
        one.train(*given, rejected=(3,))
        base = copied(many.state())
        contributions = [
            host.contribution(base, round_, given[at::2], (1,) if at else ()) for at, host in enumerate(hosts)
        ]
        closed.append(many.add(*contributions))
        assert many.state().tobytes() == one.state().tobytes()
        assert many.ring.pin_newest()[1] == round_ == many.arena.progress()["finished_round"]
        ours, theirs = (each.take(run.state()) for each, run in zip(windows, (many, one), strict=True))
        assert [{name: part.tolist() for name, part in end.items()} for end in ours] == [
            {name: part.tolist() for name, part in end.items()} for end in theirs
        ] and len(ours) == closed[-1]
    assert sum(closed) == 1


@pytest.mark.parametrize("rejected", [(), (1,), (0, 2)])
def test_a_round_that_joins_is_the_join_of_its_workers_vectors(rejected: tuple[int, ...]) -> None:
    """It closes no window and scores no mean; with the fold of several such it is that of all."""
    start = first_mean()
    hosts = [Host(workers=workers, frequency=4) for workers in (2, 1, 3)]
    contributions = []
    for at, host in enumerate(hosts):
        state, weight = host.contribution(start, 1, batches(10 * at, 10 * at + 3 * host.workers), rejected)
        own = view(host.crew[0][0].state_address, host.model.layout.state_bytes)   # every worker's, then the join
        vectors = [view(worker.state_address, own.nbytes) for worker, _ in host.crew]
        weights = [sum(host.arena.slot_result(slot)[1] for slot in range(w, 3 * host.workers, host.workers))
                   for w in range(host.workers)]  # fmt: skip
        found = aligned(own.nbytes)
        given = [(vector.ctypes.data, each) for vector, each in zip(vectors, weights, strict=True)]
        assert _native.join(host.model.layout, start.ctypes.data, given, found.ctypes.data) == weight > 0
        assert state.tobytes() == found.tobytes()
        contributions.append((state, weight))
    many, mean = Fold(start, 0), aligned(start.nbytes)
    many.add(*contributions)
    joined = [(state.ctypes.data, weight) for state, weight in contributions]
    _native.average(many.model.layout, start.ctypes.data, joined, mean.ctypes.data)
    assert many.state().tobytes() == mean.tobytes() != start.tobytes()


def test_a_lineages_first_moments_are_those_of_all_contributions() -> None:
    """Each host's own first pass entered what it joined."""
    start = ArenaRun().state()
    given = [batches(0, 4), batches(50, 53)]
    many = Fold(start, -1)
    many.add(*(Host(workers=1, frequency=4).contribution(start, 0, each) for each in given))
    moments = views(many.layout, many.state())["standardize.numbers"]
    numbers = np.concatenate([numbers for each in given for numbers, _ in each])
    assert (moments[:, 0] == len(numbers)).all()
    assert np.allclose(moments[:, 1], numbers.mean(0), atol=0.1) and (moments[:, 1] != 0).all()


def test_nothing_is_left_of_a_round_that_is_begun_again_in_the_same_arena() -> None:
    """Vectors published, slots left out and a diverging round before: replay trains each host's in the same arena."""
    start, other = first_mean(), first_mean()
    views(ArenaRun().layout, other)["output.weight"][:] += 1
    used, given = Host(workers=2, frequency=2), batches(7, 11)
    for round_, before in ((1, other), (2, start)):   # together they would diverge
        used.contribution(before, round_, batches(20, 22), (1,))
    found, weight = used.contribution(start, 2, given)
    expected, its_weight = Host(workers=2, frequency=2).contribution(start, 2, given)
    assert found.tobytes() == expected.tobytes() and weight == its_weight == 64


def test_hosts_draw_random_numbers_of_their_own() -> None:
    start = first_mean()
    hosts = [Host(workers=1, frequency=4, spec=DROPOUT) for _ in range(3)]
    found = [host.contribution(start, 1, batches(0, 4), seed=seed)[0].tobytes()
             for host, seed in zip(hosts, (1, 2, 1), strict=True)]  # fmt: skip
    assert found[0] == found[2] != found[1]


def test_a_worker_that_joins_begins_when_it_may_from_what_it_is_given() -> None:
    """The mean of its round is not where the next begins: a single worker would go on from its own vector. Its random
    numbers are those of the round and the seed that it is told, whatever the arena has counted."""
    run, starts, randoms = BlockRounds([("x", "parameters", "learned", (3,))], 1, {}), [], []
    (worker,), supervisor = run.workers, _native.SupervisorEnd(run.arena)

    def train(slot: int) -> None:
        starts.append(worker.state["x"].copy())
        randoms.append(step.random)
        worker.state["x"][...] += 1
        step.weight_sum = 1.0
        supervisor.tell(_native.Stop.LEAVE)   # once the round is averaged

    plan = _native.ForeignPlan(1, 1, {"train": train}, lambda: None, lambda: None)
    step = _native.StepBlock.at(plan.step.address)
    for round_, start, number, seed in ((7, 5.0, 7, 0), (8, 9.0, 41, 3), (41, 2.0, 41, 3), (42, 2.0, 41, 4)):
        run.ring.unpin()
        views(run.published, view(run.arena.mean_address(0), run.published.state_bytes))["x"][:] = start
        run.ring.begin(round=round_ - 1, learning_rate=0.1, joins=True)
        run.ingest.fill_round(round=round_, first_slot=0, rows=[1])
        supervisor.tell(_native.Stop.RUN)
        begun = len(starts)
        assert worker.rounds.run(plan, 0.05) == _native.WorkerStatus.WORKING and len(starts) == begun
        run.ring.begin_round(number, seed)
        assert worker.rounds.run(plan, 60) == _native.WorkerStatus.LEAVE
        assert starts[-1].tolist() == [start] * 3 and run.mean()["x"].tolist() == [start + 1] * 3
    assert randoms[1] == randoms[2] and len({*randoms}) == 3


def test_what_is_kept_for_each_worker_cannot_be_joined() -> None:
    run = BlockRounds([("x", "optimizer", "local", (3,))], 1, {})
    expected = "a state that is joined: expected that all of it is averaged, got blocks kept per worker"
    with pytest.raises(UserMistake, match=expected):
        _native.ContributionFold(run.arena)
    with pytest.raises(UserMistake, match=expected):
        run.ring.begin(round=7, learning_rate=0.1, joins=True)


def test_a_contribution_has_nothing_that_no_worker_makes() -> None:
    """Whatever the buffer that it is joined into held before."""
    start, host = first_mean(), Host(workers=1, frequency=4)
    views(host.layout, start)["window.closed"][:] = 5
    host.contribution(start, 1, batches(0, 3))
    host.train(*batches(9, 11))   # into the buffer of the start
    found = views(host.layout, host.state())
    assert found["output.weight"].any() and not any(block.any() for name, block in found.items() if "window." in name)
