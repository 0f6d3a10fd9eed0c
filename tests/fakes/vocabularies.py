"""The slow meaning of a round for a vocabulary, and rounds to try it with."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_low
from typing import Any

import numpy as np

from streamtrain.compute.ops.vocabulary import HEAD, empty
from tests.oracles.ops.vocabulary import Table, add_value, holds

Array = np.ndarray[Any, Any]
ROUNDS = HEAD.index("rounds")
SHAPES = [(2, 8), (4, 8), (30, 8)]


def meaning(start: Array, values: Sequence[Array], weights: Sequence[float]) -> dict[str, Array]:
    return {"": after_round(start, values)}


def unsigned(value: int) -> int:
    return value % (1 << 64)


def seen_by_all(table: Table, shares: Sequence[Array]) -> dict[int, list[int]]:
    """By hash how often the round's values were seen, and when last; of unknown ones no more than have room."""
    seen: dict[int, list[int]] = {}
    for share in map(Table, shares):
        for value, count, newest in share.entry[: share.head[HEAD.index("used")]].tolist():
            before = seen.get(value, [0, 0])
            seen[value] = [before[0] + count, max(before[1], newest)]
    shift = max(int(Table(share).head[HEAD.index("shift")]) for share in shares)
    while True:
        kept = {value for value in seen if table.find(value) or holds(value, int(table.head[ROUNDS]), shift)}
        if len(kept) <= 2 * table.capacity:
            return {value: seen[value] for value in sorted(kept)}
        shift += 1


def after_round(start: Array, shares: Sequence[Array]) -> Array:
    words = start.copy()
    table = Table(words)
    head = dict(zip(HEAD, table.head.tolist(), strict=True))
    seen = seen_by_all(table, shares)
    if times := [newest for _, newest in seen.values() if newest > 0]:
        head["clock_ms"] = max(head["clock_ms"], median_low(times))
    now = head["clock_ms"]
    fresh: list[list[int]] = []  # hash, count, newest, entry
    for value, (count, newest) in seen.items():
        newest = min(newest, now) if newest > 0 else now
        if entry := table.find(value):
            row = table.entry[entry - 1]
            row[1:] = row[1] + count, max(row[2], newest)
        else:
            fresh.append([value, count, newest, 0])
    oldest = now - head["evict_ms"] if head["evict_ms"] > 0 and now > head["evict_ms"] else -1
    for entry in range(1, 2 * table.capacity + 1):
        _, count, newest = table.entry[entry - 1].tolist()
        if count and newest < oldest:
            head["evicted"] += entry <= table.capacity
            table.take(entry)
    fresh = [each for each in fresh if each[2] >= oldest]
    asking = fresh + [
        [*table.entry[entry - 1].tolist(), entry]
        for entry in range(table.capacity + 1, 2 * table.capacity + 1)
        if table.entry[entry - 1, 1]
    ]
    rest = admitted(table, head, asking)
    less = sorted((each[1] for each in rest), reverse=True)[table.capacity] if len(rest) > table.capacity else 0
    for each in rest:
        each[1] -= less
        if each[3] and each[1] > 0:
            table.entry[each[3] - 1, 1] = each[1]
        elif each[3]:
            table.take(each[3])
    free = [e for e in range(table.capacity + 1, 2 * table.capacity + 1) if not table.entry[e - 1, 1]]
    for each, place in zip((each for each in rest if not each[3] and each[1] > 0), free, strict=False):
        table.put(place, *each[:3])
    head["rounds"] += 1
    table.head[:] = [head[name] for name in HEAD]
    return words


def admitted(table: Table, head: dict[str, int], asking: list[list[int]]) -> list[list[int]]:
    """Gives ids; those that got none."""
    given = table.entry[: table.capacity]
    free = [id_ for id_ in range(1, table.capacity + 1) if not given[id_ - 1, 1]]
    least = min((int(each[1]) for each in given if each[1]), default=0)
    may = [each for each in asking if each[1] >= head["admit"] and (free or each[1] > least)]
    others = [each for each in asking if each not in may]
    may.sort(key=lambda each: (-each[1], unsigned(each[0])))
    old = [id_ for id_ in range(1, table.capacity + 1) if id_ not in free]
    old.sort(key=lambda id_: (int(given[id_ - 1, 1]), -unsigned(int(given[id_ - 1, 0]))))

    def settle(each: list[int], id_: int) -> None:
        if each[3]:
            table.take(each[3])
        table.put(id_, *each[:3])

    at = 0
    for id_ in free[: len(may)]:
        settle(may[at], id_)
        at += 1
    for id_ in old[: len(may) - at]:
        if may[at][1] <= given[id_ - 1, 1]:
            break
        table.take(id_)
        head["evicted"] += 1
        settle(may[at], id_)
        at += 1
    return others + may[at:]


def some(shape: tuple[int, ...], random: np.random.Generator, known: Array | None = None) -> Array:
    """A share of some values, the same few thousand in every round; it may stand for a start too."""
    capacity = shape[0] - 1
    values = np.random.default_rng(3).integers(-(1 << 62), 1 << 62, 4 * capacity)
    base = empty(capacity) if known is None else known
    share = empty(capacity, admit=2, evict_ms=400)
    count = random.choice([capacity // 2, 6 * capacity])
    often = np.minimum(random.geometric(1 / (1 + capacity), count), 4 * capacity) - 1
    each = random.permutation(4 * capacity)[: random.choice([0, 4 * capacity])]  # more than a share has room for
    for value in values[[*often, *each]].tolist():
        add_value(Table(share), Table(base), value, int(random.integers(-100, 900)))
    return share
