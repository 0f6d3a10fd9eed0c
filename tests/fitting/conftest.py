"""Workers of fits are forked; and however a `fit` ends, no process, no shared memory and no thread of it stays."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from forked_workers import ForkedWorkers
from waiting import wait_for

from tests.fitting.left import SERVERS, left


@pytest.fixture(scope="session")
def forked_workers() -> Iterator[ForkedWorkers]:
    found = ForkedWorkers()
    SERVERS.add(found.pid)
    yield found
    found.end()


@pytest.fixture
def own_workers() -> None:
    """Each worker is a fresh interpreter, as in a user's program."""


@pytest.fixture(autouse=True)
def _workers(request: pytest.FixtureRequest) -> Iterator[None]:
    if "own_workers" in request.fixturenames:
        yield
        return
    with request.getfixturevalue("forked_workers").used():
        yield


@pytest.fixture(autouse=True)
def nothing_stays(_workers: None) -> Iterator[None]:
    before = {*left()}  # an arena of another file's test, not collected yet
    yield
    wait_for(lambda: not {*left()} - before)  # a thread ends a little after its work
