"""The position at which each partition of the records continues, round log by round log (guarantee 1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from streamtrain.topics.manifest import Positions
from streamtrain.topics.rounds import RoundLog

Place = tuple[int, int]  # (offset, row)
FirstOffsets = Callable[[str], Sequence[int] | None]  # by topic id; None: it is not the topic there is now


class Frontier:
    """`places` by partition. `whole`: a partition not in it has never been read; else it may have been anywhere."""

    def __init__(self, topic_id: str | None, places: Mapping[int, Place], whole: bool) -> None:
        self.topic_id = topic_id
        self.places = dict(places)
        self.whole = whole

    @classmethod
    def of(cls, positions: Positions) -> Frontier:
        return cls(positions.topic_id, _numbered(positions), whole=True)

    def pass_gap(self, gap: Mapping[str, Any]) -> bool:
        """Moves over a gap that begins where this stands; False where it does not, and nothing is moved."""
        match gap:
            case {"topic_id": [was, str(now)], "from": list(begin), "to": list(to)} if (places := _places_of(to)):
                starts = dict(enumerate(begin))
                here = all(starts.get(partition) == list(place) for partition, place in self.places.items())
                if was == self.topic_id and here and (not self.whole or len(starts) == len(self.places)):
                    self.topic_id, self.whole = now, True
                    self.places = places
                    return True
            case {"partition": int(partition), "from": begin, "to": [int(offset), int(row)]}:
                known = self.places.get(partition)
                if known is not None and list(known) == begin:
                    self.places[partition] = (offset, row)
                    return True
            case {"files": list(files), "from": int(count), "to": int(now)} if now == count + len(files):
                if not self.whole or count == len(self.places):
                    self.places |= {partition: (0, 0) for partition in range(count, now)}
                    return True
            case {"from": int(count), "to": int(left)} if count == len(self.places) and 0 < left < count:
                self.places = {partition: place for partition, place in self.places.items() if partition < left}
                return True
        return False

    def pass_ranges(self, log: RoundLog, first_offsets: FirstOffsets) -> tuple[list[str], list[str]]:
        """Moves over a log's ranges; gives what is wrong with where each partition's first range begins, and beside it
        what a gap would explain."""
        problems: list[str] = []
        explained: list[str] = []
        for partition in np.unique(log.ranges["partition"]).tolist():
            ranges = log.ranges[log.ranges["partition"] == partition]
            begin = (int(ranges["from_offset"][0]), int(ranges["from_row"][0]))
            known, wrong = self.places.get(partition), ""
            if known is not None and known != begin:
                wrong = f"expected a range from {known}, got {begin}"
            elif known is None and self.whole:
                wrong = self._not_first(partition, begin, first_offsets)
            if wrong:
                is_ahead = known is not None and begin[0] > known[0] and begin[1] == 0
                (explained if is_ahead else problems).append(f"snapshot {log.version} partition {partition}: {wrong}")
            self.places[partition] = (int(ranges["to_offset"][-1]), int(ranges["to_row"][-1]))
        return problems, explained

    def _not_first(self, partition: int, place: Place, first_offsets: FirstOffsets) -> str:
        """A partition met for the first time is read from its first offset, which only grows."""
        firsts = first_offsets(self.topic_id or "")
        if firsts is None:
            return "" if place[1] == 0 else f"a new partition is read from {place}, inside a record"
        first = firsts[partition] if 0 <= partition < len(firsts) else -1  # -1: there is no such partition
        fits = place[1] == 0 and place[0] <= first
        return "" if fits else f"partition {partition} is new and read from {place}, it begins at {first}"

    def differences(self, positions: Positions, first_offsets: FirstOffsets) -> list[str]:
        """Returns how a manifest's positions differ from this frontier."""
        found = []
        if self.topic_id not in (None, positions.topic_id):
            found.append(f"topic id {positions.topic_id}, expected {self.topic_id}")
        theirs = _numbered(positions)
        for partition, place in self.places.items():
            if theirs.get(partition) != place:
                found.append(f"partition {partition} at {theirs.get(partition, 'no position')}, trained up to {place}")
        if self.whole:
            new = sorted(theirs.keys() - self.places.keys())
            found += [text for each in new if (text := self._not_first(each, theirs[each], first_offsets))]
        return found


def _places_of(items: Sequence[object]) -> dict[int, Place]:
    """By partition, of offsets or of pairs with rows; nothing where one is neither."""
    found: dict[int, Place] = {}
    for partition, item in enumerate(items):
        match item:
            case [int(offset), int(row)]:
                found[partition] = (offset, row)
            case int(offset) if type(offset) is int:
                found[partition] = (offset, 0)
            case _:
                return {}
    return found


def _numbered(positions: Positions) -> dict[int, Place]:
    return {partition: (at.offset, at.row) for partition, at in enumerate(positions.partitions)}
