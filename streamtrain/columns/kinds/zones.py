"""Time zones as the native half takes them: which offset holds from which local time on."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

_FROM, _TO = datetime(1900, 1, 1), datetime(2100, 1, 1)  # before and after, the first and last offsets hold
_EPOCH = datetime(1970, 1, 1)
_DAY, _SECOND = timedelta(days=1), timedelta(seconds=1)


@cache
def offsets(zone: str) -> list[int]:
    """Local seconds since 1970 from which an offset holds, ascending, each followed by that offset in seconds.

    A local time that comes twice is the first one; one that is left out goes by the offset before. Raises
    ZoneInfoNotFoundError for a name no zone has.
    """
    info = ZoneInfo(zone)

    def at(local: datetime) -> timedelta | None:
        return local.replace(tzinfo=info).utcoffset()

    table: list[int] = []

    def add(local: datetime) -> None:
        offset = at(local)
        assert offset is not None
        table.extend(((local - _EPOCH) // _SECOND, offset // _SECOND))

    add(_FROM)
    day, before = _FROM, at(_FROM)
    while day < _TO:
        after = at(day + _DAY)
        if before != after:
            low, high = day, day + _DAY
            while high - low > _SECOND:
                middle = low + (high - low) // _SECOND // 2 * _SECOND
                low, high = (middle, high) if at(middle) == before else (low, middle)
            add(high)
        day, before = day + _DAY, after
    return table


@cache
def names() -> frozenset[str]:
    """Those of the IANA database; not what a machine calls its own, which another would read otherwise."""
    return frozenset(available_timezones() - {"localtime", "Factory"})
