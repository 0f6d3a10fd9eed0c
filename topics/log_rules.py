"""The rules that a round log keeps in itself beside rounds.check(): ranges follow one another, rows add up, rounds end
for a reason. A text names each breach."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from streamtrain._native import CloseReason
from streamtrain.topics.rounds import RoundLog, Structs

_ENDS = tuple(CloseReason)


def where_of(log: RoundLog) -> str:
    """Returns what a text says of the place of a log."""
    return f"snapshot {log.version}" + (f" host {log.host}" if log.host else "")


def broken(log: RoundLog) -> list[str]:
    """Ranges of a partition that do not follow one another within the log, or end before they begin."""
    ranges = log.ranges[np.argsort(log.ranges["partition"], kind="stable")]
    partitions, froms, tos = ranges["partition"], _places(ranges, "from"), _places(ranges, "to")
    found = []
    same = partitions[1:] == partitions[:-1]
    for index in np.flatnonzero((froms[1:] != tos[:-1]).any(axis=1) & same)[:5]:
        end, begin = tos[index].tolist(), froms[index + 1].tolist()
        where = f"snapshot {log.version} partition {partitions[index]}"
        found.append(f"{where}: a range ends at {end}, the next begins at {begin}")
    backwards = (tos[:, 0] < froms[:, 0]) | ((tos[:, 0] == froms[:, 0]) & (tos[:, 1] < froms[:, 1]))
    backwards |= (partitions < 0) | (froms[:, 1] < 0) | (tos[:, 1] < 0)
    for partition in np.unique(partitions[backwards])[:5]:
        found.append(f"snapshot {log.version} partition {partition}: a range ends before it begins")
    return found


def _places(ranges: Structs, side: str) -> Any:
    return np.stack([ranges[f"{side}_offset"], ranges[f"{side}_row"].astype(np.int64)], axis=1)


def miscounted(log: RoundLog) -> Iterator[str]:
    """Yields where batches and ranges do not count the same rows, or a batch left out is not dead as a whole."""
    where = where_of(log)
    slots, ranges = log.slots, log.ranges
    starts = np.concatenate([[0], np.cumsum(slots["range_count"], dtype=np.int64)])
    for name, column in (("rows", "trained"), ("filtered", "filtered"), ("tombstones", "tombstones")):
        if not np.array_equal(_sums(ranges[column], starts), slots[name].astype(np.int64)):
            yield f"{where}: {name} of batches and ranges differ"
    rows = slots["rows"].astype(np.int64)
    moved = np.where(slots["rejected"] != 0, rows, 0)
    if not np.array_equal(slots["trained"], rows - moved):
        yield f"{where}: a batch's rows are not all trained, or all dead where it was left out"
    if not np.array_equal(slots["dead"], _sums(ranges["dead"], starts) + moved):
        yield f"{where}: dead rows of batches and ranges differ"
    reserved = [column["reserved"].any() for column in (log.rounds, slots, ranges)]
    if any(reserved) or (slots["rejected"] > 2).any():
        yield f"{where}: bytes no trainer writes"


def _sums(column: Any, starts: Any) -> Any:
    cumulated = np.concatenate([[0], np.cumsum(column, dtype=np.int64)])
    return cumulated[starts[1:]] - cumulated[starts[:-1]]


def misended(log: RoundLog) -> Iterator[str]:
    """Yields rounds that ended for a reason they cannot have, or made a statistics pass that is a lineage's round 0's
    alone."""
    ends = np.cumsum(log.rounds["slots"], dtype=np.int64)
    dead = np.diff(np.concatenate([[0], np.cumsum(log.slots["dead"], dtype=np.int64)])[np.concatenate([[0], ends])])
    for index, round_ in enumerate(log.rounds):
        number = int(round_["round"])
        where = f"{where_of(log)} round {number}"
        full = int(round_["slots"]) == log.terms_at(number).round_slots
        fits = full or dead[index] > 0  # a flood of dead rows ends a round as well
        right = fits if round_["closed_by"] == CloseReason.FULL else not full and round_["closed_by"] in _ENDS
        if not right:
            yield f"{where}: it did not end because of {int(round_['closed_by'])}"
        if int(round_["statistics_pass"]) != (number == 0):
            yield f"{where}: statistics pass at another round"
