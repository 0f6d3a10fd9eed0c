"""Cases that mostly wait for Kafka, some at a time in one test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from traceback import format_exception

AT_A_TIME = 8  # more of them time out where the machine is busy


def run_at_once(cases: Mapping[str, Callable[[], object]]) -> None:
    """Runs each case in a thread; fails with the names of all that failed, and how."""
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        running = {name: pool.submit(case) for name, case in cases.items()}
    failed = {name: "".join(format_exception(error)) for name, each in running.items() if (error := each.exception())}
    texts = [f"{name}\n{text}" for name, text in failed.items()]
    assert not failed, f"{len(failed)} of {len(cases)} failed: {[*failed]}\n" + "\n".join(texts)
