"""Which cores a worker may run on, as a job file says it: "auto", "off", or taskset's lists, one for each worker."""

from __future__ import annotations

import re
from typing import Any

from streamtrain.job.units import Takes

AUTO, OFF = "auto", "off"
_MOST_CORES = 8_192  # the kernel's own limit
_RANGE = re.compile(r"(\d{1,5})(?:-(\d{1,5})(?::(\d{1,5}))?)?")


class Affinity(Takes):
    """A text; core_lists() reads it."""

    def __init__(self) -> None:
        super().__init__('"auto", "off", or for each worker a list of cores as taskset takes them: "0-3;4,6-7"')

    def parse(self, value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError
        core_lists(value)
        return value


def core_lists(text: str) -> list[list[int]]:
    """The cores of each worker, ascending; none for "auto" and "off". ValueError where it is no such text."""
    return [] if text in (AUTO, OFF) else [_cores(each) for each in text.split(";")]


def _cores(text: str) -> list[int]:
    found: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise ValueError(part)
        first, last, stride = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if not first <= last < _MOST_CORES or stride < 1:
            raise ValueError(part)
        found.update(range(first, last + 1, stride))
    return sorted(found)
