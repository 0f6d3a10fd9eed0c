"""Texts of a sample's column that are numbers or booleans in another writing: amounts, decimal commas, True, False."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from streamtrain.columns.kinds.amounts import plain
from streamtrain.columns.kinds.parsed import AMOUNT, BOOL, DECIMAL_COMMA, NUMBERS

_BOOLEANS = {"true": True, "false": False}
# codes that stand before or behind an amount; ABC 123 is none
_CODES = {
    "USD", "EUR", "GBP", "JPY", "CHF", "CNY", "INR", "AUD", "CAD", "NZD", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF",
    "RON", "TRY", "BRL", "MXN", "ARS", "CLP", "COP", "KRW", "SGD", "HKD", "THB", "IDR", "MYR", "PHP", "VND", "ZAR",
    "NGN", "EGP", "ILS", "SAR", "AED", "UAH", "RUB",
}  # fmt: skip
_WORD = re.compile("[A-Z]{2,}")
_MARK = re.compile(r"[^0-9eE+\- \u00a0\u202f]")  # something but digits and spaces, which phone numbers have


class Written(NamedTuple):
    """A way to write numbers or booleans as texts. `parse` is the setting that reads them, `values` the cells."""

    parse: str
    values: list[Any]
    example: str
    is_unsure: bool = False  # whether a comma may stand before thousands or before the fraction


def written_as(cells: Sequence[Any], commas: bool) -> Written | None:
    """Returns how cells that are no plain numbers are written; None where they are texts.

    commas: other columns of the sample have a comma before the fraction.
    """
    texts = [cell for cell in cells if isinstance(cell, str)]
    if not texts or not all(isinstance(cell, str | int | float) for cell in cells):
        return None
    booleans = [_BOOLEANS.get(cell.strip(" ").lower()) if isinstance(cell, str) else cell for cell in cells]
    if all(isinstance(cell, bool) for cell in booleans):
        return Written(BOOL, booleans, texts[0])
    if any(isinstance(cell, bool) for cell in cells) or not any(map(_MARK.search, texts)):
        return None
    if any(word not in _CODES and word != "US" for text in texts for word in _WORD.findall(text)):
        return None
    amounts = {parse: _numbers(cells, NUMBERS[parse]) for parse in (AMOUNT, DECIMAL_COMMA)}
    fits = [parse for parse, numbers in amounts.items() if numbers is not None]
    if not fits:
        return None
    parse = fits[-1] if commas else fits[0]
    example = next(text for text in texts if _MARK.search(text))
    is_unsure = len(fits) > 1 and amounts[AMOUNT] != amounts[DECIMAL_COMMA]
    return Written(parse, amounts[parse] or [], example, is_unsure)


def written_reason(written: Written) -> str:
    """Returns the reason for the table of columns."""
    if written.parse == BOOL:
        return "true or false"
    what = "amounts" if written.parse == AMOUNT else "numbers with a decimal comma"
    return f"{what} such as {written.example!r}"


def other_writing(written: Written, settings: str) -> str:
    """The other choice, where a comma may stand before thousands or before the fraction; else empty."""
    if not written.is_unsure:
        return ""
    other = DECIMAL_COMMA if written.parse == AMOUNT else AMOUNT
    changed = settings.replace(f'parse = "{written.parse}"', f'parse = "{other}"')
    return f"{{ {changed} }}"


def _numbers(cells: Sequence[Any], point: str) -> list[float] | None:
    """The cells as numbers, where all are some."""
    found = [plain(cell, point) if isinstance(cell, str) else cell for cell in cells]
    return None if None in found else [float(each) for each in found if each is not None]
