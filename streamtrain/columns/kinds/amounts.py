"""Numbers as people write them: `init` reads them here; native/decode/amount_text.h is tested against it."""

from __future__ import annotations

import re
from functools import cache

_SPACE = "[ \u00a0\u202f]"  # the usual one, and those that do not break a line
_CURRENCY = r"[A-Z]{3}|[A-Z]{0,2}\$|[\u00a2-\u00a5\u0e3f\u20a0-\u20bf]"
_MOST_CURRENCIES = 2  # "$12 USD"


@cache
def _pattern(point: str) -> re.Pattern[str]:
    others = "'" + (",." if point == "," else ",").replace(point, "")
    digits = rf"[1-9][0-9]{{0,2}}(?P<between>[{others} \u00a0\u202f])(?:[0-9]{{2,3}}(?P=between))*[0-9]{{3}}|[0-9]+"
    number = rf"(?:(?:{digits})(?:[{point}][0-9]*)?|[{point}][0-9]+)(?:[eE][+-]?[0-9]+)?"
    return re.compile(
        rf"{_SPACE}*(?P<opened>\()?(?P<before>(?:[+-]|{_CURRENCY}|{_SPACE})*)(?P<number>{number})"
        rf"{_SPACE}*(?P<behind>%|{_CURRENCY})?{_SPACE}*(?P<closed>\))?{_SPACE}*"
    )


def plain(text: str, point: str) -> str | None:
    """An amount as a decimal number's text: without thousands, currency and percent sign; None for what is none.

    `point` stands before the fraction. In parentheses a number is negative. "12 %" is 12.
    """
    found = _pattern(point).fullmatch(text)
    if found is None or (found["opened"] is None) != (found["closed"] is None):
        return None
    signs = re.findall("[+-]", found["before"])
    currencies = re.findall(_CURRENCY, found["before"]) + re.findall(_CURRENCY, found["behind"] or "")
    if len(signs) > (found["opened"] is None) or len(currencies) > _MOST_CURRENCIES:
        return None
    number = found["number"].replace(found["between"] or " ", "").replace(point, ".")
    return ("-" if found["opened"] or "-" in signs else "") + number
