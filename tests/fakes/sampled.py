"""Long tables of cases that one test goes through: a sample in `fast`, all of it in `full`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from long_tables import in_full_all
from looped import over


def with_some(names: str | tuple[str, ...], table: Iterable[Any], ids: Callable[[Any], str] = repr) -> Any:
    """Does as looped.over, with some entries of a long table; and in `full`, as another test, with all of them."""
    entries = list(table)

    def decorate(test: Callable[..., None]) -> Any:
        @wraps(test)
        def whole(take: Callable[..., Any], **fixtures: Any) -> None:
            over(names, take(entries), ids)(test)(**fixtures)

        given = inspect.signature(over(names, entries, ids)(test)).parameters.values()
        taken = inspect.Parameter("take", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        whole.__signature__ = inspect.Signature([taken, *given])  # type: ignore[attr-defined]
        return in_full_all()(whole)

    return decorate
