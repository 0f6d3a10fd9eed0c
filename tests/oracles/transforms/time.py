"""Parts of a time: numbers, or points on a circle."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from streamtrain.columns.kinds.zones import instants
from streamtrain.columns.transforms.time import PARTS
from streamtrain.columns.transforms.transform import Use
from tests.oracles.transforms import Cell

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def meaning(use: Use, cells: Sequence[Cell], given: Sequence[bool]) -> list[Cell]:
    parts = use.given["parts"]
    if cells[0] is None:
        return [None] * (len(parts) * (2 if use.given["cyclic"] else 1))
    numbers = split_time(int(cells[0]), use.given["zone"])
    if not use.given["cyclic"]:
        return [float(numbers[part]) for part in parts]
    return [side for part in parts for side in turn(numbers[part] - PARTS[part].first, PARTS[part].size)]


def split_time(ms: int, zone: str | None) -> dict[str, int]:
    """Returns the parts of a moment."""
    seconds = ms // 1000
    seconds += 0 if zone is None else shift_s(zone, seconds)
    days, of_day = divmod(seconds, 86_400)
    eras = (days + 719_162) // 146_097 - 4  # of 400 years, by which the calendar repeats: datetime ends at year 9999
    there = _EPOCH + timedelta(days=days - eras * 146_097)
    return {
        "year": there.year + eras * 400, "month": there.month, "day": there.day, "hour": of_day // 3600,
        "minute": of_day // 60 % 60, "second": of_day % 60, "weekday": there.weekday(),
        "day_of_year": there.timetuple().tm_yday,
    }  # fmt: skip


def shift_s(zone: str, second: int) -> int:
    """Returns the offset of a moment, in seconds."""
    table = instants(zone)
    return table[2 * max(0, bisect_right(table[::2], second) - 1) + 1]


def turn(part: int, count: int) -> tuple[float, float]:
    """Returns sine and cosine of so many parts of a turn; exact where a side is 0 or 1."""
    octant, rest = divmod(8 * (part % count), count)
    angle = (count - rest if octant & 1 else rest) / count * (math.pi / 4)
    sine, cosine = math.sin(angle), math.cos(angle)
    if octant in (1, 2, 5, 6):
        sine, cosine = cosine, sine
    return -sine if octant >= 4 else sine, -cosine if octant in (2, 3, 4, 5) else cosine
