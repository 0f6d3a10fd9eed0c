"""Handling of clients in a forked child: the inherited clients' threads are the parent's and do not run in the
child."""

from __future__ import annotations

import ctypes
import functools
import os
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_heirs: weakref.WeakKeyDictionary[Any, Callable[[Any], object]] = weakref.WeakKeyDictionary()


def after_fork(client: T, leave: Callable[[T], object]) -> None:
    """Calls `leave(client)` in every child forked while the client lives."""
    _register()
    _heirs[client] = leave


def keep_for_ever(value: Any) -> None:
    """Keeps an object from being freed, even when the interpreter ends: librdkafka aborts a child that tries."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


@functools.cache
def _register() -> None:
    os.register_at_fork(after_in_child=_in_child)


def _in_child() -> None:
    for client, leave in list(_heirs.items()):
        leave(client)
