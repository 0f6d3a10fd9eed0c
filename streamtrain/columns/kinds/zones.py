"""Time zones as the native half takes them: which offset holds from which local time on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
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
def instants(zone: str) -> list[int]:
    """Seconds since 1970 from which an offset holds, ascending, each followed by that offset in seconds; the first
    holds before, too."""
    info = ZoneInfo(zone)

    def at(second: int) -> int:
        offset = (_EPOCH + second * _SECOND).replace(tzinfo=UTC).astimezone(info).utcoffset()
        assert offset is not None
        return offset // _SECOND

    first, last = ((moment - _EPOCH) // _SECOND for moment in (_FROM, _TO))
    table = [first, at(first)]
    for second in range(first, last, _DAY // _SECOND):
        after = at(second + _DAY // _SECOND)
        if table[-1] == after:
            continue
        low, high = second, second + _DAY // _SECOND
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if at(middle) == table[-1] else (low, middle)
        table += (high, after)
    return table


@cache
def names() -> frozenset[str]:
    """Returns the zone names of the IANA database. Leaves out local names, which differ by machine."""
    return frozenset(available_timezones() - {"localtime", "Factory"})
