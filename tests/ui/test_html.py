"""Pieces of HTML: what comes in is text."""

from __future__ import annotations

import pytest

from streamtrain.ui import html, telling

BAD = '<img src=x onerror="alert(1)">&\''


def test_text_is_escaped_wherever_it_stands() -> None:
    found = [
        html.tag("p", BAD), html.link(BAD, "/x", [("job", BAD)]), html.tag("p", "", title=BAD),
        html.table((BAD, "b"), [(BAD, BAD)], BAD), html.sparkline([1, 2], None, BAD),
    ]  # fmt: skip
    for each in found:
        assert "<img" not in each and 'onerror="' not in each.replace("onerror=&quot;", "")


def test_html_stays_and_numbers_are_set_to_the_right() -> None:
    assert html.tag("p", html.joined([html.tag("b", "x"), "<"])) == "<p><b>x</b>&lt;</p>"
    table = html.table(("a", "b", "c"), [("x", "1,000", "word")], "of three")
    for expected in ('<td class="st-number">1,000</td>', "<td>word</td>", '<th scope="row">x</th>'):
        assert expected in table
    assert html.sparkline([1.0], 2.0, "x") == ""
    assert html.sparkline([1.0, 1.0], None, "x").count("polyline") == 2


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0.04, "0.0 s"),
        (9.96, "10.0 s"),
        (34.4, "34 s"),
        (119, "119 s"),
        (300, "5 min"),
        (1e5, "28 h"),
        (2e5, "2 d"),
    ],
)
def test_ages(seconds: float | None, text: str) -> None:
    assert telling.age(seconds) == text
