"""The coordinator's loop at the end of a run, with the moments at which the workers finish chosen by the test."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from streamtrain.errors import KafkaBroken, Replaced
from streamtrain.run.publication import Assembled
from streamtrain.run.roles.coordinator import Coordinator
from streamtrain.topics.control import RunEntry
from streamtrain.topics.manifest import Run


class EndingArena:
    """Ingest has ended; the last round finishes, its log with it, as the coordinator looks for the n-th time."""

    def __init__(self, look: int) -> None:
        self._looks_left = look
        self.logged_round = -1

    def progress(self) -> dict[str, int]:
        self._looks_left -= 1
        if self._looks_left <= 0:
            self.logged_round = 0
        finished = {"finished_round": self.logged_round, "slots_released": 2 * (self.logged_round + 1)}
        return {"ingest_ended": 1, "final_round": 0, "slots_filled": 2, "held": 0, **finished}

    def beat(self) -> None: ...

    def stop(self) -> int:
        return 0

    def wait_round(self, round_: int, timeout_s: float) -> None: ...

    def publication_due(self, due_ns: int) -> None: ...


class Loop(Coordinator):
    """Gathers from the arena above and publishes at once."""

    def __init__(self, arena: EndingArena) -> None:
        self._arena = self._ring = arena  # type: ignore[assignment]
        self._job = SimpleNamespace(  # type: ignore[assignment]
            publish=SimpleNamespace(interval_s=3600.0), train=SimpleNamespace(round_interval_s=0.1)
        )
        self._unpublished = SimpleNamespace(last_round=-1, gathered_round=-1)  # type: ignore[assignment]
        self._pending = self._failure = None
        self.published: list[int] = []

    def _gather(self) -> None:
        new = self._arena.logged_round
        if new > self._unpublished.gathered_round:
            self._unpublished.gathered_round = self._unpublished.last_round = new

    def _begin_publication(self) -> None:
        self.published.append(self._unpublished.last_round)
        self._unpublished.last_round = -1

    def _heed_watch(self) -> None: ...

    def _progress(self) -> None: ...

    def _end(self) -> int:
        return 0


@pytest.mark.parametrize("look", [1, 2, 3, 4])
def test_a_round_that_ends_while_the_coordinator_looks_is_published(look: int) -> None:
    loop = Loop(EndingArena(look))
    assert loop.loop() == 0
    assert loop.published == [0]


def test_a_publication_that_stays_pending_while_kafka_answers_ends_the_run() -> None:
    coordinator = Coordinator.__new__(Coordinator)
    watch = SimpleNamespace(replaced_by=None, answered_s=100.0)
    coordinator._watch, coordinator._pending = watch, None  # type: ignore[assignment]
    coordinator._heed_watch()
    coordinator._pending = (Future(), Assembled.__new__(Assembled), 0)
    for answered_s in (100.0, 160.0):  # while Kafka is away it stands still
        watch.answered_s = answered_s
        coordinator._heed_watch()
    watch.answered_s = 160.1
    with pytest.raises(KafkaBroken, match="pending for 60 s"):
        coordinator._heed_watch()


def test_a_replaced_run_tells_it_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    coordinator = Coordinator.__new__(Coordinator)
    newer = RunEntry(Run(3, "b" * 32), "job", "host", 1, 1, "build")
    coordinator._watch = SimpleNamespace(replaced_by=newer, answered_s=0.0)  # type: ignore[assignment]
    with pytest.raises(Replaced, match="run 3"):
        coordinator._heed_watch()
    assert '"replaced"' in capsys.readouterr().out
