"""Calls in threads of their own, which are left behind where they do not come back."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


def in_background(call: Callable[..., T], *arguments: Any, name: str) -> Future[T]:
    """The outcome of a call in a thread of its own, which does not hold up the end of the process."""
    future: Future[T] = Future()
    Thread(target=_attempt, args=(future, call, arguments), name=name, daemon=True).start()
    return future


def _attempt(future: Future[T], call: Callable[..., T], arguments: tuple[Any, ...]) -> None:
    try:
        future.set_result(call(*arguments))
    except BaseException as error:
        future.set_exception(error)
    finally:
        del future, call, arguments  # an error's traceback, which the future has, would keep them in a circle
