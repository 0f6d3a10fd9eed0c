"""The layout of a plan's buffers: those that are never needed at the same time lie in the same place.

What a buffer is needed for is read off the calls: an op says of each argument whether it writes it without reading.
From the largest to the smallest, each buffer goes to the first place that nobody needs while it is live, which is large
enough, or gets one of its own.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np

from streamtrain import _native
from streamtrain.compute import ops
from streamtrain.compute.spec import DTYPES, WRITES, Call, Key, Outside, Ref, Step, flat, launches, refs_of

K = TypeVar("K")                       # what a buffer is found by
_ALWAYS = None                         # needed in every call of every phase, and between them

Phases = Mapping[str, Sequence[Step]]
Spans = dict[str, tuple[int, int]]     # by phase: the first and the last call that needs it


class _Place:
    """A piece of memory, and when it is taken: by phase, in order, the first and the last call."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self._taken: dict[str, list[tuple[int, int]]] = {}

    def takes(self, spans: Spans) -> bool:
        """True, and taken, where nobody else needs it then."""
        if any(self._is_taken(self._taken.get(phase, []), span) for phase, span in spans.items()):
            return False
        for phase, span in spans.items():
            insort(self._taken.setdefault(phase, []), span)
        return True

    @staticmethod
    def _is_taken(taken: Sequence[tuple[int, int]], span: tuple[int, int]) -> bool:
        first, last = span
        at = bisect_left(taken, (first, -1))
        return (at > 0 and taken[at - 1][1] >= first) or (at < len(taken) and taken[at][0] <= last)


def lives(phases: Phases, output: Ref, local: Collection[str] = ()) -> dict[str, Spans | None]:
    """By buffer: when it is needed. One that a phase reads before it writes it keeps what was there, for ever; so does
    one that a call out of the plan knows the address of. What tiles of rows leave for later calls is needed as long as
    there are tiles, what is `local` by one tile alone. `output` is read when a prediction is over."""
    found: dict[str, Spans | None] = {}
    for phase, steps in phases.items():
        for call, at, around in _timed(steps):
            for ref, role in _arguments(call):
                if ref.space != "work":
                    continue
                spans = found.setdefault(ref.name, {})
                if spans is _ALWAYS:
                    continue
                if isinstance(call, Outside) or (phase not in spans and role not in WRITES):
                    found[ref.name] = _ALWAYS
                else:
                    first, last = (at, at) if ref.name in local else around
                    spans[phase] = (spans.get(phase, (first, last))[0], last)
    spans = found.get(output.name)
    if output.space == "work" and spans and "predict" in spans:
        spans["predict"] = (spans["predict"][0], sum(1 for _ in launches(phases["predict"])))
    return found


def own(phases: Phases, local: Collection[str], sizes: Mapping[str, int]) -> tuple[dict[Key, int], int]:
    """Returns where private buffers lie in the memory of a thread other than the first, and the size of that memory.
    Private are the `local` buffers, by the sizes of a tile's rows, and every Ref that is own."""
    live: dict[Key, Spans | None] = {}
    bytes_of: dict[Key, int] = {}
    for phase, steps in phases.items():
        for call, at, _ in _timed(steps):
            for ref, _ in _arguments(call):
                is_local = ref.space == "work" and ref.name in local
                if not is_local and not ref.own:
                    continue
                key = key_of(ref, is_local)
                size = sizes[ref.name] if is_local else ref.elements * np.dtype(DTYPES[ref.dtype]).itemsize
                bytes_of[key] = max(size, bytes_of.get(key, 0))
                spans = live.setdefault(key, {})
                assert spans is not None
                spans[phase] = (spans.get(phase, (at, at))[0], at)
    return place(bytes_of, live, 0)


def key_of(ref: Ref, is_local: bool) -> Key:
    """Returns the key by which own() finds a buffer. A local buffer counts as a whole."""
    return (ref.space, ref.name, 0 if is_local else ref.start)


def _timed(steps: Sequence[Step]) -> Iterator[tuple[Call | Outside, int, tuple[int, int]]]:
    """Each call, when it is made, and the first and last of those it is made again and again with. Those of a chain
    are made at the same time."""
    at = 0
    for step in steps:
        step_launches = list(launches([step]))
        for when, launch in enumerate(step_launches, at):
            yield from ((call, when, (at, at + len(step_launches) - 1)) for call in flat([launch]))
        at += len(step_launches)


def _arguments(call: Call | Outside) -> Sequence[tuple[Ref, str]]:
    if isinstance(call, Outside):
        return [(ref, "changed") for ref in call.args]
    roles = [arg.role for arg in ops.get(call.op).args]
    return [(ref, role) for arg, role in zip(call.args, roles, strict=True) for ref in refs_of([arg])]


def place(sizes: Mapping[K, int], live: Mapping[K, Spans | None], start: int) -> tuple[dict[K, int], int]:
    """Offsets of buffers from `start` on, each on a cache line, and where the last of them ends. Buffers that no call
    needs have none."""
    offsets: dict[K, int] = {}
    places: list[_Place] = []
    end = start
    for name in sorted((name for name in sizes if name in live), key=lambda name: -sizes[name]):
        spans = live[name]
        place = None if spans is _ALWAYS else next((each for each in places if each.takes(spans)), None)
        if place is None:
            place = _Place(end)
            _, end = _native.place([end + sizes[name]])
            if spans is not _ALWAYS:
                place.takes(spans)
                places.append(place)
        offsets[name] = place.offset
    return offsets, end
