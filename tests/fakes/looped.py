"""A table of cases that one test goes through, reporting all that fail: `over` in the place of `parametrize`.

A case costs no test id, and shares the test's fixtures with the others: tests that change what a fixture gives them,
or write into `tmp_path`, need `parametrize`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest
from long_tables import in_full_all

_MAX_LENGTH = 1500  # characters of a failure


def over(
    names: str | tuple[str, ...], table: Any, ids: Iterable[Any] | Callable[[Any], str] = repr, sampled: bool = False
) -> Any:
    """Runs a test with each entry of a table as the arguments `names`; fails with the name of every entry that fails.

    `table` may be a function of no argument, called when the test runs: nothing of it is made at collection. Of one
    that is `sampled` some entries are taken, and in `full` all of them (long_tables.py).
    """
    arguments = (names,) if isinstance(names, str) else names

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def whole(**fixtures: Any) -> None:
            entries = list(table() if callable(table) else table)
            assert entries, "a table without entries tests nothing"
            labels = [ids(entry) for entry in entries] if callable(ids) else list(ids)
            take = fixtures.get("take", list) if takes else fixtures.pop("take", list)
            if sampled:
                labels, entries = take(labels), take(entries)
            failed: list[tuple[str, BaseException]] = []
            for name, entry in zip(labels, entries, strict=True):
                values = (entry,) if isinstance(names, str) else entry
                try:
                    test(**fixtures, **dict(zip(arguments, values, strict=True)))
                except (Exception, pytest.fail.Exception) as error:
                    failed.append((str(name), error))
            if failed:
                text = "\n".join(f"[{name[:300]}] {str(error)[:_MAX_LENGTH] or repr(error)}" for name, error in failed)
                raise AssertionError(f"{len(failed)} of {len(entries)} fail:\n{text}") from failed[0][1]

        given = inspect.signature(test).parameters
        takes = "take" in given
        rest = [parameter for name, parameter in given.items() if name not in arguments]
        if sampled and not takes:
            rest.append(inspect.Parameter("take", inspect.Parameter.POSITIONAL_OR_KEYWORD))
        whole.__signature__ = inspect.Signature(rest)  # type: ignore[attr-defined]  # by which pytest finds fixtures
        return in_full_all()(whole) if sampled else whole

    return decorate
