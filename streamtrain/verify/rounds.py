"""Guarantee 1 and the log's half of 2: over the published rounds of a lineage the ranges tile every partition."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from streamtrain.kafka.chunks import Located
from streamtrain.topics.rounds import RoundLog
from streamtrain.topics.snapshots import Manifest
from streamtrain.verify.report import Check

Place = tuple[int, int]  # (offset, row)


def lineages(logs: list[RoundLog]) -> Iterator[tuple[str, list[RoundLog]]]:
    """The logs of each lineage, in order."""
    for lineage, group in groupby(logs, key=lambda log: log.lineage):
        yield lineage, list(group)


def check_rounds(logs: list[RoundLog]) -> Check:
    check = Check("rounds", "every round of a lineage is published once, in order")
    count = 0
    for _, group in lineages(logs):
        for before, after in pairwise(group):
            last, first = int(before.rounds["round"][-1]), int(after.rounds["round"][0])
            check.expect(first == last + 1, f"snapshot {after.version}: expected round {last + 1} next, got {first}")
        count += sum(len(log.rounds) for log in group)
    check.span = f"{count} rounds"
    return check


def check_tiling(logs: list[RoundLog], manifests: list[Located]) -> Check:
    """No row twice, none skipped."""
    check = Check("tiling", "the ranges tile every partition: no row trained twice, none skipped")
    ranges = 0
    gaps = [gap for located in manifests for gap in located.manifest.gaps]  # also of lineages left since
    held = {located.manifest.lineage for located in manifests}
    for lineage, group in lineages(logs):
        ends = _start(manifests, lineage, group[0].version)
        for log in group:
            ranges += len(log.ranges)
            for part in np.unique(log.ranges["partition"]):
                told = _walk(check, log, int(part), log.ranges[log.ranges["partition"] == part], ends, gaps)
                if told and lineage in held:
                    check.problems.append(told)
                elif told:
                    check.not_checkable.append(f"{told}; the manifests that would tell a gap are gone")
    check.span = f"{ranges} ranges of {len(logs)} publications"
    return check


def _start(manifests: list[Located], lineage: str, version: int) -> dict[int, Place]:
    """Where a lineage's checkable span begins: its first log's parent, if the topic still holds it."""
    for located in manifests:
        if located.manifest.lineage == lineage and located.manifest.version == version - 1:
            return {index: (at.offset, at.row) for index, at in enumerate(located.manifest.positions.partitions)}
    return {}


def _walk(check: Check, log: RoundLog, partition: int, ranges: Any, ends: dict[int, Place], gaps: Any) -> str:
    """Checks one partition's ranges of a log; gives what is wrong with where they begin, "" where nothing is."""
    froms = np.stack([ranges["from_offset"], ranges["from_row"].astype(np.int64)], axis=1)
    tos = np.stack([ranges["to_offset"], ranges["to_row"].astype(np.int64)], axis=1)
    first = (int(froms[0, 0]), int(froms[0, 1]))
    expected = ends.get(partition)
    told = ""
    if expected is not None and expected != first and not _is_gap(gaps, partition, expected, first):
        told = f"snapshot {log.version} partition {partition}: expected a range from {expected}, got {first}"
    broken = np.flatnonzero((froms[1:] != tos[:-1]).any(axis=1))
    for index in broken[:5]:
        check.problems.append(
            f"snapshot {log.version} partition {partition}: a range ends at {tos[index].tolist()}, the next begins at "
            f"{froms[index + 1].tolist()}"
        )
    backwards = (tos[:, 0] < froms[:, 0]) | ((tos[:, 0] == froms[:, 0]) & (tos[:, 1] < froms[:, 1]))
    check.expect(not backwards.any(), f"snapshot {log.version} partition {partition}: a range ends before it begins")
    ends[partition] = (int(tos[-1, 0]), int(tos[-1, 1]))
    return told


def _is_gap(gaps: Any, partition: int, end: Place, begin: Place) -> bool:
    for gap in gaps:
        if gap.get("partition") == partition and tuple(gap["from"]) == end and tuple(gap["to"]) == begin:
            return True
        known = "topic_id" in gap and partition < min(len(gap["from"]), len(gap["to"]))
        if known and tuple(gap["from"][partition]) == end and gap["to"][partition] == begin[0]:
            return True
    return False


def check_positions(logs: list[RoundLog], manifests: list[Located]) -> Check:
    """A manifest's positions are where its log ends."""
    check = Check("positions", "a manifest's positions are exactly what has been trained")
    by_version = {log.version: log for log in logs}
    seen = 0
    for located in manifests:
        log = by_version.get(located.manifest.version)
        if log is None:
            continue
        seen += 1
        positions = located.manifest.positions.partitions
        for partition in np.unique(log.ranges["partition"]):
            last = log.ranges[log.ranges["partition"] == partition][-1]
            end = (int(last["to_offset"]), int(last["to_row"]))
            told = tuple(positions[int(partition)]) if int(partition) < len(positions) else None
            check.expect(
                told == end, f"snapshot {log.version} partition {partition}: manifest says {told}, log ends at {end}"
            )
    check.span = f"{seen} snapshots with their round log"
    return check


def check_conservation(logs: list[RoundLog], manifests: list[Located]) -> Check:
    """Slots, ranges and manifests count the same rows."""
    check = Check("rows", "rows trained, dead lettered and filtered add up in slots, ranges and manifests")
    for log in logs:
        starts = np.concatenate([[0], np.cumsum(log.slots["range_count"], dtype=np.int64)])
        for name, column in (("rows", "trained"), ("filtered", "filtered"), ("tombstones", "tombstones")):
            sums = _sums(log.ranges[column], starts)
            check.expect(
                np.array_equal(sums, log.slots[name].astype(np.int64)),
                f"snapshot {log.version}: {name} of slots and ranges differ",
            )
        rejected = log.slots["rejected"] != 0
        moved = np.where(rejected, log.slots["rows"], 0).astype(np.int64)
        check.expect(
            np.array_equal(log.slots["trained"].astype(np.int64) + moved, log.slots["rows"].astype(np.int64))
            and np.array_equal(log.slots["dead"].astype(np.int64), _sums(log.ranges["dead"], starts) + moved),
            f"snapshot {log.version}: rows of rejected batches are not all dead",
        )
    _check_rows_seen(check, logs, [located.manifest for located in manifests])
    check.span = f"{sum(len(log.slots) for log in logs)} batches"
    return check


def _sums(column: Any, starts: Any) -> Any:
    cumulated = np.concatenate([[0], np.cumsum(column, dtype=np.int64)])
    return cumulated[starts[1:]] - cumulated[starts[:-1]]


def _check_rows_seen(check: Check, logs: list[RoundLog], manifests: list[Manifest]) -> None:
    for before, after in pairwise(manifests):
        span = [log for log in logs if before.version < log.version <= after.version]
        if before.lineage != after.lineage or len(span) != after.version - before.version:
            continue
        trained = sum(log.rows_trained for log in span)
        check.expect(
            after.rows_seen - before.rows_seen == trained,
            f"snapshots {before.version} to {after.version}: rows_seen grew by "
            f"{after.rows_seen - before.rows_seen}, logs trained {trained}",
        )
