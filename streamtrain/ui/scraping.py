"""The addresses of metrics that the page was given, each asked again and again in a thread of its own."""

from __future__ import annotations

import http.client
import re
import threading
import time
import urllib.error
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from streamtrain.errors import CheckFailed, UserMistake
from streamtrain.ui import metric_values
from streamtrain.ui.in_time import opened
from streamtrain.ui.system import System

WATCHED_S, ASIDE_S = 1.0, 3.0  # between questions
_WATCHED_FOR_S = 10.0
_ANSWER_S = 5.0  # a busy machine's processes live
_MOST_BYTES = 4 << 20  # of an answer
_HOST = re.compile(r"[\w.:%-]+")


class Given(NamedTuple):
    """An address; `job` "" where its metrics tell whose it is."""

    url: str
    job: str = ""


def given(text: str) -> Given:
    """Parses [JOB=]URL. Raises UserMistake if the text is not one."""
    before, _, after = text.partition("=")
    job, url = (before, after) if after and "/" not in before and ":" not in before else ("", text)
    url = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(_HOST.fullmatch(parts.hostname or "")) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise UserMistake(f"--metrics {text}: expected [JOB=]URL, for example taxi=http://127.0.0.1:9400")
    return Given(url if parts.path.strip("/") else f"{parts.scheme}://{parts.netloc}/metrics", job)


class Scraping:
    """Scrapes all addresses until close(). `system_of` returns a job's System, or None if there is no such job."""

    def __init__(self, addresses: Sequence[Given], system_of: Callable[[str], System | None]) -> None:
        self.addresses = [Address(each, system_of) for each in dict.fromkeys(addresses)]

    def close(self) -> None:
        for each in self.addresses:
            each.close()

    def watched(self) -> None:
        for each in self.addresses:
            each.watched()

    def strangers(self, job: str) -> list[Address]:
        """Returns the addresses that may be of the job but have not reported it. They show what they report instead."""
        return [each for each in self.addresses if each.given.job in ("", job) and job not in each.jobs]


class Address:
    """One address, followed until close()."""

    def __init__(self, given: Given, system_of: Callable[[str], System | None]) -> None:
        self.given = given
        self.jobs: frozenset[str] = frozenset()  # that it has told of
        self.error = ""
        self.ready = threading.Event()
        self._system_of = system_of
        self._watched_at_s = -_WATCHED_FOR_S
        self._closing, self._woken = threading.Event(), threading.Event()
        threading.Thread(target=self._follow, name="ui-metrics", daemon=True).start()

    def close(self) -> None:
        self._closing.set()
        self._woken.set()

    def watched(self) -> None:
        """Somebody looks at what it tells."""
        if time.monotonic() - self._watched_at_s > _WATCHED_FOR_S:
            self._woken.set()
        self._watched_at_s = time.monotonic()

    def _follow(self) -> None:
        while not self._closing.is_set():
            try:
                self._take(metric_values.read(self._ask()))
            except Exception as error:  # whatever an address answers, it is asked again
                self.error = _format_error(error)
                self._lost(self.jobs | {self.given.job}, self.error)
            self.ready.set()
            is_watched = time.monotonic() - self._watched_at_s < _WATCHED_FOR_S
            self._woken.wait(WATCHED_S if is_watched else ASIDE_S)
            self._woken.clear()

    def _ask(self) -> str:
        with opened(self.given.url, _ANSWER_S) as answer:
            found = answer.read(_MOST_BYTES + 1)
        if len(found) > _MOST_BYTES:
            raise CheckFailed(f"expected at most {_MOST_BYTES:,} bytes, got more")
        return str(found.decode("utf-8", "replace"))

    def _take(self, found: Mapping[str, metric_values.Values]) -> None:
        self.error, self.jobs = "", self.jobs | frozenset(found)
        for job, values in found.items():
            if self.given.job in ("", job) and (system := self._system_of(job)) is not None:
                system.take(self.given.url, values)
        self._lost(self.jobs - frozenset(found), f"it tells of {', '.join(sorted(found))} now")

    def _lost(self, jobs: Iterable[str], why: str) -> None:
        for job in jobs:
            if self.given.job in ("", job) and (system := self._system_of(job)) is not None:
                system.lost(self.given.url, why)


def _format_error(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"expected metrics, got status {error.code}"
    if isinstance(error, CheckFailed):
        return str(error)
    why = getattr(error, "reason", error)
    if isinstance(error, OSError | http.client.HTTPException):
        return f"no answer: {getattr(why, 'strerror', None) or why or type(error).__name__}"
    return f"{type(error).__name__}: {error}"
