"""However a `fit` ends: no process, no shared memory, no thread of it stays."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.fitting.left import left


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    before = {*left()}  # an arena of another file's test, not collected yet
    yield
    until_s = time.monotonic() + 30
    while {*left()} - before and time.monotonic() < until_s:  # a thread is over a moment after what it was asked for
        time.sleep(0.01)
    assert {*left()} - before == set()
